//! Errors of recovery, one enum per operation.

use std::path::PathBuf;

use millpond_base::{Lsn, PageId};
use millpond_device::{DeviceError, OpenFileError};

use super::damage::LogDamage;
use crate::btree;
use crate::io::{
    AllocateError, CreateError, OpenError, PackError, ReadError, SyncError, WriteError,
};
use crate::log::LogError;
use crate::pool::PoolError;
use crate::txn::TxnError;

/// Error of a recovery. The store is as recoverable as before: recovery can run again once the
/// cause is removed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecoveryError {
    /// The log could not be read.
    #[error("recovery cannot read the log: {0}")]
    Log(LogError),
    /// A page that has records in the log could not be read.
    #[error("recovery cannot read a page: {0}")]
    Page(ReadError),
    /// The superblock names a log position that has no checkpoint.
    #[error(
        "the log has a record of kind {kind} at position {}, where the superblock names a \
         checkpoint: data file and log do not belong together, or one is older than the other; \
         find the pair, or restore a backup",
        at.0
    )]
    NoCheckpoint {
        /// The position.
        at: Lsn,
        /// Kind of the record at that position.
        kind: u8,
    },
    /// The superblock is older than one that the log notes as durable.
    #[error(
        "the superblock of {} is of generation {found}, and the log says at position {} that one of \
         generation {durable} was durable: the drive returned an older one, or has lost the newer. \
         Nothing was changed: open the store again, and if that fails, restore a backup, or read \
         what is intact with `millpond dump --salvage`",
        path.display(), at.0
    )]
    OlderSuperblock {
        /// The store.
        path: PathBuf,
        /// Generation of the superblock that was read.
        found: u64,
        /// Generation of the one that was durable.
        durable: u64,
        /// Position of the record of that generation in the log.
        at: Lsn,
    },
    /// A checkpoint cannot be decoded.
    #[error(
        "the checkpoint at position {} of the log cannot be decoded: {what}; restore a backup, or \
         read what is intact with `millpond dump --salvage`",
        at.0
    )]
    Checkpoint {
        /// Position of the checkpoint's last record.
        at: Lsn,
        /// Fault of the checkpoint.
        what: &'static str,
    },
    /// A record is of a kind that this version does not know.
    #[error(
        "the log has a record of kind {kind} at position {}, which this version does not know: \
         open the store with the version that wrote it",
        at.0
    )]
    Kind {
        /// Position of the record.
        at: Lsn,
        /// Kind of the record.
        kind: u8,
    },
    /// A record's body cannot be decoded.
    #[error(
        "the record at position {} of the log cannot be decoded from byte {byte} of its body on; \
         restore a backup, or read what is intact with `millpond dump --salvage`",
        at.0
    )]
    Body {
        /// Position of the record.
        at: Lsn,
        /// Offset in the body.
        byte: usize,
    },
    /// A record does not fit the page that it is about.
    #[error(
        "the record at position {} of the log does not fit page {page}: {what}; restore a backup, \
         or read what is intact with `millpond dump --salvage`",
        lsn.0
    )]
    Damaged {
        /// Position of the record.
        lsn: Lsn,
        /// The page.
        page: PageId,
        /// The mismatch.
        what: &'static str,
    },
    /// The calling thread's interrupt check ended the recovery, because of a signal, for example.
    #[error("the recovery was interrupted: the next opening of the store begins it again")]
    Interrupted,
    /// The data file cannot be grown to the length that the log names.
    #[error("recovery cannot make the store as long as it was: {0}")]
    Grow(AllocateError),
    /// A page could not be written.
    #[error("recovery cannot write: {0}")]
    Write(WriteError),
    /// The recovered state may not be durable.
    #[error("what was recovered may not be durable: {0}")]
    Sync(SyncError),
}

millpond_base::from_variants! { RecoveryError {
    Log(LogError),
    Grow(AllocateError),
    Write(WriteError),
    Sync(SyncError),
} }

/// Error of opening a store together with its log. Users see these errors converted to those of
/// `store`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenLogError {
    /// The data file could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A new data file could not be created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// The file of the log could not be opened or created.
    #[error(transparent)]
    File(#[from] OpenFileError),
    /// The directory of the log could not be made durable.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The log could not be opened or created.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The pages could not be brought to the end of the log.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// The log is damaged before its end.
    #[error("{0}")]
    Damaged(Box<LogDamage>),
    /// The store was not closed, and its log is missing.
    #[error("{} is missing", path.display())]
    Missing {
        /// Expected path of the log.
        path: PathBuf,
    },
    /// An old log cannot be removed, and a new one needs its name.
    #[error("the old log {} cannot be removed ({reason})", path.display())]
    OldLog {
        /// The file.
        path: PathBuf,
        /// The operating system's message.
        reason: String,
    },
}

impl From<LogDamage> for OpenLogError {
    fn from(damage: LogDamage) -> OpenLogError {
        OpenLogError::Damaged(Box::new(damage))
    }
}

/// Error of undoing losers or freeing orphans. The next opening tries again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UndoError {
    /// A record that undo needs could not be read.
    #[error(transparent)]
    Log(LogError),
    /// A record of a loser holds neither an undo nor an *undo next*.
    #[error("the record at position {} of the log, by transaction {tx}, has no undo", at.0)]
    NoUndo {
        /// Position of the record.
        at: Lsn,
        /// The transaction.
        tx: u64,
    },
    /// A tree that a loser changed cannot be found.
    #[error(transparent)]
    Txn(#[from] TxnError),
    /// An entry could not be restored.
    #[error(transparent)]
    Write(btree::WriteError),
    /// The buffer pool failed, or the storage below it.
    #[error(transparent)]
    Pool(#[from] PoolError),
}

impl From<btree::WriteError> for UndoError {
    fn from(error: btree::WriteError) -> UndoError {
        match error {
            btree::WriteError::Pool(error) => UndoError::Pool(error),
            other => UndoError::Write(other),
        }
    }
}

/// Error of taking a checkpoint, or of giving back space after it. The last checkpoint stays valid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckpointError {
    /// A dirty page could not be written.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The data file, or its superblock, could not be made durable.
    #[error(transparent)]
    Sync(#[from] SyncError),
    /// The records of the checkpoint could not be made durable.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The page map could not be written.
    #[error(transparent)]
    Map(#[from] WriteError),
    /// A page could not be moved to the front of the file.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// The data file could not be truncated.
    #[error(transparent)]
    Length(#[from] AllocateError),
    /// A file of the store is no longer where it was opened.
    #[error("{} is not the file that was opened", path.display())]
    Displaced {
        /// Name under which it was opened.
        path: PathBuf,
    },
    /// A backup is copying a part of the log that the checkpoint before a truncation would forget.
    #[error("a backup of the store is under way")]
    LogPinned,
}
