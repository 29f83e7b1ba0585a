//! Zeroing and trimming of ranges.

use std::io::IoSlice;
use std::ops::Range;

use millpond_base::Reason;
use millpond_device::{DeviceError, WriteRequest};

use super::error::VolumeError;
use super::requests::{Volume, ZEROS};

/// Bytes zeroed at a time, while their blocks are held.
const STEP: u64 = 16 << 20;

impl Volume {
    /// Zeroes bytes. Unless `keeps_room`, whole blocks of them may become a hole of the file.
    ///
    /// # Errors
    /// Same as [`Volume::write`].
    pub fn write_zeros(
        &self,
        offset: u64,
        length: u32,
        keeps_room: bool,
        is_durable: bool,
    ) -> Result<(), VolumeError> {
        self.check_writable()?;
        self.check(offset, length.into())?;
        let (block, end) = (u64::from(self.block), offset + u64::from(length));
        let whole = offset.div_ceil(block)..end / block;
        if whole.is_empty() {
            let room = self.room(offset, length);
            return self.write(offset, room, Reason::None, is_durable);
        }
        let edges = [offset..whole.start * block, whole.end * block..end];
        for edge in edges.into_iter().filter(|edge| !edge.is_empty()) {
            let room = self.room(edge.start, (edge.end - edge.start) as u32);
            self.write(edge.start, room, Reason::None, false)?;
        }
        self.clear(whole, keeps_room)?;
        if is_durable { self.sync_blocks(offset / block..end.div_ceil(block)) } else { Ok(()) }
    }

    /// Discards bytes: whole blocks become zeros, and a hole where the file can have one. Partial
    /// blocks keep their content.
    ///
    /// # Errors
    /// Same as [`Volume::write`].
    pub fn trim(&self, offset: u64, length: u32, is_durable: bool) -> Result<(), VolumeError> {
        self.check_writable()?;
        self.check(offset, length.into())?;
        let (block, end) = (u64::from(self.block), offset + u64::from(length));
        let whole = offset.div_ceil(block)..end / block;
        if whole.is_empty() {
            return Ok(());
        }
        self.clear(whole.clone(), false)?;
        if is_durable { self.sync_blocks(whole) } else { Ok(()) }
    }

    /// Makes whole blocks zeros, in steps.
    fn clear(&self, blocks: Range<u64>, keeps_room: bool) -> Result<(), VolumeError> {
        let block = u64::from(self.block);
        let mut at = blocks.start;
        while at < blocks.end {
            let next = (at + (STEP / block)).min(blocks.end);
            let _in_use = self.ranges.to_write(at..next);
            if keeps_room {
                let per_write = ZEROS as u64 / block;
                for first in (at..next).step_by(per_write as usize) {
                    let bytes = (per_write.min(next - first) * block) as usize;
                    let zeros = self.zeros.get(..bytes).unwrap_or(&[]);
                    self.write_blocks(first, zeros, Reason::None)?;
                }
            } else {
                self.write_untagged(at * block..next * block)?;
            }
            at = next;
        }
        Ok(())
    }

    /// Writes zeros of no page: a cache drops its copies, and the backing file may get a hole.
    fn write_untagged(&self, range: Range<u64>) -> Result<(), DeviceError> {
        let mut parts = Vec::new();
        let mut left = (range.end - range.start) as usize;
        while left > 0 {
            let zeros = self.zeros.get(..left.min(ZEROS)).unwrap_or(&[]);
            left -= zeros.len();
            parts.push(IoSlice::new(zeros));
        }
        let mut requests = [WriteRequest::new(range.start, &parts)];
        self.device.write_batch(&mut requests);
        let [request] = requests;
        request.result
    }
}
