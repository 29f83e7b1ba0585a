//! Counters and timings of calls.

use std::time::Instant;

use crate::stats::Statistics;
use crate::stats::counters::{Counter, Timing};

/// Counter and timing of a kind of calls.
#[derive(Clone, Copy)]
pub(crate) struct Meters {
    pub(crate) counter: Counter,
    pub(crate) timing: Timing,
}

/// Lookups.
pub(crate) const GET: Meters = Meters { counter: Counter::Gets, timing: Timing::GetTime };
/// Writes.
pub(crate) const PUT: Meters = Meters { counter: Counter::Puts, timing: Timing::PutTime };
/// Removals.
pub(crate) const DELETE: Meters = Meters { counter: Counter::Deletes, timing: Timing::DeleteTime };

/// Returns the counter and timing of a transaction's write.
pub(crate) fn write_of(value: Option<&[u8]>) -> Meters {
    if value.is_some() { PUT } else { DELETE }
}

/// Counts a scan, and its rows, when it is over.
pub(crate) struct ScanCount<'s> {
    statistics: &'s Statistics,
    /// Rows so far.
    pub(crate) rows: u64,
    started: Option<Instant>,
}

impl<'s> ScanCount<'s> {
    pub(crate) fn begin(statistics: &'s Statistics) -> ScanCount<'s> {
        let started = statistics.latencies.start(Timing::ScanTime);
        ScanCount { statistics, rows: 0, started }
    }
}

impl Drop for ScanCount<'_> {
    fn drop(&mut self) {
        let Statistics { counters, latencies } = self.statistics;
        counters.count(Counter::Scans);
        counters.add(Counter::ScanRows, self.rows);
        latencies.stop(Timing::ScanTime, self.started);
    }
}
