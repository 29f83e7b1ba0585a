//! Errors of a volume.

use millpond_base::Parameter;
use std::path::PathBuf;

use millpond_device::{DeviceError, OpenFileError};
use millpond_tier::TierError;

use crate::protocol::errors;

/// Serves a file that may only be read.
const READ_ONLY: Parameter = Parameter::new("read_only");

/// Why a request to a volume failed.
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
    /// The volume is for reading only.
    #[error("the volume is served for reading only")]
    ReadOnly,
    /// The device failed.
    #[error(transparent)]
    Device(DeviceError),
    /// A sync failed before: what is durable is unknown, and nothing is written or confirmed until
    /// the server is started again.
    #[error("the volume takes no writes since a sync failed: {0}")]
    SyncFailed(DeviceError),
    /// The name of a file of the volume leads to another file by now, or to none: what is written
    /// goes where nobody finds it after the server has ended.
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
    /// The protocol's number for it.
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

/// Why a volume cannot be opened.
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
    /// The backing file is something else.
    #[error("{} is {what}: a regular file or a block device can be served", path.display())]
    NotBacking {
        /// Path to be opened.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// The backing file may not be written.
    #[error(
        "the backing file cannot be served for reading and writing: {0}; {READ_ONLY} serves it for \
         reading"
    )]
    NotWritable(OpenFileError),
    /// The backing file cannot be opened.
    #[error("the backing file cannot be served: {0}")]
    Backing(OpenFileError),
    /// The backing file has no whole block.
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
    /// Blocks cannot have this size.
    #[error("blocks cannot have {block} bytes: a power of two from 512 to 64 KiB is needed")]
    Block {
        /// The requested block size.
        block: u32,
    },
    /// Cache and backing file are one.
    #[error("{} is backing file and cache: name two files", path.display())]
    SameFile {
        /// The file.
        path: PathBuf,
    },
    /// The policy is none.
    #[error("the cache's policy: {0}")]
    Policy(String),
    /// The cache's file cannot be opened.
    #[error("the cache's file cannot be used: {0}")]
    CacheFile(OpenFileError),
    /// What was written last is in a write-back cache, and that is not there.
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
    /// The cache cannot be.
    #[error(transparent)]
    Cache(TierError),
    /// The file is there, and does not say what it is.
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
            // A volume holds no store, so that its advice is another one.
            TierError::CacheMissing { path, cache } => {
                OpenVolumeError::CacheMissing { path, cache }
            }
            other => OpenVolumeError::Cache(other),
        }
    }
}
