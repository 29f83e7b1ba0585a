//! Back-pressure: writers do not outrun checkpoints.
//!
//! Checkpoints let the log be reused, and bound the log that a recovery has to read. They are taken
//! in the background. A device that writes pages more slowly than the log takes records would fall
//! behind for good. So the LSN gap, from the redo LSN to the log's tail, not only triggers
//! checkpoints (at a half). From three quarters on, a thread that begins to write sleeps a moment;
//! at the whole gap it waits until a checkpoint has caught up.
//!
//! No thread waits here under a latch. A checkpoint needs no locks, so the locks of a waiting
//! transaction do not delay it. If checkpoints fail, no thread waits for them.

use std::sync::Condvar;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use millpond_base::Lsn;
use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::Mutex;

use crate::stats::{Statistics, Wait};

/// Time that a writer sleeps once the gap is three quarters of its maximum.
const MOMENT: Duration = Duration::from_micros(100);
/// Longest wait of a writer for a checkpoint. After that, checkpoints have a problem, and it is
/// better to write than to hang.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two checks by a waiting writer.
const LOOK: Duration = Duration::from_millis(20);

/// The bound of the gap between the redo LSN and the log's tail.
pub struct LogRoom {
    /// The gap in bytes; [`u64::MAX`] if there is no bound.
    gap: AtomicU64,
    redo: AtomicU64,
    /// Set while checkpoints fail: waiting for one is useless.
    failing: AtomicBool,
    moved: Condvar,
    moving: Mutex<()>,
}

impl LogRoom {
    pub(super) fn new() -> LogRoom {
        LogRoom {
            gap: AtomicU64::new(u64::MAX),
            redo: AtomicU64::new(0),
            failing: AtomicBool::new(false),
            moved: Condvar::new(),
            moving: Mutex::new(()),
        }
    }

    /// Records a checkpoint with the redo LSN `redo`. From there the log may take about `gap`
    /// bytes.
    pub fn begins_at(&self, redo: Lsn, gap: u64) {
        self.gap.store(gap, Ordering::Release);
        self.redo.store(redo.0, Ordering::Release);
        self.failing.store(false, Ordering::Release);
        drop(self.moving.lock().past_poison());
        self.moved.notify_all();
    }

    /// Records that a checkpoint failed.
    pub fn failed(&self) {
        self.failing.store(true, Ordering::Release);
        self.moved.notify_all();
    }

    /// Waits until there is room for records behind `tail`, and counts a wait in `statistics`.
    #[inline]
    pub(super) fn wait(&self, statistics: &Statistics, tail: impl Fn() -> Lsn) {
        let gap = self.gap.load(Ordering::Acquire);
        if gap != u64::MAX && self.used(tail()) > gap / 4 * 3 {
            self.wait_slowly(statistics, gap, tail);
        }
    }

    /// Returns the bytes of log that a recovery would have to read if the log ended at `tail`.
    pub fn lead(&self, tail: Lsn) -> u64 {
        let has_begun = self.gap.load(Ordering::Acquire) != u64::MAX;
        if has_begun { self.used(tail) } else { 0 }
    }

    fn used(&self, tail: Lsn) -> u64 {
        tail.0.saturating_sub(self.redo.load(Ordering::Acquire))
    }

    #[cold]
    fn wait_slowly(&self, statistics: &Statistics, gap: u64, tail: impl Fn() -> Lsn) {
        if self.failing.load(Ordering::Acquire) {
            return;
        }
        let _waiting = statistics.wait(Wait::LogSpace);
        std::thread::sleep(MOMENT);
        let begun = Instant::now();
        let mut guard = self.moving.lock().past_poison();
        while self.used(tail()) > gap
            && !self.failing.load(Ordering::Acquire)
            && begun.elapsed() < PATIENCE
        {
            guard = match self.moved.wait_timeout(guard, LOOK) {
                Ok((guard, _)) => guard,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_writer_waits_for_room_and_not_for_checkpoints_that_fail() {
        let room = Arc::new(LogRoom::new());
        let statistics = Arc::new(Statistics::default());
        room.wait(&statistics, || Lsn(1 << 50));
        room.begins_at(Lsn(5000), 1000);
        room.wait(&statistics, || Lsn(5700));
        assert_eq!(statistics.counters.get(Wait::LogSpace.counter()), 0);
        room.wait(&statistics, || Lsn(6000));
        assert_eq!(statistics.counters.get(Wait::LogSpace.counter()), 1);
        assert_eq!(room.lead(Lsn(6000)), 1000);
        let (waiting, counted) = (room.clone(), statistics.clone());
        let writer = std::thread::spawn(move || {
            waiting.wait(&counted, || Lsn(6001));
            waiting.used(Lsn(6001))
        });
        while statistics.counters.level(Wait::LogSpace.gauge()) == 0 {
            std::thread::yield_now();
        }
        room.begins_at(Lsn(5500), 1000);
        assert!(writer.join().unwrap() <= 1000);
        room.failed();
        room.wait(&statistics, || Lsn(9000));
        assert_eq!(statistics.counters.get(Wait::LogSpace.counter()), 2);
    }
}
