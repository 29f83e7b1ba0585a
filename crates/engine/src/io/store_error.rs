//! Errors of a page store, one enum per operation.

use std::path::PathBuf;

use millpond_base::PageId;
use millpond_device::{DeviceError, OpenFileError};

use super::placement::map_read::MapError;
use crate::page::page_map::is_node;
use crate::page::superblock::SuperblockError;
use crate::page::{PageSize, PageSizeError};

/// Returns the name of a page for messages, by the id in its header.
pub(crate) fn named(page: PageId) -> String {
    if is_node(page) { "a node of the page map".into() } else { format!("page {page}") }
}

/// Reason that a page could not be read. The contents of the buffer are undefined then.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The device failed.
    #[error("page {page} could not be read: {error}")]
    Device {
        /// The page.
        page: PageId,
        /// The error of the device.
        error: DeviceError,
    },
    /// The stored bytes are not the bytes written.
    #[error(
        "page {page} of {} (offset {offset}) is damaged: checksum stored {stored:#018x}, computed \
         {computed:#018x}; `millpond check` lists all damage, `millpond dump --salvage` reads \
         what is intact",
        path.display()
    )]
    Checksum {
        /// Path of the store.
        path: PathBuf,
        /// The page.
        page: PageId,
        /// Offset of the page in bytes.
        offset: u64,
        /// The checksum in the page.
        stored: u64,
        /// The checksum of the page's bytes.
        computed: u64,
    },
    /// A sound page, but another one: a write went to the wrong place.
    #[error(
        "offset {offset} of {} holds {} where page {page} belongs: a write was lost, or went to the \
         wrong place; `millpond check` lists all damage",
        path.display(),
        named(*found)
    )]
    Misplaced {
        /// Path of the store.
        path: PathBuf,
        /// The requested page.
        page: PageId,
        /// Offset of the page in bytes.
        offset: u64,
        /// The page that is there.
        found: PageId,
    },
    /// The requested page is sound, but not in the version that was written last: a write was lost.
    #[error(
        "offset {offset} of {} holds another version of page {page} than the last one: a write \
         was lost; `millpond check` lists all damage",
        path.display()
    )]
    Stale {
        /// Path of the store.
        path: PathBuf,
        /// The requested page.
        page: PageId,
        /// Offset of the page in bytes.
        offset: u64,
    },
    /// The page map has no place for the page: it was never written, or is free.
    #[error(
        "page {page} is nowhere in {}: something refers to it that is damaged, or it was lost; \
         `millpond check` lists all damage",
        path.display()
    )]
    Nowhere {
        /// Path of the store.
        path: PathBuf,
        /// The requested page.
        page: PageId,
    },
    /// The page does not exist.
    #[error("page {page} does not exist: the store has {pages} pages")]
    OutOfRange {
        /// The requested page.
        page: PageId,
        /// The store's length in pages.
        pages: u64,
    },
    /// The buffer is not one page long.
    #[error("page {page} has {page_bytes} bytes, and the buffer has {buffer_bytes}")]
    BufferSize {
        /// The requested page.
        page: PageId,
        /// Bytes per page.
        page_bytes: usize,
        /// Bytes of the buffer.
        buffer_bytes: usize,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

/// Reason that pages could not be written. The batch marks those that were.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The device failed; any part of the page may have landed.
    #[error("page {page} could not be written: {error}")]
    Device {
        /// The page.
        page: PageId,
        /// The error of the device.
        error: DeviceError,
    },
    /// No place is free, and the file could not grow; checkpoints free places.
    #[error("no place is free for a page, and the store could not grow: {0}")]
    NoPlace(DeviceError),
    /// The page map could not be written.
    #[error("the page map could not be written: {0}")]
    Map(DeviceError),
    /// An earlier sync failed.
    #[error(
        "an earlier sync of {} failed, so nothing written since can be relied on",
        path.display()
    )]
    NotSynced {
        /// Path of the store.
        path: PathBuf,
    },
    /// The page does not exist.
    #[error("page {page} does not exist: the store has {pages} pages")]
    OutOfRange {
        /// The given page.
        page: PageId,
        /// The store's length in pages.
        pages: u64,
    },
    /// The page is the store's own.
    #[error("page {page} is the superblock or a free map, which the store writes itself")]
    Reserved {
        /// The given page.
        page: PageId,
    },
    /// The header in the buffer names another page: the write would go to the wrong place.
    #[error("the header of the buffer to be written as page {page} names page {found}")]
    WrongPage {
        /// The given page.
        page: PageId,
        /// The page in the header.
        found: PageId,
    },
    /// The buffer is not one page long.
    #[error("page {page} has {page_bytes} bytes, and the buffer has {buffer_bytes}")]
    BufferSize {
        /// The given page.
        page: PageId,
        /// Bytes per page.
        page_bytes: usize,
        /// Bytes of the buffer.
        buffer_bytes: usize,
    },
    /// A page is twice in a batch, so that its contents would be ambiguous.
    #[error("page {page} is in the batch more than once")]
    Twice {
        /// The given page.
        page: PageId,
    },
    /// The store was opened for reading, or for salvage.
    #[error("the store is open for reading only")]
    ReadOnly,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

/// Reason that a page could not be moved to the front of the file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// The page could not be read.
    #[error(transparent)]
    Read(ReadError),
    /// The page could not be written.
    #[error(transparent)]
    Write(WriteError),
}

millpond_base::from_variants! { PackError {
    Read(ReadError),
    Write(WriteError),
} }

/// Reason that no page could be allocated. Nothing was allocated.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AllocateError {
    /// The store could not grow; it stays usable, and freeing pages makes room.
    #[error("no page is free, and the store could not grow: {0}")]
    Grow(DeviceError),
    /// The store was opened for reading, or for salvage.
    #[error("the store is open for reading only")]
    ReadOnly,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

millpond_base::from_variants! { AllocateError {
    Grow(DeviceError),
} }

/// Reason that a page could not be freed. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FreeError {
    /// The page does not exist.
    #[error("page {page} does not exist: the store has {pages} pages")]
    OutOfRange {
        /// The given page.
        page: PageId,
        /// The store's length in pages.
        pages: u64,
    },
    /// The page is the store's own.
    #[error("page {page} is the superblock or a free map, which are never free")]
    Reserved {
        /// The given page.
        page: PageId,
    },
    /// The page was free already: two owners would get it.
    #[error("page {page} is free already")]
    AlreadyFree {
        /// The given page.
        page: PageId,
    },
    /// The store was opened for reading, or for salvage.
    #[error("the store is open for reading only")]
    ReadOnly,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

/// Reason that writes may not be durable.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// The device did not confirm the sync. No write since the last sync is certain, and another
    /// sync would prove nothing.
    #[error("{0}; what was written since the last sync may be lost")]
    Device(DeviceError),
    /// An earlier sync failed.
    #[error(
        "an earlier sync of {} failed, so nothing written since can be relied on",
        path.display()
    )]
    FailedBefore {
        /// Path of the store.
        path: PathBuf,
    },
    /// The store was opened for reading, or for salvage.
    #[error("the store is open for reading only")]
    ReadOnly,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

millpond_base::from_variants! { SyncError {
    Device(DeviceError),
} }

/// Reason that a store could not be closed cleanly.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CloseError {
    /// The page map could not be written; closing may be tried again.
    #[error("closing could not be finished: {0}")]
    Map(WriteError),
    /// A free map or the superblock could not be written; closing may be tried again.
    #[error("closing could not be finished: {0}")]
    Device(DeviceError),
    /// Writes may not be durable: the store stays marked as open.
    #[error("the store cannot be closed cleanly: {0}")]
    Sync(SyncError),
    /// The catalog's root is not an allocated page.
    #[error("the catalog's root, page {page}, is not an allocated page")]
    CatalogRoot {
        /// The given page.
        page: PageId,
    },
}

millpond_base::from_variants! { CloseError {
    Device(DeviceError),
    Sync(SyncError),
} }

/// Reason that a store could not be created.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The file could not be created.
    #[error(transparent)]
    File(#[from] OpenFileError),
    /// The page size is not allowed.
    #[error(transparent)]
    PageSize(#[from] PageSizeError),
    /// The first pages could not be written.
    #[error("the store could not be created: {0}")]
    Device(DeviceError),
    /// The device is not empty.
    #[error("{} holds {length} bytes already", path.display())]
    NotEmpty {
        /// Path of the device.
        path: PathBuf,
        /// Length of the device in bytes.
        length: u64,
    },
    /// Compressed pages are shorter than the device's unit of I/O.
    #[error(
        "pages cannot be compressed on {}: they would take units of {unit} bytes, and the drive \
         reads and writes blocks of {block}; use larger pages, or no compression",
        path.display()
    )]
    Unit {
        /// Path of the device.
        path: PathBuf,
        /// Bytes per unit.
        unit: u64,
        /// Bytes per block.
        block: u64,
    },
}

millpond_base::from_variants! { CreateError {
    Device(DeviceError),
} }

/// Reason that a store could not be opened.
///
/// ```
/// use millpond::{Db, Error, Options, error::OpenError};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("notes.txt");
/// std::fs::write(&path, "milk, bread".repeat(1000))?;
/// let refused = Db::open(&path, Options::new().memory(16 << 20));
/// assert!(matches!(refused, Err(Error::Open(OpenError::Superblock { .. }))), "{refused:?}");
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file could not be opened, or another process has it open.
    #[error(transparent)]
    File(#[from] OpenFileError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Not a store, a store of another version, or a damaged superblock.
    #[error("{} cannot be opened: {error}", path.display())]
    Superblock {
        /// The file.
        path: PathBuf,
        /// The defect of the superblock.
        error: SuperblockError,
    },
    /// A second tier has the last writes.
    #[error(
        "{} is not whole: what was written last is in its second tier, which was {}: open it with \
         that one, for writing, or make it whole with `millpond destage`; if that is lost, \
         `millpond dump --salvage` saves what is here",
        path.display(),
        cache.display()
    )]
    InSecondTier {
        /// The file.
        path: PathBuf,
        /// Former path of the second tier's cache.
        cache: PathBuf,
    },
    /// The store's page size is not the requested one.
    #[error(
        "{} has pages of {found}, not of {asked}: the page size is fixed when a store is created",
        path.display()
    )]
    PageSizeDiffers {
        /// The file.
        path: PathBuf,
        /// The requested size.
        asked: PageSize,
        /// The store's size of pages.
        found: PageSize,
    },
    /// The file is shorter than the store in it.
    #[error(
        "{} is cut off: it has {found} bytes of {expected}; `millpond dump --salvage` reads what \
         is there",
        path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Bytes that the store takes.
        expected: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// The store, which has no log, was in use when its process or machine stopped.
    #[error(
        "{} was not shut down: its process or machine stopped while it was in use, so its pages \
         may not fit together; `millpond dump --salvage` reads what is intact",
        path.display()
    )]
    NotClean {
        /// The file.
        path: PathBuf,
    },
    /// The store, which has a log, was in use when its process or machine stopped. Its log recovers
    /// it.
    #[error(
        "{} was not shut down: its process or machine stopped while it was in use; open it \
         together with its log, which recovers it",
        path.display()
    )]
    NeedsRecovery {
        /// The file.
        path: PathBuf,
    },
    /// Recovery was requested, and the store was closed cleanly.
    #[error("{} was closed cleanly: there is nothing to recover", path.display())]
    NothingToRecover {
        /// The file.
        path: PathBuf,
    },
    /// A free map is damaged.
    #[error("the map of free pages cannot be read: {0}")]
    FreeMap(ReadError),
    /// The page map is damaged.
    #[error(transparent)]
    PageMap(#[from] Box<MapError>),
    /// Salvage found no page size with which the file is readable.
    #[error(
        "nothing can be salvaged from {}: its first page is not usable ({superblock}), and no page \
         size fits what else is in it; if it is a store, name its page size",
        path.display()
    )]
    NothingToSalvage {
        /// The file.
        path: PathBuf,
        /// The defect of the superblock, which would have the page size.
        superblock: Box<OpenError>,
    },
}

millpond_base::from_variants! { OpenError {
    FreeMap(ReadError),
} }
