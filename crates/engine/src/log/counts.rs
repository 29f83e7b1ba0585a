//! Statistics of a log.

use crate::stats::Statistics;
use crate::stats::counters::Counter;

/// Counts of a log's work since it was opened. They are read without locks: related numbers may
/// differ by the work in progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogCounts {
    /// Bytes reserved for records, headers and padding included.
    pub bytes_appended: u64,
    /// Number of records that became durable.
    pub records_durable: u64,
    /// Bytes written to the device, whole blocks and segment headers included.
    pub bytes_written: u64,
    /// Number of flushes: records were written and synced.
    pub flushes: u64,
    /// Number of syncs of the device.
    pub syncs: u64,
    /// Number of times that a thread had to wait until a record was durable.
    pub waits: u64,
    /// Number of those waits that another thread's flush served.
    pub waits_shared: u64,
    /// Number of times that a writer waited for room in the buffer, or for checkpoints to catch up.
    pub appends_stalled: u64,
    /// Number of segments added to the file.
    pub segments_grown: u64,
    /// Number of segments reused.
    pub segments_recycled: u64,
    /// Number of times that the file could not grow ahead of need.
    pub growth_failures: u64,
}

impl LogCounts {
    /// Returns the counts in `statistics`, with the number of bytes appended.
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
