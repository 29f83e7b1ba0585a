//! The pool under a small structure that thrashes it, in every combination of strategies.

mod ahead;
mod cleaning;
pub mod forest;
mod overdue;
pub mod storage;
mod stories;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use forest::{FAN_OUT, Forest};
use millpond::internals::page::PageType;
use millpond::internals::pool::{EvictionMode, Pool, PoolOptions, PoolStrategy};
use millpond::internals::pool::{
    HostedPolicy, Kind, Latched, Latching, Optimistic, Reclamation, State, Twin, Unlatched, Workers,
};
use millpond::internals::stats::counters::Counter;
use millpond::internals::store::combinations::Compiled as Made;
use millpond_base::cleaning::Cleaning;
use millpond_base::{Reason, Seed, Share};
use millpond_policies::config::Spec;
use millpond_policies::contract::{HitHook, PolicySpec, Shape};
use millpond_policies::policy::{LeanEvict, Lru, Random, Watt};
use storage::{MemoryStorage, tiny};

const PAGE: usize = 512;
const LEAVES: usize = FAN_OUT * FAN_OUT;

fn shape(frames: u32) -> Shape {
    Shape { frames, pages_dense: None, seed: 3 }
}

fn spec(name: &str) -> Spec {
    Spec::parse(name).unwrap()
}

fn register<M: PoolStrategy>(pool: &Pool<M>, page: PageType, kind: &'static dyn Kind) {
    pool.register(page, kind);
}

/// Counts, reads, drops and makes leaves from `threads` threads, each on leaves of its own, and
/// reads everybody's. Returns the expected count of every leaf.
fn thrash<M: PoolStrategy>(forest: &Forest<Pool<M>>, threads: usize, rounds: usize) {
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(Seed(thread as u64).0 + 40);
                let mut expect = [0u64; LEAVES];
                for _ in 0..rounds {
                    let leaf = random.usize(..LEAVES / threads) * threads + thread;
                    match random.u8(..16) {
                        0 => {
                            assert_eq!(forest.drop_leaf(leaf).unwrap(), expect[leaf]);
                            forest.make(leaf).unwrap();
                            expect[leaf] = 0;
                        }
                        1 => forest.prefetch(leaf).unwrap(),
                        2..8 => assert_eq!(forest.read(leaf).unwrap(), expect[leaf]),
                        _ => {
                            forest.count(leaf).unwrap();
                            expect[leaf] += 1;
                        }
                    }
                }
                for leaf in (thread..LEAVES).step_by(threads) {
                    assert_eq!(forest.read(leaf).unwrap(), expect[leaf], "leaf {leaf}");
                }
            });
        }
    });
}

fn run<M: PoolStrategy>(
    options: PoolOptions,
    hosted: HostedPolicy<M::Hook>,
    threads: usize,
    rounds: usize,
) {
    let storage = Arc::new(MemoryStorage::new(PAGE));
    let pool = Arc::new(Pool::<M>::open(options, storage.clone(), hosted).unwrap());
    let workers = Workers::start(pool.clone()).unwrap();
    let forest = Forest::new(pool.clone(), register::<M>);
    thrash(&forest, threads, rounds);
    drop(workers);
    pool.check_policy().unwrap();
    pool.flush(Reason::Recov).unwrap();
    assert_eq!(pool.frames_dirty(), 0);
    assert_eq!(pool.evict_all().unwrap(), 0, "everything can be evicted, roots too");
    assert_eq!(pool.census().get(&State::Free), Some(&pool.frames()), "no frame is lost");
    pool.ids().return_all().unwrap();
    assert_eq!(storage.taken(), (1 + FAN_OUT + LEAVES) as u64, "no page id is lost");
    assert!(pool.counters().get(Counter::Evictions) > LEAVES as u64);
    let before: u64 = (0..LEAVES).map(|leaf| forest.read(leaf).unwrap()).sum();
    let again: u64 = (0..LEAVES).map(|leaf| forest.read(leaf).unwrap()).sum();
    assert_eq!(before, again);
}

/// One combination, under each kind of eviction and reclamation.
fn all_ways<L: Latching, T: HitHook, const SWIZZLES: bool>(
    policy_host: impl Fn(&Shape) -> HostedPolicy<T>,
) {
    let threads = if L::THREADS { 3 } else { 1 };
    if L::THREADS {
        let neighbours = !SWIZZLES;
        let (evictors, free) = (EvictionMode::threads(2), Share(0.25));
        for (frames, dirty) in [(16, Share(0.2)), (24, Share(0.0)), (24, Share(1.0))] {
            let cleaning = Some(Cleaning { dirty, free, neighbours });
            let options = PoolOptions { evictors, cleaning, ..tiny(frames) };
            run::<Made<L, T, SWIZZLES>>(options, policy_host(&shape(frames)), threads, 600);
        }
    }
    for evictors in [EvictionMode::Worker, EvictionMode::threads(2)] {
        if L::THREADS {
            let options = PoolOptions { evictors, read_ahead: true, ..tiny(24) };
            run::<Made<L, T, SWIZZLES>>(options, policy_host(&shape(24)), threads, 600);
        }
        for reclamation in [Reclamation::Version, Reclamation::Epoch] {
            for (frames, background_writer) in [(16, true), (24, false)] {
                let options =
                    PoolOptions { evictors, reclamation, background_writer, ..tiny(frames) };
                run::<Made<L, T, SWIZZLES>>(options, policy_host(&shape(frames)), threads, 600);
            }
        }
    }
}

type TouchOf<P> = <P as PolicySpec>::Hook;

#[test]
fn lean_evict_thrashes_with_swips_and_optimistic_latches() {
    all_ways::<Optimistic, TouchOf<LeanEvict>, true>(|shape| {
        HostedPolicy::exact::<LeanEvict>(&spec("lean-evict:cooling=30%"), shape).unwrap()
    });
}

#[test]
fn lean_evict_thrashes_with_swips_and_shared_latches() {
    all_ways::<Latched, TouchOf<LeanEvict>, true>(|shape| {
        HostedPolicy::exact::<LeanEvict>(&spec("lean-evict"), shape).unwrap()
    });
}

#[test]
fn lean_evict_thrashes_with_swips_and_no_latches() {
    all_ways::<Unlatched, TouchOf<LeanEvict>, true>(|shape| {
        HostedPolicy::exact::<LeanEvict>(&spec("lean-evict"), shape).unwrap()
    });
}

#[test]
fn lru_thrashes_with_a_page_table_and_shared_latches() {
    all_ways::<Latched, TouchOf<Lru>, false>(|shape| {
        HostedPolicy::exact::<Lru>(&spec("lru"), shape).unwrap()
    });
}

#[test]
fn lru_thrashes_with_swips() {
    all_ways::<Optimistic, TouchOf<Lru>, true>(|shape| {
        HostedPolicy::exact::<Lru>(&spec("lru"), shape).unwrap()
    });
}

#[test]
fn random_thrashes_open_with_a_page_table_and_optimistic_latches() {
    all_ways::<Optimistic, TouchOf<Random>, false>(|shape| {
        HostedPolicy::open::<Random>(&spec("random"), shape).unwrap()
    });
}

#[test]
fn watt_thrashes_open_with_swips() {
    all_ways::<Optimistic, TouchOf<Watt>, true>(|shape| {
        HostedPolicy::open::<Watt>(&spec("watt"), shape).unwrap()
    });
}

#[test]
fn the_structure_runs_on_the_twin_too() {
    let twin = Arc::new(Twin::<Optimistic>::new(PAGE).unwrap());
    let forest = Forest::new(twin, |_, _, _| {});
    for leaf in 0..LEAVES {
        for _ in 0..leaf {
            forest.count(leaf).unwrap();
        }
        assert_eq!(forest.read(leaf).unwrap(), leaf as u64);
    }
    assert_eq!(forest.drop_leaf(5).unwrap(), 5);
    forest.make(5).unwrap();
    assert_eq!(forest.read(5).unwrap(), 0);
}

type Simple = Pool<Made<Optimistic, TouchOf<Random>, true>>;

fn a_pool(frames: u32) -> (Arc<MemoryStorage>, Arc<Simple>) {
    let storage = Arc::new(MemoryStorage::new(PAGE));
    let hosted = HostedPolicy::open::<Random>(&spec("random"), &shape(frames)).unwrap();
    let options = PoolOptions { background_writer: false, ..tiny(frames) };
    (storage.clone(), Arc::new(Pool::open(options, storage, hosted).unwrap()))
}

#[test]
fn a_failed_read_is_an_error_and_the_next_one_works() {
    let (storage, pool) = a_pool(16);
    let forest = Forest::new(pool.clone(), register);
    forest.count(9).unwrap();
    pool.evict_all().unwrap();
    storage.reads_fail.store(1, Ordering::SeqCst);
    assert!(forest.read(9).unwrap_err().to_string().contains("a read failed"));
    assert_eq!(forest.read(9).unwrap(), 1);
}

#[test]
fn a_failed_write_leaves_the_page_dirty_and_the_next_one_works() {
    let (storage, pool) = a_pool(128);
    let forest = Forest::new(pool.clone(), register);
    forest.count(9).unwrap();
    let dirty = pool.frames_dirty();
    storage.writes_fail.store(u64::MAX, Ordering::SeqCst);
    assert!(pool.flush(Reason::Recov).is_err());
    assert_eq!(pool.frames_dirty(), dirty);
    // The batch fails, and then its pages one by one, but for the last.
    storage.writes_fail.store(1, Ordering::SeqCst);
    pool.flush(Reason::Recov).unwrap();
    assert_eq!(pool.evict_all().unwrap(), 0);
    assert_eq!(forest.read(9).unwrap(), 1);
}

#[test]
fn a_page_is_loaded_once_however_many_threads_ask() {
    let (storage, pool) = a_pool(128);
    let forest = Forest::new(pool.clone(), register);
    for _ in 0..50 {
        assert_eq!(pool.evict_all().unwrap(), 0);
        storage.reads.store(0, Ordering::SeqCst);
        let barrier = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    barrier.wait();
                    forest.read(20).unwrap();
                });
            }
        });
        assert_eq!(storage.reads.load(Ordering::SeqCst), 3, "root, inner page, leaf");
    }
}

#[test]
fn a_pool_too_small_or_of_odd_pages_is_refused() {
    let hosted = || HostedPolicy::open::<Random>(&spec("random"), &shape(4)).unwrap();
    let open = |frames, page| {
        Simple::open(tiny(frames), Arc::new(MemoryStorage::new(page)), hosted()).err()
    };
    assert!(open(4, 512).unwrap().to_string().contains("at least 8"));
    assert!(open(64, 1000).unwrap().to_string().contains("power of two"));
}
