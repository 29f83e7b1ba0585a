//! The pool's protocols under schedules that shuttle draws: loads, attaching, cooling, eviction,
//! deletion and write-back of a small structure in a very small pool.
//!
//! Each of these mistakes, built in, made it fail:
//! - a reader does not look at its parent again once it has the child;
//! - a version does not grow;
//! - a reader becomes a writer whatever the version;
//! - a load begins without a second look at the swip;
//! - claiming a loaded page ends its in-flight load;
//! - threads that wait for a load are not woken;
//! - a page is attached below a frame that holds another page by now;
//! - a frame from the page table is not asked for its page;
//! - a page goes before its children;
//! - a victim's dirty flag is not looked at again under its latch;
//! - the end of a write forgets a change made meanwhile;
//! - a copy is made without a latch;
//! - an event is signalled without the lock.
//!
//! Shuttle sees no weak orderings, and no events between two reads of one page: it switches
//! threads only at latches, atomics and locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::forest::{FAN_OUT, Forest};
use crate::schedules::{check, seed};
use crate::storage::MemoryStorage;
use millpond::internals::page::PageType;
use millpond::internals::pool::{
    EvictionMode, HostedPolicy, Kind, Latched, Latching, Optimistic, Pool, PoolOptions,
    PoolStrategy, Reclamation, State, Workers,
};
use millpond::internals::stats::counters::Counter;
use millpond::internals::store::combinations::Compiled as Made;
use millpond_base::cleaning::Cleaning;
use millpond_base::{Reason, Share};
use millpond_policies::config::Spec;
use millpond_policies::contract::{PolicySpec, Shape};
use millpond_policies::policy::{LeanEvict, Lru, Random};

const PAGE: usize = 512;
const FRAMES: u32 = 8;
/// Schedules of each setting.
const SCHEDULES: usize = 150;
const THREADS: usize = 2;
const OPERATIONS: usize = 6;
const LEAVES: usize = 8;

type TouchOf<P> = <P as PolicySpec>::Hook;

fn shape() -> Shape {
    Shape { frames: FRAMES, pages_dense: None, seed: 3 }
}

fn register<M: PoolStrategy>(pool: &Pool<M>, page: PageType, kind: &'static dyn Kind) {
    pool.register(page, kind);
}

/// Leaf number `n`: two inner pages have four leaves each.
fn leaf(n: usize) -> usize {
    n % 4 + n / 4 * FAN_OUT
}

/// Counts of the watched events in all schedules of a test: a model in which nothing happens
/// proves nothing.
#[derive(Default)]
struct Seen([AtomicU64; WATCHED.len()]);

const WATCHED: [Counter; 6] = [
    Counter::Evictions,
    Counter::Misses,
    Counter::Restarts,
    Counter::InFlightWaits,
    Counter::PagesFreed,
    Counter::Rescues,
];

impl Seen {
    fn add<M: PoolStrategy>(&self, pool: &Pool<M>) {
        for (sum, counter) in self.0.iter().zip(WATCHED) {
            sum.fetch_add(pool.counters().get(counter), Ordering::Relaxed);
        }
    }

    fn check(&self, least: usize) {
        for (sum, counter) in self.0.iter().zip(WATCHED) {
            let sum = sum.load(Ordering::Relaxed);
            assert!(sum >= least as u64, "{counter:?} happened {sum} times in all schedules");
        }
    }
}

/// Runs one thread's operations on leaves of its own, and on those of all threads.
fn work<M: PoolStrategy>(forest: &Forest<Pool<M>>, thread: usize, seed: u64) -> [u64; LEAVES] {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut expect = [0; LEAVES];
    for _ in 0..OPERATIONS {
        let mine = random.usize(..LEAVES / THREADS) * THREADS + thread;
        match random.u8(..10) {
            0 | 1 => {
                assert_eq!(forest.drop_leaf(leaf(mine)).unwrap(), expect[mine]);
                forest.make(leaf(mine)).unwrap();
                expect[mine] = 0;
            }
            2 => forest.prefetch(leaf(mine)).unwrap(),
            3 | 4 => assert_eq!(forest.read(leaf(mine)).unwrap(), expect[mine]),
            5 | 6 => drop(forest.read_if_there(leaf(random.usize(..LEAVES))).unwrap()),
            _ => {
                forest.count(leaf(mine)).unwrap();
                expect[mine] += 1;
            }
        }
    }
    for mine in (thread..LEAVES).step_by(THREADS) {
        assert_eq!(forest.read(leaf(mine)).unwrap(), expect[mine]);
    }
    expect
}

fn thrash<M: PoolStrategy>(options: PoolOptions, hosted: HostedPolicy<M::Hook>, seen: &Seen) {
    let seed = seed();
    fastrand::seed(seed);
    let storage = Arc::new(MemoryStorage::new(PAGE));
    let pool = Arc::new(Pool::<M>::open(options, storage.clone(), hosted).unwrap());
    let workers = Workers::start(pool.clone()).unwrap();
    let leaves = (0..LEAVES).map(leaf);
    let forest = Arc::new(Forest::small(pool.clone(), register::<M>, &[0, 1], leaves));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let forest = forest.clone();
            shuttle::thread::spawn(move || work(&forest, thread, seed + thread as u64))
        })
        .collect();
    let mut counted = [0; LEAVES];
    for thread in threads {
        let part = thread.join().unwrap();
        counted.iter_mut().zip(part).for_each(|(sum, count)| *sum += count);
    }
    drop(workers);
    pool.check_policy().unwrap();
    pool.flush(Reason::Recov).unwrap();
    assert_eq!(pool.evict_all().unwrap(), 0, "everything can be evicted");
    assert_eq!(pool.census().get(&State::Free), Some(&pool.frames()), "no frame is lost");
    pool.ids().return_all().unwrap();
    assert_eq!(storage.taken(), (1 + 2 + LEAVES) as u64, "no page id is lost");
    for (n, count) in counted.into_iter().enumerate() {
        assert_eq!(forest.read(leaf(n)).unwrap(), count, "storage lost what leaf {n} counted");
    }
    seen.add(&pool);
}

fn all_ways<M: PoolStrategy>(policy_host: fn() -> HostedPolicy<M::Hook>) {
    let seen: &'static Seen = Box::leak(Box::default());
    let mut settings = 0;
    for reclamation in [Reclamation::Version, Reclamation::Epoch] {
        let cleaning = |dirty| Cleaning { dirty: Share(dirty), ..Cleaning::default() };
        for (evictors, background_writer, cleaning) in [
            (EvictionMode::Worker, false, None),
            (EvictionMode::Worker, true, None),
            (EvictionMode::threads(1), true, None),
            (EvictionMode::threads(1), false, Some(cleaning(0.0))),
        ] {
            let body = move || {
                let options = PoolOptions {
                    batch: 2,
                    evictors,
                    background_writer,
                    cleaning,
                    reclamation,
                    nodes: Some(1),
                    ..PoolOptions::new(FRAMES)
                };
                thrash::<M>(options, policy_host(), seen);
            };
            check(SCHEDULES, body);
            settings += 1;
        }
    }
    seen.check(settings * SCHEDULES / 4);
}

fn lean<L: Latching>() -> fn() -> HostedPolicy<TouchOf<LeanEvict>> {
    || {
        let spec = Spec::parse("lean-evict:cooling=40%").unwrap();
        HostedPolicy::exact::<LeanEvict>(&spec, &shape()).unwrap()
    }
}

#[test]
fn swips_with_optimistic_latches_survive_every_schedule_drawn() {
    all_ways::<Made<Optimistic, TouchOf<LeanEvict>, true>>(lean::<Optimistic>());
}

#[test]
fn swips_with_shared_latches_survive_every_schedule_drawn() {
    all_ways::<Made<Latched, TouchOf<LeanEvict>, true>>(lean::<Latched>());
}

#[test]
fn a_page_table_with_optimistic_latches_survives_every_schedule_drawn() {
    all_ways::<Made<Optimistic, TouchOf<Random>, false>>(|| {
        HostedPolicy::open::<Random>(&Spec::parse("random").unwrap(), &shape()).unwrap()
    });
}

#[test]
fn a_page_table_with_shared_latches_survives_every_schedule_drawn() {
    all_ways::<Made<Latched, TouchOf<Lru>, false>>(|| {
        HostedPolicy::exact::<Lru>(&Spec::parse("lru").unwrap(), &shape()).unwrap()
    });
}

type Simple = Made<Optimistic, TouchOf<Random>, true>;

/// A forest of one inner page and two leaves, all of which are on storage.
fn asleep() -> (Arc<MemoryStorage>, Arc<Forest<Pool<Simple>>>) {
    fastrand::seed(seed());
    let storage = Arc::new(MemoryStorage::new(PAGE));
    let hosted = HostedPolicy::open::<Random>(&Spec::parse("random").unwrap(), &shape()).unwrap();
    let options = PoolOptions { background_writer: false, ..PoolOptions::new(FRAMES) };
    let pool = Arc::new(Pool::open(options, storage.clone(), hosted).unwrap());
    let forest = Arc::new(Forest::small(pool.clone(), register, &[0], [0, 1].into_iter()));
    assert_eq!(pool.evict_all().unwrap(), 0);
    storage.reads.store(0, Ordering::SeqCst);
    (storage, forest)
}

fn in_threads<T: Send + 'static>(
    count: usize,
    work: impl Fn() -> T + Send + Sync + 'static,
) -> Vec<T> {
    let work = Arc::new(work);
    let threads: Vec<_> = (0..count)
        .map(|_| {
            let work = work.clone();
            shuttle::thread::spawn(move || work())
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

#[test]
fn a_page_is_loaded_once_however_many_threads_ask() {
    let body = || {
        let (storage, forest) = asleep();
        in_threads(3, move || assert_eq!(forest.read(1).unwrap(), 0));
        assert_eq!(storage.reads.load(Ordering::SeqCst), 3, "root, inner page, leaf");
    };
    check(SCHEDULES * 4, body);
}

#[test]
fn a_load_that_fails_is_one_threads_error_and_the_others_load_again() {
    let body = || {
        let (storage, forest) = asleep();
        storage.reads_fail.store(1, Ordering::SeqCst);
        let (pool, again) = (forest.pages.clone(), forest.clone());
        let results = in_threads(3, move || forest.read(1));
        assert_eq!(results.iter().filter(|result| result.is_err()).count(), 1, "{results:?}");
        assert_eq!(again.read(1).unwrap(), 0);
        assert_eq!(pool.evict_all().unwrap(), 0);
        assert_eq!(pool.census().get(&State::Free), Some(&pool.frames()), "no frame is lost");
    };
    check(SCHEDULES * 4, body);
}
