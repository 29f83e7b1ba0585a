//! What calls are counted as.

use std::time::Instant;

use crate::pool::stats::counters::{Counter, Counters, Timing};
use crate::pool::stats::histogram::Latencies;

/// Lookups.
pub(crate) const GET: (Counter, Timing) = (Counter::Gets, Timing::GetTime);
/// Writes.
pub(crate) const PUT: (Counter, Timing) = (Counter::Puts, Timing::PutTime);
/// Removals.
pub(crate) const DELETE: (Counter, Timing) = (Counter::Deletes, Timing::DeleteTime);

/// Counts a scan, and its rows, when it is over.
pub(crate) struct ScanCount<'s> {
    counters: &'s Counters,
    latencies: &'s Latencies,
    /// Rows so far.
    pub(crate) rows: u64,
    started: Option<Instant>,
}

impl<'s> ScanCount<'s> {
    pub(crate) fn begin(counters: &'s Counters, latencies: &'s Latencies) -> ScanCount<'s> {
        let started = latencies.start(Timing::ScanTime);
        ScanCount { counters, latencies, rows: 0, started }
    }
}

impl Drop for ScanCount<'_> {
    fn drop(&mut self) {
        self.counters.count(Counter::Scans);
        self.counters.add(Counter::ScanRows, self.rows);
        self.latencies.stop(Timing::ScanTime, self.started);
    }
}
