//! Statistics of the lock manager: only events that are slow anyway, so that counting costs
//! nothing.

use crate::stats::Statistics;
use crate::stats::counters::{Counter, Timing};

/// Event counts since the manager was created.
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
