//! Statistics of the lock manager: only events that are slow anyway, so that counting costs
//! nothing.

use std::sync::atomic::{AtomicU64, Ordering};

/// How often things happened since the manager was made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct LockCounts {
    /// Requests that had to wait.
    pub waits: u64,
    /// Microseconds that they waited, all together.
    pub waited_us: u64,
    /// Deadlocks that were broken.
    pub deadlocks: u64,
    /// Requests that waited too long.
    pub timeouts: u64,
    /// Trees that were locked as a whole in place of many keys.
    pub escalations: u64,
    /// Tries to do so that others' locks prevented.
    pub escalations_refused: u64,
    /// Requests that failed for want of memory.
    pub out_of_memory: u64,
}

/// The counters. Std's atomics under a model checker, too: nothing depends on them.
#[derive(Default)]
pub(super) struct Counters {
    pub waits: AtomicU64,
    pub waited_us: AtomicU64,
    pub deadlocks: AtomicU64,
    pub timeouts: AtomicU64,
    pub escalations: AtomicU64,
    pub escalations_refused: AtomicU64,
    pub out_of_memory: AtomicU64,
}

impl Counters {
    pub fn read(&self) -> LockCounts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LockCounts {
            waits: of(&self.waits),
            waited_us: of(&self.waited_us),
            deadlocks: of(&self.deadlocks),
            timeouts: of(&self.timeouts),
            escalations: of(&self.escalations),
            escalations_refused: of(&self.escalations_refused),
            out_of_memory: of(&self.out_of_memory),
        }
    }
}

/// Adds one.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
