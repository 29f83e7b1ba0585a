//! Errors of a second tier.

use std::path::PathBuf;

use millpond_device::{DeviceError, OpenFileError};

/// A second tier that cannot be used.
///
/// ```
/// use millpond_tier::{TierError, TierOptions};
///
/// let tiny =
///     TierOptions { bytes: 4096, page_bytes: 4096, unit: 4096, seed: 1, writes_back: false };
/// assert!(matches!(tiny.frames(), Err(TierError::TooSmall { bytes: 4096, .. })));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TierError {
    /// The cache's file cannot be opened, or another process has it.
    #[error("the second tier cannot be opened: {0}")]
    File(OpenFileError),
    /// The cache's device failed.
    #[error("the second tier cannot be used: {0}")]
    Device(DeviceError),
    /// The file holds something else.
    #[error(
        "{} is no second tier, and is not overwritten: name another file, or remove it",
        path.display()
    )]
    NotATier {
        /// The file.
        path: PathBuf,
    },
    /// The cache belongs to another store, or to this one at another time.
    #[error(
        "the second tier {} has writes of another store than {}, or of another time of it: open \
         the two that were used together last, or name another file as the second tier",
        path.display(),
        store.display()
    )]
    NotItsStore {
        /// The cache's file.
        path: PathBuf,
        /// The store's file.
        store: PathBuf,
    },
    /// The last writes are in a second tier, which is missing.
    #[error(
        "{} is not whole: what was written last is in its second tier, which was {}: open it with \
         that one, for writing; if that is lost, `millpond dump --salvage` saves what is here",
        path.display(),
        cache.display()
    )]
    CacheMissing {
        /// The store's file.
        path: PathBuf,
        /// Path of the cache at its last use.
        cache: PathBuf,
    },
    /// The cache has writes that the store lacks, and its size differs from the requested one.
    #[error(
        "the second tier {} has writes that the store has not, and was made with {found} bytes, \
         not {asked}: open it with {found}, without write-back, and close it; then it can have \
         any size",
        path.display()
    )]
    OtherSize {
        /// The cache's file.
        path: PathBuf,
        /// Size of the cache's file in bytes.
        found: u64,
        /// The requested size.
        asked: u64,
    },
    /// The directory is damaged, and the store needs its data.
    #[error(
        "the directory of the second tier {} is damaged: what it has of the store cannot be told; \
         restore a backup of the store",
        path.display()
    )]
    Damaged {
        /// The cache's file.
        path: PathBuf,
    },
    /// A later version wrote the file.
    #[error(
        "{} is a second tier of format {found}, of which this version of Millpond knows up to \
         {known}: use a newer one, or remove the file",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Format of the file.
        found: u32,
        /// Newest format that this version supports.
        known: u32,
    },
    /// The tier's tables do not fit into memory.
    #[error(
        "what is kept in memory of a second tier of {bytes} bytes takes {needs} bytes, of {memory} \
         that the store may use: make it smaller, or give more memory"
    )]
    TooLarge {
        /// The requested size.
        bytes: u64,
        /// Bytes of memory that the tables take.
        needs: u64,
        /// Bytes of available memory.
        memory: u64,
    },
    /// The size leaves no room for pages.
    #[error("a second tier of {bytes} bytes has no room: give it at least {least}")]
    TooSmall {
        /// The requested size.
        bytes: u64,
        /// Smallest size that works.
        least: u64,
    },
}

millpond_base::from_variants! { TierError {
    File(OpenFileError),
    Device(DeviceError),
} }
