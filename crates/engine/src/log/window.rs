//! A part of the log in memory, for reading records one after the other.

use std::sync::Arc;

use millpond_device::AlignedBuffer;

use super::error::LogError;
use super::options::BLOCK;
use super::record::HEADER_MAX;
use super::record::Header;
use super::segments::Segments;

/// Number of bytes read ahead.
pub(super) const AHEAD: usize = 1 << 20;

/// Reads the bytes before `limit`.
pub(super) struct Window {
    segments: Arc<Segments>,
    buffer: AlignedBuffer,
    /// LSN of the buffer's first byte, a multiple of the block.
    begin: u64,
    /// Number of bytes filled in the buffer.
    filled: usize,
    /// Minimum number of bytes to read at a time.
    ahead: usize,
    limit: u64,
    salt: u64,
    /// True if unreadable blocks count as zeros.
    is_lenient: bool,
}

impl Window {
    pub(super) fn new(segments: Arc<Segments>, ahead: usize, limit: u64, salt: u64) -> Window {
        let buffer = AlignedBuffer::new(0);
        Window { segments, buffer, begin: 0, filled: 0, ahead, limit, salt, is_lenient: false }
    }

    /// Returns this window with unreadable blocks counted as zeros.
    pub(super) fn lenient(self) -> Window {
        Window { is_lenient: true, ..self }
    }

    /// Returns the end of the readable part.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    pub(super) fn set_limit(&mut self, limit: u64) {
        (self.limit, self.filled) = (limit, 0);
    }

    /// Returns `count` bytes at `lsn`, or `None` if they reach beyond the limit.
    pub(super) fn bytes(&mut self, lsn: u64, count: usize) -> Result<Option<&[u8]>, LogError> {
        let Some(end) = lsn.checked_add(count as u64).filter(|&end| end <= self.limit) else {
            return Ok(None);
        };
        if lsn < self.begin || end > self.begin + self.filled as u64 {
            self.fill(lsn, end)?;
        }
        debug_assert!(self.begin <= lsn, "the window begins before what is read");
        debug_assert!(end <= self.begin + self.filled as u64, "the window reaches to what is read");
        let at = (lsn - self.begin) as usize;
        Ok(Some(&self.buffer[at..at + count]))
    }

    fn fill(&mut self, lsn: u64, end: u64) -> Result<(), LogError> {
        debug_assert!(lsn <= end && end <= self.limit, "what is read lies before the limit");
        let begin = lsn - lsn % BLOCK;
        let most = (begin + self.ahead as u64).min(self.limit);
        let count = (end.max(most) - begin).next_multiple_of(BLOCK) as usize;
        if self.buffer.len() < count {
            self.buffer = AlignedBuffer::new(count);
        }
        self.filled = 0;
        if let Err(error) = self.segments.read(begin, &mut self.buffer[..count]) {
            if !self.is_lenient {
                return Err(error);
            }
            let blocks = self.buffer[..count].chunks_mut(BLOCK as usize);
            for (at, block) in (begin..).step_by(BLOCK as usize).zip(blocks) {
                if self.segments.read(at, block).is_err() {
                    block.fill(0);
                }
            }
        }
        (self.begin, self.filled) = (begin, count);
        Ok(())
    }

    /// Returns the header of a record that may begin at `lsn`, if the bytes look like one.
    pub(super) fn header(&mut self, lsn: u64) -> Result<Option<Header>, LogError> {
        let count = self.limit.saturating_sub(lsn).min(HEADER_MAX as u64);
        let salt = self.salt;
        let head = self.bytes(lsn, count as usize)?;
        Ok(head.and_then(|head| Header::decode(lsn, head, salt)))
    }

    /// Returns the record at `lsn`, or `None` if there is no whole one.
    pub(super) fn record(&mut self, lsn: u64) -> Result<Option<(Header, &[u8])>, LogError> {
        let Some(header) = self.header(lsn)? else { return Ok(None) };
        let salt = self.salt;
        let Some(bytes) = self.bytes(lsn, header.length())? else { return Ok(None) };
        let is_whole = header.verifies(bytes, salt);
        Ok(is_whole.then(|| (header, &bytes[header.body()])))
    }
}
