//! Errors of a backup.

use std::path::PathBuf;

use millpond_device::DeviceError;

use crate::io::{MapError, ReadError};

/// Reason that there is no backup. No part of it is left behind, and the store stays in use.
///
/// ```
/// use millpond::{Db, Error, Options, error::BackupError};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// use std::ops::ControlFlow;
/// let db = Db::open(folder.path().join("pond.mp"), Options::new().memory(16 << 20))?;
/// let target = folder.path().join("monday.mp");
/// let given_up = db.backup_with(&target, &mut |_| ControlFlow::Break(()));
/// assert!(matches!(given_up, Err(Error::Backup(BackupError::GivenUp))), "{given_up:?}");
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The target's name is taken, or that of its log.
    #[error("{} exists: choose another name for the backup, or remove it", path.display())]
    Exists {
        /// The existing path.
        path: PathBuf,
    },
    /// A backup to the same place is in progress, or its process stopped before it was done.
    #[error(
        "{} is of a backup that is under way, or whose process stopped: if so, remove it",
        path.display()
    )]
    Unfinished {
        /// The file.
        path: PathBuf,
    },
    /// The store has no log, which a consistent copy needs.
    #[error("{} is open without a log: close it, and copy its file", path.display())]
    NoLog {
        /// Path of the store.
        path: PathBuf,
    },
    /// The backup could not be written: the device is full, or failed.
    #[error("the backup could not be written: {0}")]
    Target(DeviceError),
    /// A page of the store could not be read.
    #[error("the store could not be read for the backup: {0}")]
    Source(ReadError),
    /// The store's page map could not be read.
    #[error("the store could not be read for the backup: {0}")]
    Map(MapError),
    /// A page of the store is damaged.
    #[error(
        "the store is damaged, so there is no backup of it: {0}; `millpond dump --salvage` reads \
         what is intact"
    )]
    Damaged(ReadError),
    /// A file of the backup could not be created, moved or removed.
    #[error("{} could not be put in place: {reason}", path.display())]
    Place {
        /// The file.
        path: PathBuf,
        /// The operating system's message.
        reason: String,
    },
    /// The store cannot shrink during a backup, which copies the pages in use at its start.
    #[error("a backup of the store is under way: shrink it when that is done")]
    UnderWay,
    /// The caller's progress callback cancelled it.
    #[error("the backup was cancelled")]
    GivenUp,
}
