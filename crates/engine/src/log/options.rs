//! Options for opening a log.

use std::path::Path;
use std::time::Duration;

use super::error::LogError;

/// Bytes of a block: the log writes only whole blocks, at multiples of this.
pub(super) const BLOCK: u64 = 4096;

/// The smallest segment and the smallest buffer, in bytes.
const LEAST: u64 = 16 << 10;
/// The largest segment and the largest buffer, in bytes.
const MOST: u64 = 1 << 30;

/// Sizes and times of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogOptions {
    /// Record bytes of a segment: a multiple of 4096, 16 KiB to 1 GiB. The file is recycled in
    /// segments; it grows by half of its length up to one segment, and then by segments. An
    /// existing log keeps the size that it was created with.
    pub segment_bytes: u64,
    /// Memory for records that are not durable yet: a power of two, 16 KiB to 1 GiB. No record is
    /// longer than a quarter of it.
    pub buffer_bytes: usize,
    /// Time after which the background thread makes a record durable, if no other thread does. With
    /// zero there is no background thread: records become durable when a thread waits for them or
    /// the buffer is full, and the file grows only when it must.
    pub flush_interval: Duration,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions {
            segment_bytes: 4 << 20,
            buffer_bytes: 4 << 20,
            flush_interval: Duration::from_millis(10),
        }
    }
}

impl LogOptions {
    /// Refuses impossible sizes; `path` is the log's, for the message.
    pub(super) fn check(&self, path: &Path) -> Result<(), LogError> {
        let refuse = |option, value, rule| {
            Err(LogError::BadOption { path: path.to_path_buf(), option, value, rule })
        };
        if !is_segment_size(self.segment_bytes) {
            let rule = "must be a multiple of 4096 from 16 KiB to 1 GiB";
            return refuse("segment_bytes", self.segment_bytes, rule);
        }
        let buffer = self.buffer_bytes as u64;
        if !buffer.is_power_of_two() || !(LEAST..=MOST).contains(&buffer) {
            return refuse("buffer_bytes", buffer, "must be a power of two from 16 KiB to 1 GiB");
        }
        Ok(())
    }
}

/// Bytes of the largest buffer that a store gives its log. Whatever buffer the log had before, no
/// more than these were in flight when the power failed. So opening clears as many bytes behind the
/// end.
pub(crate) const BUFFER_MAX: usize = 4 << 20;

/// Returns whether `bytes` is a valid size of segments.
pub(super) fn is_segment_size(bytes: u64) -> bool {
    bytes.is_multiple_of(BLOCK) && (LEAST..=MOST).contains(&bytes)
}
