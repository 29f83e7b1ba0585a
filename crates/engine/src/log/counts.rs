//! Statistics of a log.

use crate::stats::Statistics;
use crate::stats::counters::Counter;

/// Counts of a log's work since it was opened. Taken without locks: numbers that belong together
/// may differ by the work under way.
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
    /// Times that a writer waited for room: in the buffer, or until checkpoints had caught up.
    pub appends_stalled: u64,
    /// Segments added to the file.
    pub segments_grown: u64,
    /// Segments that were used again.
    pub segments_recycled: u64,
    /// Times that the file could not be made longer ahead of need.
    pub growth_failures: u64,
}

impl LogCounts {
    /// Returns the counts in `statistics`, and the bytes that were appended.
    pub(super) fn of(statistics: &Statistics, bytes_appended: u64) -> LogCounts {
        let get = |counter| statistics.counters.get(counter);
        LogCounts {
            bytes_appended,
            records_durable: get(Counter::LogRecords),
            bytes_written: get(Counter::LogBytesWritten),
            flushes: get(Counter::LogFlushes),
            syncs: get(Counter::LogSyncs),
            waits: get(Counter::LogWaits),
            waits_shared: get(Counter::LogWaitsShared),
            appends_stalled: get(Counter::LogSpaceWaits),
            segments_grown: get(Counter::LogSegmentsGrown),
            segments_recycled: get(Counter::LogSegmentsRecycled),
            growth_failures: get(Counter::LogGrowthFailures),
        }
    }
}
