//! Opening of a file as a device: direct I/O, io_uring, holes.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, SeekFrom};

use super::lock;
use super::new_file::open_above_standard;
use super::options::FileOptions;
use super::ring::RingPool;
use super::system::{self, DIRECT};
use crate::buffer::AlignedBuffer;
use crate::device::{Alignment, DIRECT_BLOCK_MAX};
use crate::error::{Errno, OpenFileError};

/// Returns the kind of the file at `path` if it is neither a regular file nor a block device that
/// `options` accept. Opening some kinds would block until another process acts, or trigger a
/// device.
pub(super) fn what_else(path: &Path, options: &FileOptions) -> Option<&'static str> {
    let kind = std::fs::metadata(path).ok()?.file_type();
    match () {
        () if kind.is_file() || (options.block_devices && kind.is_block_device()) => None,
        () if kind.is_dir() => Some("a directory"),
        () if kind.is_block_device() => Some("a block device"),
        () if kind.is_char_device() => Some("a character device"),
        () if kind.is_fifo() => Some("a FIFO"),
        () if kind.is_socket() => Some("a socket"),
        () => Some("no regular file"),
    }
}

/// Creates an empty file at `path`, and returns it; `None` if it exists already.
pub(super) fn create_file(path: &Path) -> Result<Option<File>, Errno> {
    let mut how = OpenOptions::new();
    match open_above_standard(how.write(true).create_new(true), path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(Errno::of(&error)),
    }
}

/// The path at which a file was opened, and the identity of the file there.
#[derive(Debug)]
pub(super) struct Origin {
    /// Absolute, since the process may change its folder.
    path: PathBuf,
    /// Number of the file system, and of the file in it (its inode).
    id: (u64, u64),
}

impl Origin {
    /// Returns the origin of `file`, opened at `path`; `None` if the system does not report it.
    ///
    /// # Errors
    /// The path leads to another file now, or to none.
    pub(super) fn of(file: &File, path: &Path) -> Result<Option<Origin>, Errno> {
        let id = |found: Metadata| (found.dev(), found.ino());
        let found = file.metadata().ok().map(id).zip(std::path::absolute(path).ok());
        let Some((id, path)) = found else { return Ok(None) };
        let origin = Origin { path, id };
        if origin.is_displaced(file) {
            return Err(rustix::io::Errno::STALE.into());
        }
        Ok(Some(origin))
    }

    /// Returns `true` if the path leads to another file than `file` now, or to none.
    pub(super) fn is_displaced(&self, file: &File) -> bool {
        match std::fs::metadata(&self.path) {
            Ok(found) => (found.dev(), found.ino()) != self.id,
            // A folder that was renamed, or is outside of the process's root now, still has its
            // files.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let is_deleted = file.metadata().is_ok_and(|found| found.nlink() == 0);
                is_deleted || self.path.parent().is_some_and(Path::exists)
            }
            // Nothing is known of a folder that the process may no longer search.
            Err(_) => false,
        }
    }
}

/// A file opened as a device.
pub(super) struct OpenedFile {
    pub(super) file: File,
    /// Alignment that direct I/O requires; `None` if bytes go through the page cache.
    pub(super) direct: Option<Alignment>,
}

/// Opens the file, directly if wanted and possible; warns once if wanted and not possible.
pub(super) fn open_file(path: &Path, options: &FileOptions) -> Result<OpenedFile, Errno> {
    let is_block_device = || std::fs::metadata(path).is_ok_and(|f| f.file_type().is_block_device());
    let is_claimed = options.block_devices && !options.read_only && is_block_device();
    let open = |flags: i32| {
        let mut how = OpenOptions::new();
        // On a block device this checks that nobody else has claimed it, a file system for
        // instance.
        let claim = if is_claimed { libc::O_EXCL } else { 0 };
        how.read(true).write(!options.read_only).custom_flags(flags | claim);
        open_above_standard(&how, path).map_err(|e| Errno::of(&e))
    };
    if !options.direct {
        return Ok(OpenedFile { file: open(0)?, direct: None });
    }
    let direct = DIRECT.map_or(Err(Errno(libc::EINVAL)), &open);
    let why = match direct {
        Ok(file) => match system::direct_alignment(&file) {
            Some(need) if need.offset <= DIRECT_BLOCK_MAX => {
                return Ok(OpenedFile { file, direct: Some(need) });
            }
            Some(need) => format!("it wants blocks of {} bytes", need.offset),
            None => "the file system has none".to_string(),
        },
        // The file system does not support direct I/O.
        Err(Errno(libc::EINVAL)) => Errno(libc::EINVAL).to_string(),
        Err(errno) => return Err(errno),
    };
    let file = open(0)?;
    warn_of_plain(path, &why);
    Ok(OpenedFile { file, direct: None })
}

/// Locks an opened file. Turns direct I/O off if direct reads fail, as in some FUSE file systems.
pub(super) fn lock_and_probe(
    opened: OpenedFile,
    path: &Path,
    options: &FileOptions,
) -> Result<OpenedFile, OpenFileError> {
    lock::acquire(&opened.file, path, options)?;
    let Some(need) = opened.direct else { return Ok(opened) };
    let read = |file: &File, block: &mut [u8]| file.read_at(block, 0);
    let reopened = reopen_if_reads_fail(&opened.file, need, path, options, &read);
    let fail = |errno| OpenFileError::Io { path: path.to_path_buf(), errno };
    let Some(plain) = reopened.map_err(fail)? else { return Ok(opened) };
    drop(opened);
    lock::acquire(&plain, path, options)?;
    Ok(OpenedFile { file: plain, direct: None })
}

/// Reopens a file without direct I/O if its direct reads fail. `read` reads a block of a file.
/// Returns `None` if direct reads work, or plain ones fail, too.
///
/// The caller has locked the file. A block of zeros is briefly written into an empty file. Stores,
/// logs and second tiers take a file of one such block for an empty one, because a process that is
/// killed at that moment leaves it.
fn reopen_if_reads_fail(
    file: &File,
    need: Alignment,
    path: &Path,
    options: &FileOptions,
    read: &dyn Fn(&File, &mut [u8]) -> io::Result<usize>,
) -> Result<Option<File>, Errno> {
    let length = length_of(file, 1)?;
    let is_empty = length == 0;
    if is_empty && options.read_only {
        return Ok(None);
    }
    let mut block = AlignedBuffer::new(need.offset.max(need.memory as u64) as usize);
    if is_empty && file.write_at(&block, 0).is_err() {
        // The device may be full, which the creation of the store reports.
        return Ok(None);
    }
    let wanted = if is_empty { block.len() } else { block.len().min(length as usize) };
    let mut fails = |file: &File| match read(file, &mut block) {
        Ok(got) if got == wanted => None,
        Ok(got) => Some(format!("a read gave {got} of {wanted} bytes")),
        Err(error) => Some(format!("a read failed: {error}")),
    };
    let mut plain = None;
    if let Some(why) = fails(file) {
        let mut how = OpenOptions::new();
        let opened = open_above_standard(how.read(true).write(!options.read_only), path);
        plain = opened.ok().filter(|plain| fails(plain).is_none()).map(|plain| (plain, why));
    }
    if is_empty {
        file.set_len(0).map_err(|e| Errno::of(&e))?;
    }
    Ok(plain.map(|(plain, why)| {
        warn_of_plain(path, &why);
        plain
    }))
}

fn warn_of_plain(path: &Path, why: &str) {
    tracing::warn!(
        "direct I/O on {} is not possible ({why}): pages go through the kernel's page cache, \
         which takes memory of its own",
        path.display()
    );
}

/// Returns the bytes of a file, or of a block device. A file's length is rounded down to a multiple
/// of `block` bytes: an editor, a copy tool or a full disk left the rest there, and the next write
/// past the end overwrites it. A file of less than a block belongs to another program, and is not
/// empty.
pub(super) fn length_of(file: &File, block: u64) -> Result<u64, Errno> {
    let found = file.metadata().map_err(|e| Errno::of(&e))?;
    if !found.file_type().is_block_device() {
        let rest = if found.len() < block { 0 } else { found.len() % block };
        return Ok(found.len() - rest);
    }
    rustix::fs::seek(file, SeekFrom::End(0)).map_err(Errno::from)
}

/// Allocates the blocks that a file lacks, or warns once. A file system that cannot allocate ahead
/// is left alone, as during a growth.
pub(super) fn fill_holes(file: &File, path: &Path) {
    let Ok(found) = file.metadata() else { return };
    let missing = found.len().saturating_sub(found.blocks().saturating_mul(512));
    if !found.is_file() || missing == 0 {
        return;
    }
    // On a disk that is too full, an attempt might take all the remaining room.
    let room = rustix::fs::fstatvfs(file).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    let filled = match room {
        Ok(room) if room < missing => Err(rustix::io::Errno::NOSPC),
        _ => rustix::io::retry_on_intr(|| {
            rustix::fs::fallocate(file, FallocateFlags::empty(), 0, found.len())
        }),
    };
    match filled {
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
        Err(errno) => tracing::warn!(
            "{} has holes of {missing} bytes, which get no room on the disk ({errno}): writes there \
             may find the disk full, also those that undo changes",
            path.display()
        ),
    }
}

/// Returns rings for a file's batches, or warns once.
pub(super) fn rings(path: &Path, depth: u32) -> Option<RingPool> {
    match RingPool::new(depth.max(1)) {
        Ok(rings) => Some(rings),
        Err(errno) => {
            tracing::warn!(
                "the kernel refuses io_uring for {} ({errno}): batches are read and written one \
                 page after the other",
                path.display()
            );
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEED: Alignment = Alignment { memory: 4096, offset: 4096 };

    fn failed(errno: i32) -> io::Result<usize> {
        Err(io::Error::from_raw_os_error(errno))
    }

    /// Returns whether another file is asked for when the first read returns the result of `first`.
    fn asks(length: u64, first: impl Fn() -> io::Result<usize>, is_plain_sound: bool) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pond.mp");
        std::fs::write(&path, vec![7; length as usize]).unwrap();
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let reads = std::cell::Cell::new(0);
        let read = |file: &File, block: &mut [u8]| {
            reads.set(reads.get() + 1);
            match reads.get() {
                1 => first(),
                _ if !is_plain_sound => failed(libc::EIO),
                _ => file.read_at(block, 0),
            }
        };
        let options = FileOptions::default();
        let plain = reopen_if_reads_fail(&file, NEED, &path, &options, &read).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), length, "the probe leaves no trace");
        plain.is_some()
    }

    #[test]
    fn a_file_whose_direct_reads_fail_is_opened_without_direct_io() {
        for length in [0, 100, 4096, 20_000] {
            let whole = || Ok(if length == 0 { 4096 } else { length.min(4096) as usize });
            assert!(!asks(length, whole, true), "direct reads work");
            assert!(asks(length, || failed(libc::EINVAL), true));
            assert!(asks(length, || Ok(0), true));
            assert!(!asks(length, || failed(libc::EIO), false), "all reads fail");
        }
    }
}
