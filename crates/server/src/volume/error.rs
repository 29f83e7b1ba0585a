//! Errors of a volume.

use millpond_base::Parameter;
use std::path::PathBuf;

use millpond_device::{DeviceError, OpenFileError};
use millpond_tier::TierError;

use crate::protocol::errors;

/// Parameter that serves a file for reading only.
const READ_ONLY: Parameter = Parameter::new("read_only");

/// Reason that a request to a volume failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VolumeError {
    /// The request goes beyond the volume's end.
    #[error("{length} bytes at offset {offset} end behind the volume's {size} bytes")]
    PastEnd {
        /// Offset of the request.
        offset: u64,
        /// Length of the request in bytes.
        length: u64,
        /// Bytes of the volume.
        size: u64,
    },
    /// The volume is read-only.
    #[error("the volume is served for reading only")]
    ReadOnly,
    /// The device failed.
    #[error(transparent)]
    Device(DeviceError),
    /// An earlier sync failed, so the durable content is unknown. Nothing is written or confirmed
    /// until the server is restarted.
    #[error("the volume takes no writes since a sync failed: {0}")]
    SyncFailed(DeviceError),
    /// The name of one of the volume's files leads to another file now, or to none. Data written
    /// now cannot be found after the server has ended.
    #[error(
        "{} was deleted, moved or replaced while it is served: nothing that is written now will be \
         found there, so no flush is confirmed. Put the file back, or copy the volume through the \
         server, which still reads it, before you stop the server",
        path.display()
    )]
    Displaced {
        /// Former path of the file.
        path: PathBuf,
    },
}

impl VolumeError {
    /// Returns the protocol's error number.
    pub fn number(&self) -> u32 {
        match self {
            VolumeError::PastEnd { .. } => errors::EINVAL,
            VolumeError::ReadOnly | VolumeError::Device(DeviceError::ReadOnly { .. }) => {
                errors::EPERM
            }
            VolumeError::Device(error) if error.is_disk_full() => errors::ENOSPC,
            VolumeError::Device(_) | VolumeError::SyncFailed(_) | VolumeError::Displaced { .. } => {
                errors::EIO
            }
        }
    }
}

millpond_base::from_variants! { VolumeError {
    Device(DeviceError),
} }

/// Reason that a volume cannot be opened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenVolumeError {
    /// There is no backing file.
    #[error(
        "there is no backing file {}: `truncate -s SIZE {}` makes one that is full of zeros",
        path.display(), path.display()
    )]
    NoBacking {
        /// Expected path.
        path: PathBuf,
    },
    /// The path is not a usable backing file.
    #[error("{} is {what}: a regular file or a block device can be served", path.display())]
    NotBacking {
        /// Path to be opened.
        path: PathBuf,
        /// Kind of file at the path.
        what: &'static str,
    },
    /// The backing file is not writable.
    #[error(
        "the backing file cannot be served for reading and writing: {0}; {READ_ONLY} serves it for \
         reading"
    )]
    NotWritable(OpenFileError),
    /// The backing file cannot be opened.
    #[error("the backing file cannot be served: {0}")]
    Backing(OpenFileError),
    /// The backing file is shorter than a block.
    #[error(
        "{} has {length} bytes, less than one block of {block}: make it larger, or blocks smaller",
        path.display()
    )]
    TooShort {
        /// The file.
        path: PathBuf,
        /// Length of the file in bytes.
        length: u64,
        /// Bytes of a block.
        block: u32,
    },
    /// The block size is not allowed.
    #[error("blocks cannot have {block} bytes: a power of two from 512 to 64 KiB is needed")]
    Block {
        /// The requested block size.
        block: u32,
    },
    /// The cache and the backing file are one file.
    #[error("{} is backing file and cache: name two files", path.display())]
    SameFile {
        /// The file.
        path: PathBuf,
    },
    /// The policy does not exist, or does not work here.
    #[error("the cache's policy: {0}")]
    Policy(String),
    /// The cache's file cannot be opened.
    #[error("the cache's file cannot be used: {0}")]
    CacheFile(OpenFileError),
    /// The last writes are in a write-back cache, which is missing.
    #[error(
        "{} is not whole: what was written last, and its first sector, are in its write-back cache, \
         which was {}: serve it with that one; if that is lost, so are these writes: restore a \
         backup, or repair a copy of the file with the tools of the file system in it",
        path.display(),
        cache.display()
    )]
    CacheMissing {
        /// The backing file.
        path: PathBuf,
        /// Path of the cache at its last use.
        cache: PathBuf,
    },
    /// The cache cannot be opened or created.
    #[error(transparent)]
    Cache(TierError),
    /// The file exists, and its type cannot be read.
    #[error("looking at {} failed: {message}", path.display())]
    Look {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        message: String,
    },
}

impl From<TierError> for OpenVolumeError {
    fn from(error: TierError) -> OpenVolumeError {
        match error {
            // A volume holds no store, so its advice differs.
            TierError::CacheMissing { path, cache } => {
                OpenVolumeError::CacheMissing { path, cache }
            }
            other => OpenVolumeError::Cache(other),
        }
    }
}
