//! Counters and timings of calls.

use std::time::Instant;

use crate::stats::Statistics;
use crate::stats::counters::{Counter, Timing};

/// Counter and timing of one kind of call.
#[derive(Clone, Copy)]
pub(crate) struct Meters {
    pub(crate) counter: Counter,
    pub(crate) timing: Timing,
}

/// Counter and timing of lookups.
pub(crate) const GET: Meters = Meters { counter: Counter::Gets, timing: Timing::GetTime };
/// Counter and timing of writes.
pub(crate) const PUT: Meters = Meters { counter: Counter::Puts, timing: Timing::PutTime };
/// Counter and timing of removals.
pub(crate) const DELETE: Meters = Meters { counter: Counter::Deletes, timing: Timing::DeleteTime };

/// Returns the counter and timing of a transaction's write.
pub(crate) fn write_of(value: Option<&[u8]>) -> Meters {
    if value.is_some() { PUT } else { DELETE }
}

/// Counts a scan and its rows when it is dropped.
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
