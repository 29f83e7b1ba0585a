//! Errors of devices.
//!
//! Errors can be cloned and compared, since several threads that waited for one load all get the
//! same error.

use std::fmt;
use std::path::PathBuf;

/// An error number of the operating system.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

impl Errno {
    /// A device failed.
    pub const IO: Errno = Errno(libc::EIO);
    /// The device is gone; a device whose power failed is.
    pub const NO_DEVICE: Errno = Errno(libc::ENODEV);

    /// Returns the number in `error`. Without one, it is `EINVAL` for an argument that the standard
    /// library refused, and `EIO` for anything else.
    pub fn of(error: &std::io::Error) -> Errno {
        // A path with a NUL byte never reaches the operating system.
        let by_kind = || match error.kind() {
            std::io::ErrorKind::InvalidInput => libc::EINVAL,
            _ => libc::EIO,
        };
        Errno(error.raw_os_error().unwrap_or_else(by_kind))
    }
}

impl From<rustix::io::Errno> for Errno {
    fn from(errno: rustix::io::Errno) -> Errno {
        Errno(errno.raw_os_error())
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The standard library words it as "No space left on device (os error 28)".
        write!(f, "{}", std::io::Error::from_raw_os_error(self.0))
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Errno({}: {self})", self.0)
    }
}

/// An operation on a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// Reading bytes.
    Read,
    /// Writing bytes.
    Write,
    /// Making writes durable.
    Sync,
    /// Making the device longer.
    Grow,
    /// Making the device shorter.
    Shrink,
    /// Reading its length or limits.
    Inspect,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Read => "reading",
            Operation::Write => "writing",
            Operation::Sync => "syncing",
            Operation::Grow => "growing",
            Operation::Shrink => "shrinking",
            Operation::Inspect => "inspecting",
        })
    }
}

/// Reason that an operation on a device failed. Offsets and lengths are in bytes.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The operating system refused or the hardware failed.
    #[error("{operation} {length} bytes at offset {offset} of {} failed: {errno}", path.display())]
    Io {
        /// The operation that failed.
        operation: Operation,
        /// The device.
        path: PathBuf,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
        /// The operating system's reason.
        errno: Errno,
    },
    /// The folder of a new file could not be synced: the file might be missing after a power
    /// failure.
    #[error("the folder {} cannot be synced: {errno}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The operating system's reason.
        errno: Errno,
    },
    /// There is no room left: on the disk, or because of a quota or the process's limit of file
    /// sizes. Data stored before is not affected.
    #[error(
        "the disk of {} is full, or a quota or a limit of file sizes is reached: {needed} more \
         bytes were needed at offset {offset}; make room and try again, what is stored is intact",
        path.display()
    )]
    DiskFull {
        /// The device.
        path: PathBuf,
        /// Offset of the bytes to be stored.
        offset: u64,
        /// Number of bytes.
        needed: u64,
    },
    /// The device ends before the requested bytes.
    #[error(
        "{} ends at offset {device_length}, before the {length} bytes at offset {offset}",
        path.display()
    )]
    PastEnd {
        /// The device.
        path: PathBuf,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
        /// Length of the device in bytes.
        device_length: u64,
    },
    /// The store has the largest possible number of pages.
    #[error(
        "{} cannot grow beyond {length} bytes, the most for pages of its size; dump it and load the \
         dump into a store with larger pages",
        path.display()
    )]
    TooLong {
        /// The device.
        path: PathBuf,
        /// Length of the longest file, in bytes.
        length: u64,
    },
    /// Direct I/O moves whole blocks only.
    #[error(
        "{length} bytes at offset {offset} of {} are not a multiple of {alignment} bytes",
        path.display()
    )]
    Misaligned {
        /// The device.
        path: PathBuf,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
        /// Offset and length must be multiples of this.
        alignment: u64,
    },
    /// The stored bytes are not the bytes written, and no other copy exists.
    #[error(
        "{length} bytes at offset {offset} of {} are not what was written there, and are nowhere \
         else: what they hold is lost",
        path.display()
    )]
    Damaged {
        /// The device.
        path: PathBuf,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
    /// The parent process of this fork opened the device.
    #[error("{} was opened before this process was forked: open it here", path.display())]
    Forked {
        /// The device.
        path: PathBuf,
    },
    /// The device was released: another process, or another opening of this one, may have it.
    #[error("{} was closed: open it again", path.display())]
    Closed {
        /// The device.
        path: PathBuf,
    },
    /// The device is open for reading only.
    #[error("{} is open for reading only", path.display())]
    ReadOnly {
        /// The device.
        path: PathBuf,
    },
}

impl DeviceError {
    /// Returns `true` if the device had no room left.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, DeviceError::DiskFull { .. })
    }
}

/// Reason that a file could not be opened as a device.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenFileError {
    /// The operating system refused.
    #[error("opening {} failed: {errno}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        errno: Errno,
    },
    /// Another process has it open, and two writers would destroy it.
    #[error(
        "{} is in use by {}: close it there first",
        path.display(),
        HolderName(*pid)
    )]
    Locked {
        /// The file.
        path: PathBuf,
        /// The process that holds the lock, if it can be found; it may be this one.
        pid: Option<u32>,
    },
    /// The path names something other than a regular file.
    #[error(
        "{} is {what}, and a store needs a regular file (a block device, too, takes a file system \
         first): choose another path",
        path.display()
    )]
    NotAFile {
        /// Path to be opened.
        path: PathBuf,
        /// Name of the kind of file found there.
        what: &'static str,
    },
    /// A new file was to be created, and one exists that is not empty.
    #[error("{} exists and holds {length} bytes: open it, or choose another name", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
        /// Length of the file in bytes.
        length: u64,
    },
}

struct HolderName(Option<u32>);

impl fmt::Display for HolderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(pid) if pid == std::process::id() => write!(f, "this process (pid {pid})"),
            Some(pid) => write!(f, "the process with pid {pid}"),
            None => f.write_str("another process"),
        }
    }
}

/// Returns the kind of the system's error, without its text, which is a source.
pub fn kind_of(error: &std::io::Error) -> String {
    let kind = error.kind().to_string();
    match error.raw_os_error() {
        // Rust has kinds for the usual errors only.
        Some(number) if kind == "uncategorized error" => format!("error {number} of the system"),
        _ => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_none_is_no_failure_of_the_device() {
        let refused = std::fs::File::open("a\0b").unwrap_err();
        assert_eq!(Errno::of(&refused), Errno(libc::EINVAL));
        let odd = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        assert_eq!(Errno::of(&odd), Errno::IO);
    }
}
