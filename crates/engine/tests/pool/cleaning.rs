//! Page cleaners: the dirty share, the free list, and neighbours (li 2.1.1).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use millpond::internals::pool::{EvictionMode, Latched, Optimistic, PoolOptions, PoolStrategy};
use millpond::internals::pool::{HostedPolicy, Pool, Workers};
use millpond::internals::stats::counters::Counter;
use millpond_base::cleaning::Cleaning;
use millpond_base::{FrameId, Lsn, Reason, Share};
use millpond_policies::policy::Lru;

use super::forest::Forest;
use super::storage::{MemoryStorage, tiny};
use super::{LEAVES, Made, PAGE, TouchOf, register, shape, spec};

type Swizzled = Made<Optimistic, TouchOf<Lru>, true>;
type Hashed = Made<Latched, TouchOf<Lru>, false>;

struct World<M: PoolStrategy> {
    storage: Arc<MemoryStorage>,
    pool: Arc<Pool<M>>,
    forest: Forest<Pool<M>>,
}

/// A pool that all pages fit into, all of which are clean and in memory.
fn world<M: PoolStrategy<Hook = TouchOf<Lru>>>(frames: u32, cleaning: Cleaning) -> World<M> {
    let storage = Arc::new(MemoryStorage::new(PAGE));
    let hosted = HostedPolicy::exact::<Lru>(&spec("lru"), &shape(frames)).unwrap();
    let (evictors, cleaning) = (EvictionMode::threads(2), Some(cleaning));
    let options = PoolOptions { evictors, cleaning, ..tiny(frames) };
    let pool = Arc::new(Pool::<M>::open(options, storage.clone(), hosted).unwrap());
    let forest = Forest::new(pool.clone(), register::<M>);
    pool.flush(Reason::Recov).unwrap();
    World { storage, pool, forest }
}

/// Waits for the cleaners' own work.
fn until(what: impl Fn() -> bool) {
    while !what() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn the_dirty_share_is_kept<M: PoolStrategy<Hook = TouchOf<Lru>>>() {
    let (free, neighbours) = (Share(0.02), false);
    let World { storage, pool, forest } =
        world::<M>(200, Cleaning { dirty: Share(0.1), free, neighbours });
    let most = 20;
    let workers = Workers::start(pool.clone()).unwrap();
    let counters = || pool.counters();
    for leaf in 0..LEAVES {
        forest.count(leaf).unwrap();
    }
    assert!(LEAVES > 3 * most as usize, "more than may be dirty");
    until(|| pool.frames_dirty() <= most);
    // A page is clean from when its write begins, and counted when that has ended.
    drop(workers);
    let written = counters().get(Counter::WritesReplace);
    assert!(written as usize >= LEAVES - most as usize, "{written} pages were cleaned");
    assert_eq!(counters().get(Counter::WritesSynch), 0, "no worker had to write");
    // What was cleaned stands by: nothing is read to look at it.
    storage.reads.store(0, Ordering::SeqCst);
    for leaf in 0..LEAVES {
        assert_eq!(forest.read(leaf).unwrap(), 1);
    }
    assert_eq!(storage.reads.load(Ordering::SeqCst), 0);
    let rescued = counters().get(Counter::Rescues);
    assert!(rescued as usize >= LEAVES / 2, "{rescued} pages were rescued");
    pool.check_policy().unwrap();
    assert_eq!(pool.flush(Reason::Recov).and_then(|_| pool.evict_all()).unwrap(), 0);
    assert!((0..LEAVES).all(|leaf| forest.read(leaf).unwrap() == 1));
}

#[test]
fn pages_are_cleaned_once_too_many_are_dirty_and_are_rescued_from_the_free_list() {
    the_dirty_share_is_kept::<Swizzled>();
    the_dirty_share_is_kept::<Hashed>();
}

/// Frames of the free list are handed out, the oldest first, and the pages of the remaining ones
/// can still be rescued.
#[test]
fn who_needs_frames_gets_those_of_the_free_list() {
    // With 30 of 40 frames kept free, few pages are not in the free list.
    let free = Share(0.75);
    let cleaning = Cleaning { dirty: Share(1.0), free, neighbours: false };
    let World { storage, pool, forest } = world::<Swizzled>(40, cleaning);
    let workers = Workers::start(pool.clone()).unwrap();
    for round in 1..=20 {
        for leaf in 0..LEAVES {
            forest.count(leaf).unwrap();
            assert_eq!(forest.read(leaf).unwrap(), round);
        }
    }
    let reads = storage.reads.load(Ordering::SeqCst);
    drop(workers);
    pool.check_policy().unwrap();
    let misses = pool.counters().get(Counter::Misses);
    assert!(reads >= misses && misses > 10 * LEAVES as u64, "{reads} reads, {misses} misses");
    assert!(pool.counters().get(Counter::Rescues) > 0);
}

/// Pages are dirty here and there: with one that is written those go that lie beside it in a row.
#[test]
fn neighbours_are_written_with_a_page_and_stay() {
    let (dirty, free) = (Share(1.0), Share(0.0));
    let written = |neighbours| {
        let World { pool, forest, .. } = world::<Hashed>(200, Cleaning { dirty, free, neighbours });
        for leaf in [3, 4, 5, 7, 20] {
            forest.count(leaf).unwrap();
        }
        let dirty = || -> Vec<FrameId> {
            pool.older(Lsn(u64::MAX)).into_iter().map(|(_, frame)| frame).collect()
        };
        assert_eq!(dirty().len(), 5);
        let written = pool.write_frames(&dirty()[..1], Reason::Replace).unwrap();
        assert_eq!(dirty().len(), 5 - written as usize);
        assert_eq!(pool.write_frames(&dirty()[..1], Reason::Synch).unwrap(), 1);
        written
    };
    assert_eq!((written(false), written(true)), (1, 3));
}
