//! Copies the end of a log for a backup, while the log is in use. The copy is a log of its own, of
//! the same store.
//!
//! Records are verified by their LSN and by the store's id (rule 4), so a copy keeps both: it has
//! segments of the same size and numbers, and ends at a durable position. Segments are copied
//! unchanged; behind the end there are zeros (rule 3). The copied bytes do not change in the
//! meantime: bytes before a durable position never change, even where their block is written again,
//! and the caller ensures that none of their segments is forgotten.

use std::sync::Arc;

use millpond_base::Lsn;
use millpond_device::{AlignedBuffer, Device, DeviceError};

use super::error::LogError;
use super::log::Log;
use super::options::BLOCK;
use super::segments::Segments;
use super::slots;

/// The error of a copy of the log.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The log could not be read or made durable.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The copy could not be written.
    #[error(transparent)]
    Target(#[from] DeviceError),
}

/// A copy in progress.
pub struct LogCopy {
    segments: Arc<Segments>,
    uuid: [u8; 16],
    /// Position to copy next, the beginning of a block.
    at: u64,
    /// Position at which the first segment begins.
    begin: u64,
    /// Position at which the copy ends.
    end: u64,
}

impl Log {
    /// Returns a copy from the segment that holds `from` to everything appended before this call,
    /// which becomes durable first. Nothing of it may be forgotten before the copy is complete.
    ///
    /// # Errors
    /// If the log takes nothing more, or has forgotten `from`.
    pub fn copy(&self, from: Lsn) -> Result<LogCopy, LogError> {
        self.wait_durable(self.tail())?;
        let segments = self.shared.segments.clone();
        let end = self.durable().0;
        let begin = segments.sequence(from.0.min(end)) * segments.size();
        segments.offset(begin)?;
        debug_assert!(begin <= end, "a copy begins before its end");
        let uuid = segments.uuid();
        Ok(LogCopy { segments, uuid, at: begin, begin, end })
    }
}

impl LogCopy {
    /// Returns the end of the last record in the copy.
    pub fn end(&self) -> Lsn {
        Lsn(self.end)
    }

    /// Returns the number of bytes of records copied, gaps included, and their total.
    pub fn progress(&self) -> (u64, u64) {
        (self.at.min(self.end) - self.begin, self.end - self.begin)
    }

    /// Appends the next part to `target`, which was empty at first. A part is at most as long as
    /// `buffer`, a multiple of 4096 bytes. Returns `false` if nothing was left. The copy is durable
    /// once the target is synced.
    ///
    /// # Errors
    /// If the log cannot be read or `target` cannot be written. The copy is then useless.
    pub fn step(
        &mut self,
        target: &dyn Device,
        buffer: &mut AlignedBuffer,
    ) -> Result<bool, CopyError> {
        let size = self.segments.size();
        if self.at == self.begin && target.length() == 0 {
            target.append(&slots::log_header(&self.uuid, size))?;
        }
        if self.at >= self.end {
            return Ok(false);
        }
        if self.at.is_multiple_of(size) {
            let header = slots::slot_header(&self.uuid, self.segments.sequence(self.at));
            target.append(&header)?;
        }
        debug_assert!(self.at.is_multiple_of(BLOCK), "whole blocks are copied");
        debug_assert!(!buffer.is_empty(), "a part has bytes");
        debug_assert!((buffer.len() as u64).is_multiple_of(BLOCK), "a part consists of blocks");
        let held = (size - self.at % size).min(buffer.len() as u64).min(self.end - self.at);
        let count = held.next_multiple_of(BLOCK);
        let bytes = &mut buffer[..count as usize];
        self.segments.read(self.at, bytes)?;
        bytes[held as usize..].fill(0);
        target.append(bytes)?;
        self.at += count;
        Ok(true)
    }
}

impl std::fmt::Debug for LogCopy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogCopy").field("at", &self.at).field("end", &self.end).finish()
    }
}
