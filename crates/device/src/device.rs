//! The storage interface of the page store.
//!
//! A device is an array of bytes that can be read and written in place by many threads at once,
//! grows at its end, and forgets unsynced writes when the power fails. The store moves whole pages;
//! nothing here knows pages.
//!
//! Calls go through `dyn Device`: an indirect call costs nanoseconds, the fastest device
//! microseconds.

use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::path::{Path, PathBuf};

use millpond_base::{PageId, Reason};

use super::error::DeviceError;

/// The largest block that direct I/O may require. A file system that requires more is read and
/// written through the page cache. The smallest page has this size.
pub(crate) const DIRECT_BLOCK_MAX: u64 = 4096;

/// Alignment in bytes that direct I/O requires of addresses, offsets and lengths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alignment {
    /// Alignment of a buffer's address. A less aligned buffer works too, through a copy.
    pub memory: usize,
    /// Alignment of offsets and lengths.
    pub offset: u64,
}

impl Alignment {
    /// No requirements.
    pub const NONE: Alignment = Alignment { memory: 1, offset: 1 };
}

/// The page of a part of a request, and the reason of its write: a second tier decides by these (li
/// 3.2). Devices without one ignore it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag {
    /// The page.
    pub page: PageId,
    /// Reason of the write; [`Reason::None`] for a read.
    pub reason: Reason,
}

impl Tag {
    /// Returns the tag of a read of `page`.
    pub fn read(page: PageId) -> Tag {
        Tag { page, reason: Reason::None }
    }
}

/// Adjacent bytes to read into several buffers.
#[derive(Debug)]
pub struct ReadRequest<'a, 'b> {
    /// Offset of the first byte.
    pub offset: u64,
    /// The buffers, filled one after the other.
    pub parts: &'a mut [IoSliceMut<'b>],
    /// Page of each buffer; empty if the bytes are not pages.
    pub tags: &'a [Tag],
    /// Result of the read; set by the device.
    pub result: Result<(), DeviceError>,
}

impl<'a, 'b> ReadRequest<'a, 'b> {
    /// Returns a request for the bytes from `offset` on, into `parts`.
    pub fn new(offset: u64, parts: &'a mut [IoSliceMut<'b>]) -> ReadRequest<'a, 'b> {
        ReadRequest { offset, parts, tags: &[], result: Ok(()) }
    }

    /// Returns this request with one tag per buffer, for parts that are pages.
    pub fn tagged(self, tags: &'a [Tag]) -> ReadRequest<'a, 'b> {
        ReadRequest { tags, ..self }
    }

    /// Returns the number of requested bytes.
    pub fn length(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }
}

/// Adjacent bytes to write from several buffers.
#[derive(Debug)]
pub struct WriteRequest<'a, 'b> {
    /// Offset of the first byte.
    pub offset: u64,
    /// The buffers, written one after the other.
    pub parts: &'a [IoSlice<'b>],
    /// Page of each buffer; empty if the bytes are not pages.
    pub tags: &'a [Tag],
    /// Result of the write; set by the device. After an error any part of the bytes may be stored.
    pub result: Result<(), DeviceError>,
}

impl<'a, 'b> WriteRequest<'a, 'b> {
    /// Returns a request to write `parts` from `offset` on.
    pub fn new(offset: u64, parts: &'a [IoSlice<'b>]) -> WriteRequest<'a, 'b> {
        WriteRequest { offset, parts, tags: &[], result: Ok(()) }
    }

    /// Returns this request with one tag per buffer, for parts that are pages.
    pub fn tagged(self, tags: &'a [Tag]) -> WriteRequest<'a, 'b> {
        WriteRequest { tags, ..self }
    }

    /// Returns the number of bytes to write.
    pub fn length(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }
}

/// Storage.
///
/// The caller must avoid reads and writes of the same bytes at the same time: such a read returns
/// any mixture. The pool never does so, because a page that is being written stays in its frame.
pub trait Device: Send + Sync {
    /// Returns the device's name in messages: the file's path.
    fn path(&self) -> &Path;

    /// Returns the length in bytes.
    fn length(&self) -> u64;

    /// Returns the alignment that addresses, offsets and lengths need.
    fn alignment(&self) -> Alignment;

    /// Fills `bytes` from `offset` on.
    ///
    /// # Errors
    /// Not all bytes could be read; the contents of `bytes` are undefined then.
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// Writes `bytes` from `offset` on, within the device's length.
    ///
    /// # Errors
    /// Not all bytes could be written; any part of them may have landed.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Carries out all reads, at the depth that suits the device, and returns when the last one is
    /// done. Each request has its own result.
    fn read_batch(&self, requests: &mut [ReadRequest<'_, '_>]) {
        for request in requests {
            let mut offset = request.offset;
            request.result = request.parts.iter_mut().try_for_each(|part| {
                self.read(offset, part)?;
                offset += part.len() as u64;
                Ok(())
            });
        }
    }

    /// Carries out all writes, at the depth that suits the device, and returns when the last one is
    /// done. Each request has its own result. Requests must not overlap.
    fn write_batch(&self, requests: &mut [WriteRequest<'_, '_>]) {
        for request in requests {
            let mut offset = request.offset;
            request.result = request.parts.iter().try_for_each(|part| {
                self.write(offset, part)?;
                offset += part.len() as u64;
                Ok(())
            });
        }
    }

    /// Makes all writes that have returned durable, and the length.
    ///
    /// # Errors
    /// The device does not confirm the sync. Then it is unknown which writes are durable, and
    /// another sync proves nothing: an operating system reports a failed write-back once.
    fn sync(&self) -> Result<(), DeviceError>;

    /// Makes writes into these ranges of bytes durable (li 4.3, the operation `dsync`). Other
    /// writes may become durable, too.
    ///
    /// # Errors
    /// Same as [`Device::sync`].
    fn sync_ranges(&self, ranges: &[Range<u64>]) -> Result<(), DeviceError> {
        if ranges.iter().all(|range| range.is_empty()) { Ok(()) } else { self.sync() }
    }

    /// Makes the device `length` bytes long; the new bytes read as zeros. A longer device is left
    /// unchanged. One thread at a time may call this.
    ///
    /// # Errors
    /// There is no room; the length is unchanged.
    fn grow(&self, length: u64) -> Result<(), DeviceError>;

    /// Appends `bytes`, which makes the device longer. One thread at a time may call this.
    ///
    /// # Errors
    /// Not all bytes could be written. The length is unchanged, or is the new one on a device that
    /// grows first.
    fn append(&self, bytes: &[u8]) -> Result<(), DeviceError> {
        let end = self.length();
        self.grow(end + bytes.len() as u64)?;
        self.write(end, bytes)
    }

    /// Gives back the bytes beyond `length`, if the device can: its length is then `length`, or
    /// unchanged. A shorter device is left unchanged. The effect is not durable before a sync. One
    /// thread at a time may call this, and never during a growth; nobody may read or write behind
    /// `length` in the meantime.
    ///
    /// # Errors
    /// The device fails; the length is unchanged.
    fn shrink(&self, length: u64) -> Result<(), DeviceError> {
        let _ = length;
        Ok(())
    }

    /// Reports that the bytes read from `range` are not the bytes written there. A device with a
    /// cache drops its copies of them. Returns `true` if it dropped any: a second read may then
    /// return the right bytes.
    fn distrust(&self, range: Range<u64>) -> bool {
        let _ = range;
        false
    }

    /// Discards these ranges of bytes: nobody needs them any more, and nobody may be reading or
    /// writing there. A cache that has not written them to storage yet need not do so. Later reads
    /// there return undefined bytes, until something is written.
    fn discard(&self, ranges: &[Range<u64>]) {
        let _ = ranges;
    }

    /// Returns the limit of the bytes that wait to be discarded, if the device's user has a choice.
    /// More would take room that the device needs for writes.
    fn superseded_max(&self) -> u64 {
        u64::MAX
    }

    /// Returns `true` if the device's name leads to another file now, or to none: the file was
    /// deleted, renamed or replaced while it was open.
    fn is_displaced(&self) -> bool {
        false
    }

    /// Returns the name that leads to another file now, or to none; on a device of several files,
    /// the first such name.
    fn displaced(&self) -> Option<PathBuf> {
        self.is_displaced().then(|| self.path().to_path_buf())
    }

    /// Releases the lock that keeps other processes away, if the device holds one. The caller must
    /// not read or write any more.
    fn release(&self) {}
}
