//! The backing file or block device: a device that can have holes, and detects whether it was
//! changed.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use millpond_device::{
    Alignment, Device, DeviceError, Errno, FileDevice, FileOptions, OpenFileError, ReadRequest,
    WriteRequest, open_above_standard,
};
use millpond_tier::Identity;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};

/// Times of a file that are closer than this may look equal: longer than any kernel's tick.
const TICK: Duration = Duration::from_millis(20);

/// A file that is opened twice: as a device, which holds its lock, and for calls that a device does
/// not have.
#[derive(Debug)]
pub(super) struct BackingFile {
    device: FileDevice,
    file: File,
    /// `true` unless the file system is known to have no holes.
    has_holes: AtomicBool,
}

impl BackingFile {
    pub fn open(path: &Path, options: &FileOptions) -> Result<BackingFile, OpenFileError> {
        let device = FileDevice::open(path, options)?;
        let mut how = OpenOptions::new();
        let file = open_above_standard(how.read(true).write(!options.read_only), path);
        let fail = |error| OpenFileError::Io { path: path.into(), errno: Errno::of(&error) };
        let has_holes = AtomicBool::new(!options.read_only);
        Ok(BackingFile { device, file: file.map_err(fail)?, has_holes })
    }

    /// Creates an empty file at `path` with this file's mode and, where the process may give files
    /// away, its owner. An existing file is left unchanged.
    pub fn create_like(&self, path: &Path) -> io::Result<()> {
        let found = self.file.metadata()?;
        let mut how = OpenOptions::new();
        let file = match open_above_standard(
            how.write(true).create_new(true).mode(found.mode() & 0o600),
            path,
        ) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            opened => opened?,
        };
        let made = file.metadata()?;
        if (made.uid(), made.gid()) != (found.uid(), found.gid()) {
            let give = |owner| fchown(&file, owner, Some(found.gid()));
            // Only a privileged process may set the owner; others may set the group, if they belong
            // to it.
            let given = give(Some(found.uid())).or_else(|_| give(None));
            given.unwrap_or_else(|error| tracing::debug!(%error, "{} is ours", path.display()));
        }
        // Where the mode cannot be set, as on file systems with one mode for all files, it stays
        // narrow.
        let set = file.set_permissions(Permissions::from_mode(found.mode() & 0o666));
        set.unwrap_or_else(|error| tracing::debug!(%error, "{} keeps its mode", path.display()));
        Ok(())
    }

    /// Returns whether a hole begins at `offset`, or data, and its end; `None` if the file system
    /// does not tell.
    pub fn extent_at(&self, offset: u64) -> Option<(bool, u64)> {
        match seek(&self.file, SeekFrom::Data(offset)) {
            Ok(data) if data > offset => Some((true, data)),
            Ok(_) => Some((false, seek(&self.file, SeekFrom::Hole(offset)).ok()?)),
            // No data up to the end.
            Err(rustix::io::Errno::NXIO) => Some((true, u64::MAX)),
            Err(_) => None,
        }
    }

    /// Marks that distinguish the file from others, and from itself after a change: device and
    /// inode, length, and the times of the last change of its data and its metadata, in
    /// nanoseconds. `None` for a block device, which has no mark for writes by others.
    pub fn identity(&self) -> Option<Identity> {
        let found = self.file.metadata().ok()?;
        if found.file_type().is_block_device() {
            return None;
        }
        let time = |seconds: i64, ns: i64| seconds.wrapping_mul(1_000_000_000).wrapping_add(ns);
        let words = [
            found.ino() ^ found.dev().rotate_left(32),
            found.len(),
            time(found.mtime(), found.mtime_nsec()) as u64,
            time(found.ctime(), found.ctime_nsec()) as u64,
        ];
        let mut identity = Identity::default();
        for (place, word) in identity.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        Some(identity)
    }

    /// Makes the times of the last change durable, and waits until a later change would get
    /// different times.
    pub fn settle(&self) {
        if let Err(error) = self.file.sync_all() {
            tracing::warn!(%error, "the cache may start empty: its file's times may change");
        }
        let Ok(found) = self.file.metadata() else { return };
        let since = |found: &Metadata| {
            let changed = found.modified().ok()?;
            SystemTime::now().duration_since(changed).ok()
        };
        if let Some(left) = since(&found).and_then(|since| TICK.checked_sub(since)) {
            std::thread::sleep(left);
        }
    }

    /// Makes a hole; `false` if the file system cannot.
    fn make_hole(&self, offset: u64, length: u64) -> bool {
        if !self.has_holes.load(Ordering::Relaxed) {
            return false;
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let made = rustix::io::retry_on_intr(|| fallocate(&self.file, flags, offset, length));
        if made.is_err() {
            self.has_holes.store(false, Ordering::Relaxed);
        }
        made.is_ok()
    }

    /// Returns `true` for zeros of no page within the file, which may become a hole.
    fn is_hole(&self, request: &WriteRequest<'_, '_>) -> bool {
        let end = request.offset.checked_add(request.length() as u64);
        request.tags.is_empty()
            && end.is_some_and(|end| end <= self.device.length())
            && request.parts.iter().all(|part| part.iter().all(|byte| *byte == 0))
    }
}

impl Device for BackingFile {
    fn path(&self) -> &Path {
        self.device.path()
    }

    fn length(&self) -> u64 {
        self.device.length()
    }

    fn alignment(&self) -> Alignment {
        self.device.alignment()
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.device.read(offset, bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.device.write(offset, bytes)
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_, '_>]) {
        self.device.read_batch(requests);
    }

    fn write_batch(&self, requests: &mut [WriteRequest<'_, '_>]) {
        if let [request] = requests
            && self.is_hole(request)
            && self.make_hole(request.offset, request.length() as u64)
        {
            return;
        }
        self.device.write_batch(requests);
    }

    fn sync(&self) -> Result<(), DeviceError> {
        self.device.sync()
    }

    fn sync_ranges(&self, ranges: &[std::ops::Range<u64>]) -> Result<(), DeviceError> {
        self.device.sync_ranges(ranges)
    }

    fn grow(&self, length: u64) -> Result<(), DeviceError> {
        self.device.grow(length)
    }

    fn shrink(&self, length: u64) -> Result<(), DeviceError> {
        self.device.shrink(length)
    }

    fn is_displaced(&self) -> bool {
        self.device.is_displaced()
    }

    fn release(&self) {
        self.device.release();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{IoSlice, Write};

    use super::*;

    fn file() -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![7; 1 << 20]).unwrap();
        file.as_file().sync_all().unwrap();
        file
    }

    #[test]
    fn opening_locking_reading_and_closing_change_nothing_that_tells_a_file() {
        let file = file();
        let open = || BackingFile::open(file.path(), &FileOptions::default()).unwrap();
        let first = open();
        let before = first.identity().unwrap();
        first.read(0, &mut vec![0; 4096]).unwrap();
        first.sync().unwrap();
        first.settle();
        first.release();
        drop(first);
        assert_eq!(open().identity(), Some(before));
        std::thread::sleep(TICK);
        open().write(0, &[7; 4096]).unwrap();
        assert_ne!(open().identity(), Some(before), "the same bytes, but written");
    }

    #[test]
    fn untagged_zeros_become_a_hole_and_read_as_zeros() {
        let file = file();
        let device = BackingFile::open(file.path(), &FileOptions::default()).unwrap();
        let zeros = vec![0; 64 << 10];
        let parts = [IoSlice::new(&zeros), IoSlice::new(&zeros)];
        let mut requests = [WriteRequest::new(128 << 10, &parts)];
        device.write_batch(&mut requests);
        assert_eq!(requests[0].result, Ok(()));
        let bytes = std::fs::read(file.path()).unwrap();
        assert_eq!(bytes.len(), 1 << 20);
        let is_hole = |at: usize| (128 << 10..256 << 10).contains(&at);
        assert!((0..1 << 20).all(|at| bytes[at] == if is_hole(at) { 0 } else { 7 }));
        if device.has_holes.load(Ordering::Relaxed) {
            assert_eq!(device.extent_at(128 << 10), Some((true, 256 << 10)));
            assert_eq!(device.extent_at(0), Some((false, 128 << 10)));
        }
    }
}
