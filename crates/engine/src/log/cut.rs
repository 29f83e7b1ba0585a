//! Cutting a damaged log off where its hole begins.
//!
//! Records behind the hole are whole where they lie, and positions come again: once new records
//! reach up to an old one, a crash there would bring it back, and all that follows it (rule 10). To
//! overwrite the headers of the records that are found is not enough. A damaged log has records in
//! places that no search reaches, such as the segment of a slot whose header is lost, which is free
//! from then on and may get the same segment again. So every byte that is not before the hole is
//! made zero, always: a part that reads as zeros may be one that an earlier attempt could not make
//! durable (rule 12).
//!
//! The order lets a crash come at any moment:
//!
//! 1. The header of the record at the hole, or the part of it that is left. Otherwise zeros might
//!    make a record whole that is damaged where it had zeros, and another attempt would find
//!    another hole.
//! 2. Slots outside the run of segments around the hole: their segments, then, once these are
//!    durable, their headers. Opening fails as before, unless such a header was all that showed
//!    the hole; then it finds the end there, and nothing behind.
//! 3. The rest of the hole's segment and the segments behind it, which keep their slots. A crash
//!    may leave any part of that. Either a record is left that tells of the hole, and opening fails
//!    as before, or none, and then those that are left are cut off as after any crash.
//!
//! Nothing before the hole is changed but for its block, which is written again with the same bytes
//! in front (rule 3). So a second attempt finds the same hole.

use std::sync::Arc;

use millpond_base::Lsn;
use millpond_device::{AlignedBuffer, Device, DeviceError};

use super::error::LogError;
use super::log::Log;
use super::options::BLOCK;
use super::segments::Segments;
use super::slots;

/// Bytes written at a time.
const CHUNK: u64 = 1 << 20;

impl Log {
    /// Makes zeros, durably, of everything that the log on `device` has behind `end`, the end of a
    /// record. It can be opened then, and ends there. Returns how many bytes were written.
    ///
    /// # Errors
    /// If the device holds no log, that of another store or version, or fails: then the log opens
    /// as before, or ends at `end`, and this can be called again.
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

    /// Makes zeros, durably, of all that is on `device`, whatever it is; its first block last.
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

/// Makes zeros of the first bytes behind `end`, so that no record begins there.
fn clear_first(segments: &Segments, end: u64) -> Result<u64, LogError> {
    if segments.in_file(end - end % BLOCK) == 0 {
        return Ok(0);
    }
    let (begin, mut block) = (end - end % BLOCK, AlignedBuffer::new(BLOCK as usize));
    match segments.read(begin, &mut block) {
        // Records end where the block that cannot be read begins.
        Err(_) if begin == end => block.fill(0),
        read => read?,
    }
    let at = (end - begin) as usize;
    block[at..at + 8].fill(0);
    segments.device().write(segments.offset(begin)?, &block).map_err(LogError::Prepare)?;
    Ok(BLOCK)
}

/// Zeros the rest of the segment of `end`, from there on.
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
