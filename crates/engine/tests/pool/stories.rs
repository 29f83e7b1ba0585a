//! Races told one by one: each was lost once, or would be without a rule of the pool's.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use millpond::internals::pool::{EvictionMode, Pool, PoolOptions};
use millpond::internals::pool::{HostedPolicy, Latched, Optimistic, Workers};
use millpond::internals::stats::counters::Counter;
use millpond_base::Reason;
use millpond_policies::policy::{LeanEvict, Lru, Random};

use super::forest::{FAN_OUT, Forest};
use super::storage::{MemoryStorage, tiny};
use super::{LEAVES, Made, PAGE, Simple, TouchOf, a_pool, register, shape, spec};

/// A reader finds a page missing and gets no further; meanwhile others load the page, delete it,
/// and its id becomes another page's. The reader must not load it as what it was.
fn a_missing_page_is_deleted_meanwhile<M>(hosted: HostedPolicy<M::Hook>)
where
    M: millpond::internals::pool::PoolStrategy,
{
    let storage = Arc::new(MemoryStorage::new(PAGE));
    let options = PoolOptions { background_writer: false, ..tiny(128) };
    let pool = Arc::new(Pool::<M>::open(options, storage.clone(), hosted).unwrap());
    let forest = Forest::new(pool.clone(), register::<M>);
    for round in 0..20 {
        forest.count(9).unwrap();
        assert_eq!(pool.evict_all().unwrap(), 0);
        // The inner page is in memory, the leaf is not.
        forest.read(10).unwrap();
        let seen = forest.read_while(9, || {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    assert_eq!(forest.drop_leaf(9).unwrap(), 1);
                    // The ids go to other leaves first.
                    forest.drop_leaf(40 + round % 8).unwrap();
                    forest.make(40 + round % 8).unwrap();
                    forest.make(9).unwrap();
                });
            });
        });
        assert_eq!(seen.unwrap(), 0);
    }
    assert_eq!(pool.evict_all().unwrap(), 0);
    pool.ids().return_all().unwrap();
    assert_eq!(storage.taken(), (1 + FAN_OUT + LEAVES) as u64);
}

#[test]
fn a_missing_page_that_is_deleted_meanwhile_is_not_loaded_with_a_page_table() {
    let hosted = HostedPolicy::open::<Random>(&spec("random"), &shape(128)).unwrap();
    a_missing_page_is_deleted_meanwhile::<Made<Optimistic, TouchOf<Random>, false>>(hosted);
    let hosted = HostedPolicy::exact::<Lru>(&spec("lru"), &shape(128)).unwrap();
    a_missing_page_is_deleted_meanwhile::<Made<Latched, TouchOf<Lru>, false>>(hosted);
}

#[test]
fn a_missing_page_that_is_deleted_meanwhile_is_not_loaded_with_swips() {
    let hosted = HostedPolicy::open::<Random>(&spec("random"), &shape(128)).unwrap();
    a_missing_page_is_deleted_meanwhile::<Made<Optimistic, TouchOf<Random>, true>>(hosted);
}

/// A page is deleted while its copy is on its way to storage: its id is not reused until the write
/// is over. A write that fails leaves nothing behind, least of all a dirty free frame.
#[test]
fn a_page_that_is_deleted_during_its_write_is_gone_however_the_write_ends() {
    for fails in [0, 1] {
        let (storage, pool) = a_pool(128);
        let forest = Forest::new(pool.clone(), register);
        pool.flush(Reason::Recov).unwrap();
        forest.count(9).unwrap();
        storage.writes_held.store(1, Ordering::SeqCst);
        let before = storage.writes_waiting.load(Ordering::SeqCst);
        std::thread::scope(|scope| {
            let flush = scope.spawn(|| pool.flush(Reason::Recov));
            while storage.writes_waiting.load(Ordering::SeqCst) == before {
                std::thread::yield_now();
            }
            assert_eq!(forest.drop_leaf(9).unwrap(), 1);
            forest.make(9).unwrap();
            storage.writes_fail.store(fails, Ordering::SeqCst);
            storage.writes_held.store(0, Ordering::SeqCst);
            assert_eq!(flush.join().unwrap().is_err(), fails == 1);
        });
        pool.flush(Reason::Recov).unwrap();
        assert_eq!(pool.frames_dirty(), 0);
        assert_eq!(pool.evict_all().unwrap(), 0);
        assert_eq!(forest.read(9).unwrap(), 0);
        pool.ids().return_all().unwrap();
        assert_eq!(storage.taken(), (1 + FAN_OUT + LEAVES) as u64, "no id is lost or used twice");
    }
}

/// A thread that closes a pool may read ahead once more: no thread would ever do that read.
#[test]
fn reading_ahead_without_background_threads_holds_nobody_up() {
    let storage = Arc::new(MemoryStorage::new(PAGE));
    let hosted = HostedPolicy::open::<Random>(&spec("random"), &shape(64)).unwrap();
    let pool: Arc<Simple> = Arc::new(Pool::open(tiny(64), storage, hosted).unwrap());
    let forest = Forest::new(pool.clone(), register);
    pool.evict_all().unwrap();
    forest.prefetch(9).unwrap();
    assert_eq!(forest.read(9).unwrap(), 0);
    for _ in 0..2 {
        let workers = Workers::start(pool.clone()).unwrap();
        forest.prefetch(9).unwrap();
        drop(workers);
        forest.prefetch(20).unwrap();
        assert_eq!(forest.read(20).unwrap() + forest.read(9).unwrap(), 0);
        pool.evict_all().unwrap();
    }
}

/// Victims are dirty and cannot be written, but others are clean: reads go on.
#[test]
fn a_failing_write_of_a_victim_does_not_fail_a_read_that_finds_another_frame() {
    let (storage, pool) = a_pool(16);
    let forest = Forest::new(pool.clone(), register);
    pool.flush(Reason::Recov).unwrap();
    forest.count(9).unwrap();
    storage.writes_fail.store(u64::MAX, Ordering::SeqCst);
    for leaf in (0..LEAVES).chain(0..LEAVES) {
        assert_eq!(forest.read(leaf).unwrap(), u64::from(leaf == 9));
    }
    storage.writes_fail.store(0, Ordering::SeqCst);
    assert_eq!(pool.evict_all().unwrap(), 0);
    assert_eq!(forest.read(9).unwrap(), 1);
}

/// A thread that admits a page waits for the seat with the parent latched, and no page below that
/// parent can be evicted until then. The evicting thread must let it through, instead of being
/// refused again and again: with batches of one page a round looks as long as a simulator does,
/// 65,536 times.
#[test]
fn who_evicts_lets_those_through_whose_latches_stand_in_the_way() {
    const FRAMES: u32 = 8;
    const THREADS: usize = 3;
    const READS: usize = 4_000;
    let storage = Arc::new(MemoryStorage::new(PAGE));
    let hosted = HostedPolicy::exact::<LeanEvict>(&spec("lean-evict"), &shape(FRAMES)).unwrap();
    let options = PoolOptions { evictors: EvictionMode::Worker, ..PoolOptions::new(FRAMES) };
    type Tree = Made<Optimistic, TouchOf<LeanEvict>, true>;
    let pool = Arc::new(Pool::<Tree>::open(options, storage, hosted).unwrap());
    // Below one inner page, as the leaves of a small tree are below its root.
    let forest = Forest::small(pool.clone(), register, &[0], 0..FAN_OUT);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let forest = &forest;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread as u64);
                for _ in 0..READS {
                    assert_eq!(forest.read(random.usize(..FAN_OUT)).unwrap(), 0);
                }
            });
        }
    });
    let counters = pool.counters();
    let refused = counters.get(Counter::EvictionRefusals);
    let evicted = counters.get(Counter::Evictions);
    assert!(refused <= 500 * evicted, "{refused} refused, {evicted} evicted");
}
