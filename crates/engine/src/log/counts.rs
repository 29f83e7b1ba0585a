//! Statistics of a log.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a log has done since it was opened. Counted without locks: numbers that belong together
/// may be apart by what is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogCounts {
    /// Bytes reserved for records, headers and padding included.
    pub bytes_appended: u64,
    /// Records that became durable.
    pub records_durable: u64,
    /// Bytes written to the device, whole blocks and segment headers included.
    pub bytes_written: u64,
    /// Times that records were written and synced.
    pub flushes: u64,
    /// Syncs of the device.
    pub syncs: u64,
    /// Times that somebody had to wait until a record was durable.
    pub waits: u64,
    /// Of these, how many were served by somebody else's flush.
    pub waits_shared: u64,
    /// Appends that found the buffer full.
    pub appends_stalled: u64,
    /// Segments added to the file.
    pub segments_grown: u64,
    /// Segments that were used again.
    pub segments_recycled: u64,
    /// Times that the file could not be made longer ahead of need.
    pub growth_failures: u64,
}

/// The counters themselves. Written by the thread that flushes, which is rare.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) records: AtomicU64,
    pub(super) bytes_written: AtomicU64,
    pub(super) flushes: AtomicU64,
    pub(super) syncs: AtomicU64,
    pub(super) waits: AtomicU64,
    pub(super) waits_shared: AtomicU64,
    pub(super) stalls: AtomicU64,
    pub(super) grown: AtomicU64,
    pub(super) recycled: AtomicU64,
    pub(super) growth_failures: AtomicU64,
}

impl Counters {
    pub(super) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    pub(super) fn snapshot(&self, bytes_appended: u64) -> LogCounts {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LogCounts {
            bytes_appended,
            records_durable: get(&self.records),
            bytes_written: get(&self.bytes_written),
            flushes: get(&self.flushes),
            syncs: get(&self.syncs),
            waits: get(&self.waits),
            waits_shared: get(&self.waits_shared),
            appends_stalled: get(&self.stalls),
            segments_grown: get(&self.grown),
            segments_recycled: get(&self.recycled),
            growth_failures: get(&self.growth_failures),
        }
    }
}
