//! Reading ahead of misses that continue a sequence of page ids (li 5.6.1.3).

use std::sync::{Arc, Mutex};

use millpond::internals::pool::{EvictionMode, Latched, Latching, Optimistic, PoolOptions};
use millpond::internals::pool::{HostedPolicy, Pool, PoolStrategy, State, Workers};
use millpond::internals::pool::{StorageRequest, StorageSink};
use millpond::internals::stats::counters::Counter;
use millpond::internals::store::combinations::Compiled;
use millpond_base::{PageId, Reason};
use millpond_policies::policy::Lru;

use super::forest::{FAN_OUT, Forest};
use super::storage::{MemoryStorage, tiny};
use super::{LEAVES, PAGE, TouchOf, register, shape, spec};

type Made<L, const SWIZZLES: bool> = Compiled<L, TouchOf<Lru>, SWIZZLES>;

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<StorageRequest>>>);

impl StorageSink for Sink {
    fn take(&mut self, requests: &[StorageRequest]) -> Result<(), String> {
        self.0.lock().unwrap().extend_from_slice(requests);
        Ok(())
    }
}

/// Waits until the reading thread has begun, and has done all requested reads; nothing is in memory
/// then.
fn until_orders_are_taken<M: PoolStrategy>(pool: &Pool<M>, forest: &Forest<Pool<M>>) {
    let count = |counter| pool.counters().get(counter);
    while count(Counter::Prefetches) == 0 {
        pool.evict_all().unwrap();
        forest.prefetch(0).unwrap();
        std::thread::yield_now();
    }
    let is_free = || pool.census().get(&State::Free) == Some(&pool.frames());
    while count(Counter::ReadsAhead) < count(Counter::Prefetches) || !is_free() {
        pool.evict_all().unwrap();
        std::thread::yield_now();
    }
}

/// Counts of a visit to all leaves, one after the other, in a pool without any of them.
struct Looked {
    misses: u64,
    ahead: u64,
    unused: u64,
    recorded: Vec<PageId>,
}

fn look<L: Latching, const SWIZZLES: bool>(read_ahead: bool) -> Looked {
    let storage = Arc::new(MemoryStorage::new(PAGE));
    let frames = 100;
    let hosted = HostedPolicy::exact::<Lru>(&spec("lru"), &shape(frames)).unwrap();
    let options = PoolOptions { read_ahead, ..tiny(frames) };
    let pool = Pool::<Made<L, SWIZZLES>>::open(options, storage, hosted).unwrap();
    let pool = Arc::new(pool);
    let forest = Forest::new(pool.clone(), register);
    for leaf in 0..LEAVES {
        forest.count(leaf).unwrap();
    }
    pool.flush(Reason::Recov).unwrap();
    let workers = Workers::start(pool.clone()).unwrap();
    until_orders_are_taken(&pool, &forest);
    let counted = || {
        use Counter::{Misses, PrefetchHits, Prefetches, ReadsAhead};
        [Misses, ReadsAhead, Prefetches, PrefetchHits].map(|counter| pool.counters().get(counter))
    };
    let (before, sink) = (counted(), Sink::default());
    pool.storage_recorder().start(Box::new(sink.clone()));
    for leaf in 0..LEAVES {
        assert_eq!(forest.read(leaf).unwrap(), 1);
    }
    drop(workers);
    pool.storage_recorder().stop().unwrap();
    pool.check_policy().unwrap();
    let after = counted();
    let [misses, ahead, ordered, used] = [0, 1, 2, 3].map(|at| after[at] - before[at]);
    assert_eq!(ahead, ordered, "what was ordered was read");
    let recorded = sink.0.lock().unwrap().iter().map(|request| request.page).collect();
    Looked { misses, ahead, unused: ahead - used, recorded }
}

fn leaves_are_read_ahead<L: Latching, const SWIZZLES: bool>() {
    let all = (1 + FAN_OUT + LEAVES) as u64;
    let plain = look::<L, SWIZZLES>(false);
    assert_eq!((plain.misses, plain.ahead), (all, 0));
    let looked = look::<L, SWIZZLES>(true);
    // Without a table the first two leaves of a parent are missed, and the third; and there may be
    // the end of an extent. No page is read that none of them asked for, and none twice.
    assert_eq!(looked.misses + looked.ahead, all);
    assert!(looked.ahead >= (LEAVES - 3 * FAN_OUT - 3) as u64, "{} of {all}", looked.ahead);
    assert_eq!(looked.unused, 0, "each was needed");
    // A reader of the trace sees them as it sees those that were missed.
    let (mut expected, mut recorded) = (plain.recorded, looked.recorded);
    expected.sort_unstable();
    recorded.sort_unstable();
    assert_eq!(recorded, expected);
}

#[test]
fn a_reader_of_pages_in_sequence_finds_what_follows_in_memory() {
    leaves_are_read_ahead::<Optimistic, true>();
    leaves_are_read_ahead::<Latched, true>();
    leaves_are_read_ahead::<Optimistic, false>();
    leaves_are_read_ahead::<Latched, false>();
}

/// Threads walk through the leaves, each its own way, in a pool that has room for few of them.
fn walkers<L: Latching, const SWIZZLES: bool>(frames: u32, evictors: EvictionMode) {
    const THREADS: usize = 3;
    let storage = Arc::new(MemoryStorage::new(PAGE));
    let hosted = HostedPolicy::exact::<Lru>(&spec("lru"), &shape(frames)).unwrap();
    let options = PoolOptions { evictors, read_ahead: true, ..tiny(frames) };
    let pool = Pool::<Made<L, SWIZZLES>>::open(options, storage, hosted).unwrap();
    let pool = Arc::new(pool);
    let workers = Workers::start(pool.clone()).unwrap();
    let forest = Forest::new(pool.clone(), register);
    until_orders_are_taken(&pool, &forest);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let forest = &forest;
            scope.spawn(move || {
                for round in 0..20 {
                    for leaf in 0..LEAVES {
                        if leaf % THREADS == thread {
                            assert_eq!(forest.read(leaf).unwrap(), round);
                            forest.count(leaf).unwrap();
                        } else {
                            assert!(forest.read(leaf).unwrap() <= 20);
                        }
                    }
                }
            });
        }
    });
    drop(workers);
    pool.check_policy().unwrap();
    let counters = pool.counters();
    let (misses, ahead) = (counters.get(Counter::Misses), counters.get(Counter::ReadsAhead));
    assert!(misses > LEAVES as u64 && ahead > 10, "{misses} missed, {ahead} ahead");
    pool.flush(Reason::Recov).unwrap();
    assert_eq!(pool.evict_all().unwrap(), 0, "nothing that nobody needed stays");
    assert!((0..LEAVES).all(|leaf| forest.read(leaf).unwrap() == 20));
}

#[test]
fn threads_that_walk_beside_each_other_read_ahead_and_find_what_they_wrote() {
    for evictors in [EvictionMode::Worker, EvictionMode::threads(2)] {
        for frames in [32, 48] {
            walkers::<Optimistic, true>(frames, evictors);
            walkers::<Latched, true>(frames, evictors);
            walkers::<Optimistic, false>(frames, evictors);
        }
    }
}
