//! Pages that are written for the log's sake are those that keep the log.

use std::sync::Arc;

use millpond::internals::log::{Log, LogOptions};
use millpond::internals::pool::{HostedPolicy, Latched, Optimistic, Pool, PoolStrategy};
use millpond::internals::stats::counters::Counter;
use millpond_base::{FrameId, Lsn, Reason};
use millpond_device::MemoryDevice;
use millpond_policies::policy::Lru;

use super::forest::Forest;
use super::storage::{MemoryStorage, tiny};
use super::{LEAVES, Made, PAGE, TouchOf, register, shape, spec};

/// A checkpoint has chosen all leaves. While it writes the first of them, a cleaner writes the one
/// that is last in the row, which then changes again.
fn a_young_page_is_passed_by<M: PoolStrategy<Hook = TouchOf<Lru>>>() {
    let storage = Arc::new(MemoryStorage::new(PAGE));
    let hosted = HostedPolicy::exact::<Lru>(&spec("lru"), &shape(200)).unwrap();
    let log = Log::create(Arc::new(MemoryDevice::new()), [7; 16], Lsn(0), &LogOptions::default());
    let log = Arc::new(log.unwrap());
    let pool = Pool::<M>::open(tiny(200), storage.clone(), hosted).unwrap().logged(log.clone());
    let pool = Arc::new(pool);
    let forest = Arc::new(Forest::new(pool.clone(), register::<M>));
    pool.flush(Reason::Recov).unwrap();

    let dirty = |pool: &Pool<M>| -> Vec<FrameId> {
        pool.older(Lsn(u64::MAX)).into_iter().map(|(_, frame)| frame).collect()
    };
    let mut last = (FrameId(0), 0);
    for leaf in 0..LEAVES {
        let before = dirty(&pool);
        forest.count(leaf).unwrap();
        let new = dirty(&pool).into_iter().find(|frame| !before.contains(frame)).unwrap();
        last = last.max((new, leaf));
    }
    let (bound, (frame, leaf)) = (log.tail(), last);
    assert_eq!(dirty(&pool).last(), Some(&frame), "it is the last that a checkpoint writes");
    let meanwhile = {
        let (pool, forest) = (pool.clone(), forest.clone());
        move || {
            assert_eq!(pool.write_frames(&[frame], Reason::Replace).unwrap(), 1);
            forest.count(leaf).unwrap();
        }
    };
    *storage.meanwhile.lock().unwrap() = Some(Box::new(meanwhile));

    let before = pool.counters().get(Counter::WritesRecov);
    assert_eq!(pool.write_older(bound).unwrap() as usize, LEAVES - 1);
    assert_eq!(pool.counters().get(Counter::WritesRecov) - before, LEAVES as u64 - 1);
    assert_eq!(dirty(&pool), [frame], "the page that is young stays, and is dirty");
    // What the log may forget is what no page needs.
    assert!(pool.redo_bound() >= bound && pool.redo_bound() < log.tail());
    assert_eq!(pool.older(log.tail()), [(pool.redo_bound(), frame)]);
    assert_eq!(pool.write_older(log.tail()).unwrap(), 1, "when it is old it has its turn");
    assert_eq!(pool.redo_bound(), log.tail());
    assert_eq!(forest.read(leaf).unwrap(), 2);
}

#[test]
fn a_page_that_is_young_again_by_its_turn_is_not_written_for_the_logs_sake() {
    a_young_page_is_passed_by::<Made<Optimistic, TouchOf<Lru>, true>>();
    a_young_page_is_passed_by::<Made<Latched, TouchOf<Lru>, false>>();
}
