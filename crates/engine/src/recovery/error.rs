//! What can go wrong in recovery.

use millpond_base::{Lsn, PageId};

use crate::io::{AllocateError, SyncError, WriteError};
use crate::log::LogError;

/// Why a store could not be recovered. The store is as recoverable as before: once the cause is
/// removed, recovery restarts.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecoveryError {
    /// The log could not be read.
    #[error("recovery cannot read the log: {0}")]
    Log(LogError),
    /// The superblock names a position of the log where no checkpoint is.
    #[error(
        "the log has a record of kind {kind} at position {}, where the superblock says that a \
         checkpoint is: data file and log do not belong together, or one is older than the other; \
         find the pair, or restore a backup",
        at.0
    )]
    NoCheckpoint {
        /// The position.
        at: Lsn,
        /// The kind of the record that is there.
        kind: u8,
    },
    /// A checkpoint cannot be understood.
    #[error(
        "the checkpoint at position {} of the log makes no sense: {what}; restore a backup, or \
         read what is intact with `millpond dump --salvage`",
        at.0
    )]
    Checkpoint {
        /// Where its last record begins.
        at: Lsn,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A record is of a kind that this version does not know.
    #[error(
        "the log has a record of kind {kind} at position {}, which this version does not know: \
         open the store with the version that wrote it",
        at.0
    )]
    Kind {
        /// Where the record begins.
        at: Lsn,
        /// Its kind.
        kind: u8,
    },
    /// A record's body cannot be understood.
    #[error(
        "the record at position {} of the log makes no sense from byte {byte} of its body on; \
         restore a backup, or read what is intact with `millpond dump --salvage`",
        at.0
    )]
    Body {
        /// Where the record begins.
        at: Lsn,
        /// Where in the body.
        byte: usize,
    },
    /// A record does not fit the page that it is about.
    #[error(
        "the record at position {} of the log does not fit page {page}: {what}; restore a backup, \
         or read what is intact with `millpond dump --salvage`",
        lsn.0
    )]
    Damaged {
        /// Where the record begins.
        lsn: Lsn,
        /// The page.
        page: PageId,
        /// What does not fit.
        what: &'static str,
    },
    /// The data file cannot be as long as the log says that it was.
    #[error("recovery cannot make the store as long as it was: {0}")]
    Grow(AllocateError),
    /// A page could not be written.
    #[error("recovery cannot write: {0}")]
    Write(WriteError),
    /// What was recovered may not be durable.
    #[error("what was recovered may not be durable: {0}")]
    Sync(SyncError),
}

millpond_base::from_variants! { RecoveryError {
    Log(LogError),
    Grow(AllocateError),
    Write(WriteError),
    Sync(SyncError),
} }
