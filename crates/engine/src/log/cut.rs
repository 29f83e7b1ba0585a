//! Cuts off a damaged log where its hole begins.
//!
//! Records behind the hole are still whole, and positions come again. Once new records reach up to
//! an old one, a crash there would bring it back, with everything that follows it (rule 10).
//! Overwriting the headers of the records found is not enough. A damaged log has records in places
//! that no search reaches, such as the segment of a slot whose header is lost. That slot is free
//! from then on and may get the same segment again. So every byte that is not before the hole is
//! always overwritten with zeros. Even a part that reads as zeros may be one that an earlier
//! attempt could not make durable (rule 12).
//!
//! The order lets a crash come at any moment:
//!
//! 1. The header of the record at the hole is zeroed, or the part of it that is left. Otherwise
//!    zeros might make a record whole that is damaged where it had zeros, and another attempt would
//!    find another hole.
//! 2. The slots outside the run of segments around the hole are zeroed: their segments, then, once
//!    these are durable, their headers. Opening fails as before, unless such a header was all that
//!    showed the hole; it then finds the end there, and nothing behind.
//! 3. The rest of the hole's segment is zeroed, and the segments behind it, which keep their slots.
//!    A crash may leave any part of that. If a record is left that shows the hole, opening fails as
//!    before. If none is, the records that are left are cut off as after any crash.
//!
//! Nothing before the hole is changed except its block, which is written again with the same bytes
//! in front (rule 3). So a second attempt finds the same hole.

use std::sync::Arc;

use millpond_base::Lsn;
use millpond_device::{AlignedBuffer, Device, DeviceError};

use super::error::LogError;
use super::log::Log;
use super::options::BLOCK;
use super::segments::Segments;
use super::slots;

/// Number of bytes written at a time.
const CHUNK: u64 = 1 << 20;

impl Log {
    /// Overwrites everything behind `end`, the end of a record, in the log on `device` with zeros,
    /// durably. The log can then be opened, and ends there. Returns the number of bytes written.
    ///
    /// # Errors
    /// If the device holds no log, or a log of another store or version, or fails. The log then
    /// opens as before, or ends at `end`, and this can be called again.
    pub fn cut(device: Arc<dyn Device>, uuid: [u8; 16], end: Lsn) -> Result<u64, LogError> {
        let segments = Segments::open(device.clone(), uuid)?;
        debug_assert!(end.0.is_multiple_of(8), "records end at multiples of 8, not at {}", end.0);
        let (size, end) = (segments.size(), end.0);
        let mut written = clear_first(&segments, end)?;
        device.sync().map_err(LogError::Prepare)?;
        let strays = segments.strays(end);
        for &slot in &strays {
            let begin = slots::slot_offset(slot, size) + BLOCK;
            let length = device.length() - device.length() % BLOCK;
            written += zero(&*device, begin, length.saturating_sub(begin).min(size))?;
        }
        device.sync().map_err(LogError::Prepare)?;
        for &slot in &strays {
            written += zero(&*device, slots::slot_offset(slot, size), BLOCK)?;
        }
        device.sync().map_err(LogError::Prepare)?;
        written += zero_rest(&segments, end)?;
        let mut at = (segments.sequence(end) + 1) * size;
        while let Some(begin) = segments.next_held(at) {
            written += zero(&*device, segments.offset(begin)?, segments.in_file(begin))?;
            at = begin + size;
        }
        device.sync().map_err(LogError::Prepare)?;
        Ok(written)
    }

    /// Overwrites the whole of `device` with zeros, durably, whatever it holds; its first block
    /// last.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) fn wipe(device: &dyn Device) -> Result<(), LogError> {
        let length = device.length() - device.length() % BLOCK;
        if length > 0 {
            zero(device, BLOCK, length - BLOCK)?;
            device.sync().map_err(LogError::Prepare)?;
            zero(device, 0, BLOCK)?;
            device.sync().map_err(LogError::Prepare)?;
        }
        Ok(())
    }
}

/// Overwrites the first bytes behind `end` with zeros, so that no record begins there.
fn clear_first(segments: &Segments, end: u64) -> Result<u64, LogError> {
    if segments.in_file(end - end % BLOCK) == 0 {
        return Ok(0);
    }
    let (begin, mut block) = (end - end % BLOCK, AlignedBuffer::new(BLOCK as usize));
    match segments.read(begin, &mut block) {
        // The records end where the unreadable block begins.
        Err(_) if begin == end => block.fill(0),
        read => read?,
    }
    let at = (end - begin) as usize;
    block[at..at + 8].fill(0);
    segments.device().write(segments.offset(begin)?, &block).map_err(LogError::Prepare)?;
    Ok(BLOCK)
}

/// Overwrites the segment of `end` with zeros from there on.
fn zero_rest(segments: &Segments, end: u64) -> Result<u64, LogError> {
    let (device, mut begin) = (segments.device(), end - end % BLOCK);
    let until = begin + segments.in_file(begin);
    if begin == until {
        return Ok(0);
    }
    let mut written = 0;
    if begin < end {
        let mut block = AlignedBuffer::new(BLOCK as usize);
        segments.read(begin, &mut block)?;
        block[(end - begin) as usize..].fill(0);
        device.write(segments.offset(begin)?, &block).map_err(LogError::Prepare)?;
        written += BLOCK;
        begin += BLOCK;
    }
    if begin < until {
        written += zero(&**device, segments.offset(begin)?, until - begin)?;
    }
    Ok(written)
}

fn zero(device: &dyn Device, offset: u64, count: u64) -> Result<u64, LogError> {
    debug_assert!(offset.is_multiple_of(BLOCK), "zeros begin at a block");
    debug_assert!(count.is_multiple_of(BLOCK), "whole blocks become zeros");
    let zeros = AlignedBuffer::new(count.min(CHUNK) as usize);
    let mut done = 0;
    while done < count {
        let part = (count - done).min(CHUNK);
        let write: Result<(), DeviceError> = device.write(offset + done, &zeros[..part as usize]);
        write.map_err(LogError::Prepare)?;
        done += part;
    }
    Ok(count)
}
