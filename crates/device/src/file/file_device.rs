//! A file as a device.
//!
//! Pages bypass the kernel's page cache where the file system allows it (`O_DIRECT`): the buffer
//! pool is the cache, and a second copy of every page would double its memory. A single read is a
//! `pread`, which is the quickest way to wait for one page; batches go through io_uring, which
//! keeps the drive busy from one thread. Either falls back with one warning when the file is
//! opened, and everything works the same, only slower.
//!
//! The file grows by zeros that are really written into preallocated blocks. A later overwrite then
//! changes no metadata of the file system, so that syncing a few pages costs those pages and one
//! flush of the drive. Holes and preallocated but unwritten blocks would cost a commit of its
//! journal each time. A full disk would show when a page is evicted instead of when it is
//! allocated.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::FallocateFlags;

use super::file_open::Origin;
use super::gate::{Gate, Passage};
use super::lock;
use super::new_file::{folder_of, sync_folder_of};
use super::options::Submission;
use super::range_sync::sync_ranges;
use super::ring::RingPool;
use super::system;
use crate::buffer::{AlignedBuffer, read_batch_aligned, with_aligned};
use crate::device::Alignment;
use crate::device::Device;
use crate::device::ReadRequest;
use crate::device::WriteRequest;
use crate::error::DeviceError;
use crate::error::Errno;
use crate::error::Operation;
use crate::process::Process;

/// Zeros written per call while the file grows. They are static because otherwise each thread would
/// keep a buffer.
static ZEROS: Zeros = Zeros([0; 256 << 10]);

/// Aligned for direct I/O.
#[repr(align(4096))]
struct Zeros([u8; 256 << 10]);

/// A file as a device. Holds the file's lock until it is dropped or released; once it is released,
/// its calls fail with [`DeviceError::Closed`].
#[derive(Debug)]
pub struct FileDevice {
    pub(super) file: File,
    pub(super) path: PathBuf,
    /// The path and identity at opening, if the system tells them.
    pub(super) origin: Option<Origin>,
    /// Set if this opening created it.
    pub(super) is_new: bool,
    /// Shut when the device is released.
    pub(super) gate: Gate,
    /// The process that opened it; its children leave the file and its lock alone.
    pub(super) process: Process,
    pub(super) read_only: bool,
    /// `true` if the file grows by written zeros.
    pub(super) zeros: bool,
    /// Alignment for direct I/O; `None` if bytes go through the page cache.
    pub(super) direct: Option<Alignment>,
    pub(super) rings: Option<RingPool>,
    /// Set if ranges can be synced separately.
    pub(super) syncs_ranges: bool,
    /// Length in bytes; only `grow`, `append` and `shrink` change it.
    pub(super) length: AtomicU64,
}

impl FileDevice {
    /// Returns `true` if this opening created the file.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns `true` if reads and writes bypass the kernel's page cache.
    pub fn is_direct(&self) -> bool {
        self.direct.is_some()
    }

    /// Returns `true` if ranges of the file can be synced separately. The file must not be direct,
    /// io_uring must work, and the file system must be known to support it (ext4, XFS).
    pub fn syncs_ranges(&self) -> bool {
        self.syncs_ranges
    }

    /// Returns the path by which batches reach the kernel, after any fallback.
    pub fn submission(&self) -> Submission {
        if self.rings.is_some() { Submission::Uring } else { Submission::Sync }
    }

    /// Makes the file's name durable, by syncing its directory, if the file system can do that.
    ///
    /// # Errors
    /// The directory cannot be opened or synced.
    pub fn sync_directory(&self) -> Result<(), DeviceError> {
        sync_folder_of(&self.path).map_err(|error| DeviceError::Folder {
            path: folder_of(&self.path).into(),
            errno: Errno::of(&error),
        })
    }

    /// Returns the error for one of the operating system.
    fn failed(&self, operation: Operation, offset: u64, length: u64, errno: Errno) -> DeviceError {
        let path = self.path.clone();
        let writes = matches!(operation, Operation::Write | Operation::Grow);
        if writes && [libc::ENOSPC, libc::EDQUOT, libc::EFBIG].contains(&errno.0) {
            return DeviceError::DiskFull { path, offset, needed: length };
        }
        DeviceError::Io { operation, path, offset, length, errno }
    }

    /// Begins a call; the device is not released until the call has ended.
    fn pass(&self) -> Result<Passage<'_>, DeviceError> {
        self.gate.pass().ok_or_else(|| DeviceError::Closed { path: self.path.clone() })
    }

    /// Refuses ranges outside the device, and those that direct I/O does not support.
    fn check(&self, offset: u64, length: u64) -> Result<(), DeviceError> {
        let device_length = self.length();
        if offset.checked_add(length).is_none_or(|end| end > device_length) {
            let path = self.path.clone();
            return Err(DeviceError::PastEnd { path, offset, length, device_length });
        }
        let alignment = self.alignment().offset;
        if !offset.is_multiple_of(alignment) || !length.is_multiple_of(alignment) {
            let path = self.path.clone();
            return Err(DeviceError::Misaligned { path, offset, length, alignment });
        }
        Ok(())
    }

    /// Fails in a child of the process that opened the file.
    fn check_process(&self) -> Result<(), DeviceError> {
        if self.process.is_this() {
            return Ok(());
        }
        Err(DeviceError::Forked { path: self.path.clone() })
    }

    fn check_write(&self, offset: u64, length: u64) -> Result<(), DeviceError> {
        self.check_process()?;
        if self.read_only {
            return Err(DeviceError::ReadOnly { path: self.path.clone() });
        }
        self.check(offset, length)
    }

    /// Returns `true` if direct I/O refuses this buffer.
    fn is_misaligned(&self, bytes: &[u8]) -> bool {
        self.direct.is_some_and(|need| !(bytes.as_ptr() as usize).is_multiple_of(need.memory))
    }

    /// Returns the part of `done` transferred bytes from which direct I/O can continue.
    fn resumable(&self, done: usize) -> usize {
        let block = self.alignment().offset as usize;
        done - done % block
    }

    fn read_fully(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            match rustix::io::pread(&self.file, &mut bytes[done..], at) {
                Ok(count) if done + count == bytes.len() => break,
                Ok(count) if self.resumable(count) > 0 => done += self.resumable(count),
                Ok(count) => {
                    // Another program made the file shorter.
                    let (path, device_length) = (self.path.clone(), at + count as u64);
                    let length = bytes.len() as u64;
                    return Err(DeviceError::PastEnd { path, offset, length, device_length });
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => {
                    let length = (bytes.len() - done) as u64;
                    return Err(self.failed(Operation::Read, at, length, errno.into()));
                }
            }
        }
        Ok(())
    }

    fn write_fully(
        &self,
        operation: Operation,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        let mut done = 0;
        while done < bytes.len() {
            let (at, rest) = (offset + done as u64, &bytes[done..]);
            match rustix::io::pwrite(&self.file, rest, at) {
                Ok(count) if count == rest.len() => break,
                Ok(count) if self.resumable(count) > 0 => done += self.resumable(count),
                // Nothing more fits, and the next attempt would fail with that error.
                Ok(_) => {
                    let (path, needed) = (self.path.clone(), rest.len() as u64);
                    return Err(DeviceError::DiskFull { path, offset: at, needed });
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => {
                    return Err(self.failed(operation, at, rest.len() as u64, errno.into()));
                }
            }
        }
        Ok(())
    }

    /// Reads a request in one call, or part by part if that does not return everything.
    fn read_request(&self, request: &mut ReadRequest<'_, '_>) -> Result<(), DeviceError> {
        let length = request.length();
        self.check(request.offset, length as u64)?;
        if request.parts.len() > 1 && !request.parts.iter().any(|part| self.is_misaligned(part)) {
            let count = rustix::io::preadv(&self.file, request.parts, request.offset);
            if count == Ok(length) {
                return Ok(());
            }
        }
        self.read_parts(request)
    }

    fn write_request(&self, request: &WriteRequest<'_, '_>) -> Result<(), DeviceError> {
        let length = request.length();
        self.check_write(request.offset, length as u64)?;
        if request.parts.len() > 1 && !request.parts.iter().any(|part| self.is_misaligned(part)) {
            let count = rustix::io::pwritev(&self.file, request.parts, request.offset);
            if count == Ok(length) {
                return Ok(());
            }
        }
        self.write_parts(request)
    }

    /// Reads a request part by part, through a copy where a part is misaligned.
    fn read_parts(&self, request: &mut ReadRequest<'_, '_>) -> Result<(), DeviceError> {
        let mut offset = request.offset;
        for part in request.parts.iter_mut() {
            self.read(offset, part)?;
            offset += part.len() as u64;
        }
        Ok(())
    }

    fn write_parts(&self, request: &WriteRequest<'_, '_>) -> Result<(), DeviceError> {
        let mut offset = request.offset;
        for part in request.parts {
            self.write(offset, part)?;
            offset += part.len() as u64;
        }
        Ok(())
    }

    /// Extends the file to `length` bytes, with bytes that `write` appends.
    fn lengthen(
        &self,
        length: u64,
        write: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let (_passage, old) = (self.pass()?, self.length());
        self.check_process()?;
        if self.read_only {
            return Err(DeviceError::ReadOnly { path: self.path.clone() });
        }
        let alignment = self.alignment().offset;
        if !old.is_multiple_of(alignment) || !length.is_multiple_of(alignment) {
            let (path, length) = (self.path.clone(), length.saturating_sub(old));
            return Err(DeviceError::Misaligned { path, offset: old, length, alignment });
        }
        match write() {
            Ok(()) => {
                self.length.store(length, Ordering::Release);
                Ok(())
            }
            Err(error) => {
                // Give back the reserved room. If even that fails, the file has an unused tail,
                // which the next growth overwrites.
                let _ = rustix::fs::ftruncate(&self.file, old);
                Err(error)
            }
        }
    }

    /// Allocates blocks, then writes zeros, so that a full disk shows before anything is written.
    fn fill(&self, from: u64, to: u64) -> Result<(), DeviceError> {
        let fallocate =
            || rustix::fs::fallocate(&self.file, FallocateFlags::empty(), from, to - from);
        match rustix::io::retry_on_intr(fallocate) {
            Ok(()) if !self.zeros => return Ok(()),
            Ok(()) => {}
            // The file system cannot reserve room; the writes find out as well.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
            Err(errno) => return Err(self.failed(Operation::Grow, from, to - from, errno.into())),
        }
        let mut at = from;
        while at < to {
            let most = usize::try_from(to - at).unwrap_or(usize::MAX);
            let zeros = ZEROS.0.get(..most).unwrap_or(&ZEROS.0);
            self.write_fully(Operation::Grow, at, zeros)?;
            at += zeros.len() as u64;
        }
        Ok(())
    }
}

impl Device for FileDevice {
    fn path(&self) -> &Path {
        &self.path
    }

    fn length(&self) -> u64 {
        self.length.load(Ordering::Acquire)
    }

    fn alignment(&self) -> Alignment {
        self.direct.unwrap_or(Alignment::NONE)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let _passage = self.pass()?;
        self.check(offset, bytes.len() as u64)?;
        if self.is_misaligned(bytes) {
            return with_aligned(bytes.len(), |room| {
                self.read_fully(offset, room)?;
                bytes.copy_from_slice(room);
                Ok(())
            });
        }
        self.read_fully(offset, bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let _passage = self.pass()?;
        self.check_write(offset, bytes.len() as u64)?;
        if self.is_misaligned(bytes) {
            let mut copy = AlignedBuffer::new(bytes.len());
            copy.copy_from_slice(bytes);
            return self.write_fully(Operation::Write, offset, &copy);
        }
        self.write_fully(Operation::Write, offset, bytes)
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_, '_>]) {
        let _passage = match self.pass() {
            Ok(passage) => passage,
            Err(closed) => return requests.iter_mut().for_each(|r| r.result = Err(closed.clone())),
        };
        let mut parts = requests.iter().flat_map(|request| request.parts.iter());
        if parts.any(|part| self.is_misaligned(part)) {
            return read_batch_aligned(self, self.direct.map_or(1, |need| need.memory), requests);
        }
        let fits = |request: &ReadRequest<'_, '_>| {
            self.check(request.offset, request.length() as u64).is_ok()
        };
        match &self.rings {
            Some(rings) if requests.len() > 1 && requests.iter().all(fits) => {
                rings.read(&self.file, requests, |request, answer| {
                    // Requests that were short, interrupted or not taken are repeated by plain
                    // calls, which also find the details of an error.
                    let whole = answer.is_some_and(|n| n as i64 == request.length() as i64);
                    request.result = if whole { Ok(()) } else { self.read_parts(request) };
                });
            }
            _ => {
                for request in requests {
                    request.result = self.read_request(request);
                }
            }
        }
    }

    fn write_batch(&self, requests: &mut [WriteRequest<'_, '_>]) {
        let _passage = match self.pass() {
            Ok(passage) => passage,
            Err(closed) => return requests.iter_mut().for_each(|r| r.result = Err(closed.clone())),
        };
        let fits = |request: &WriteRequest<'_, '_>| {
            self.check_write(request.offset, request.length() as u64).is_ok()
                && !request.parts.iter().any(|part| self.is_misaligned(part))
        };
        match &self.rings {
            Some(rings) if requests.len() > 1 && requests.iter().all(fits) => {
                rings.write(&self.file, requests, |request, answer| {
                    let whole = answer.is_some_and(|n| n as i64 == request.length() as i64);
                    request.result = if whole { Ok(()) } else { self.write_parts(request) };
                });
            }
            _ => {
                for request in requests {
                    request.result = self.write_request(request);
                }
            }
        }
    }

    fn sync(&self) -> Result<(), DeviceError> {
        let _passage = self.pass()?;
        self.check_process()?;
        system::sync_data(&self.file)
            .map_err(|errno| self.failed(Operation::Sync, 0, self.length(), errno))
    }

    fn sync_ranges(&self, ranges: &[Range<u64>]) -> Result<(), DeviceError> {
        if ranges.iter().all(|range| range.is_empty()) {
            return Ok(());
        }
        let _passage = self.pass()?;
        self.check_process()?;
        let rings = self.rings.as_ref().filter(|_| self.syncs_ranges);
        match rings.and_then(|rings| sync_ranges(rings, &self.file, ranges)) {
            Some(synced) => {
                synced.map_err(|errno| self.failed(Operation::Sync, 0, self.length(), errno))
            }
            None => self.sync(),
        }
    }

    fn grow(&self, length: u64) -> Result<(), DeviceError> {
        let old = self.length();
        if length <= old {
            return Ok(());
        }
        self.lengthen(length, || self.fill(old, length))
    }

    fn append(&self, bytes: &[u8]) -> Result<(), DeviceError> {
        let old = self.length();
        self.lengthen(old.saturating_add(bytes.len() as u64), || {
            if !self.is_misaligned(bytes) {
                return self.write_fully(Operation::Grow, old, bytes);
            }
            let mut copy = AlignedBuffer::new(bytes.len());
            copy.copy_from_slice(bytes);
            self.write_fully(Operation::Grow, old, &copy)
        })
    }

    fn shrink(&self, length: u64) -> Result<(), DeviceError> {
        let old = self.length();
        if length >= old {
            return Ok(());
        }
        let _passage = self.pass()?;
        self.check_write(length, old - length)?;
        rustix::io::retry_on_intr(|| rustix::fs::ftruncate(&self.file, length))
            .map_err(|errno| self.failed(Operation::Shrink, length, old - length, errno.into()))?;
        self.length.store(length, Ordering::Release);
        Ok(())
    }

    fn is_displaced(&self) -> bool {
        self.origin.as_ref().is_some_and(|origin| origin.is_displaced(&self.file))
    }

    fn release(&self) {
        // A child has the descriptor of its parent, and with it the lock.
        if self.process.is_this() {
            self.gate.shut();
            // This only fails for an invalid descriptor; closing the file releases the lock as
            // well.
            let _ = lock::release(&self.file);
        }
    }
}

impl Drop for FileDevice {
    /// Releases the lock. Closing the file alone does not, while a child that another thread has
    /// just forked still has its copy of the descriptor: until it runs its program.
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::FileOptions;

    #[test]
    fn a_copy_of_the_descriptor_does_not_keep_the_lock_of_a_device_that_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("device");
        std::fs::File::create_new(&path).unwrap();
        let device = FileDevice::open(&path, &FileOptions::default()).unwrap();
        // The descriptor of a forked child.
        let copy = device.file.try_clone().unwrap();
        assert!(FileDevice::open(&path, &FileOptions::default()).is_err());
        drop(device);
        FileDevice::open(&path, &FileOptions::default()).unwrap();
        drop(copy);
    }
}
