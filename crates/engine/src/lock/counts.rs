//! Statistics of the lock manager. Only events that are slow anyway are counted, so that counting
//! costs nothing.

use crate::stats::Statistics;
use crate::stats::counters::{Counter, Timing};

/// Event counts since the manager was created.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct LockCounts {
    /// Number of requests that had to wait.
    pub waits: u64,
    /// Total time of those waits in microseconds.
    pub waited_us: u64,
    /// Number of deadlocks broken.
    pub deadlocks: u64,
    /// Number of requests that waited too long.
    pub timeouts: u64,
    /// Number of escalations: a tree was locked as a whole instead of many keys.
    pub escalations: u64,
    /// Number of escalations that other owners' locks prevented.
    pub escalations_refused: u64,
    /// Number of requests that failed for lack of memory.
    pub out_of_memory: u64,
}

impl LockCounts {
    pub(super) fn of(statistics: &Statistics) -> LockCounts {
        let get = |counter| statistics.counters.get(counter);
        LockCounts {
            waits: get(Counter::LockWaits),
            waited_us: statistics.latencies.merged(Timing::LockTime).sum_ns / 1000,
            deadlocks: get(Counter::Deadlocks),
            timeouts: get(Counter::LockTimeouts),
            escalations: get(Counter::LockEscalations),
            escalations_refused: get(Counter::LockEscalationsRefused),
            out_of_memory: get(Counter::LockMemoryRefusals),
        }
    }
}
