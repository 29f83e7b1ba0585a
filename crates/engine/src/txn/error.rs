//! Errors of a transaction.

use std::sync::Arc;
use std::time::Duration;

use millpond_device::kind_of;

use crate::btree::WriteError;
use crate::hash_index;
use crate::heap;
use crate::io::SpillError;
use crate::lock::{LockError, TreeName};
use crate::log::LogError;
use crate::parameters::{MEMORY, SPILL_MAX};
use crate::pool::PoolError;

/// Reason that a transaction cannot continue.
///
/// ```
/// # use millpond::{Db, Error, Options, error::TxnError};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let (mut one, two) = (db.begin()?, db.begin()?);
/// let foreign = one.rollback_to(&two.savepoint()?);
/// assert!(matches!(foreign, Err(Error::Txn(TxnError::NoSavepoint))), "{foreign:?}");
/// # Ok(()) }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TxnError {
    /// A lock is unavailable: a deadlock, or a timeout.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A key or a value is invalid, or the memory behind the tree failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// An entry of a hash index is invalid, or has no room.
    #[error(transparent)]
    HashWrite(#[from] hash_index::WriteError),
    /// A record of a heap is invalid.
    #[error(transparent)]
    HeapWrite(#[from] heap::WriteError),
    /// The memory behind the structure failed.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The store was closed.
    #[error("the store was closed: open it again")]
    Closed,
    /// This process is a fork of the one that opened the store or began the transaction.
    #[error(
        "this process is a fork of the one that opened the store, whose handles do nothing here"
    )]
    Forked,
    /// The log failed: the transaction may not be durable, and later ones will not be.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The transaction failed earlier, and can only be aborted.
    #[error("the transaction failed before: abort it and begin again")]
    Failed,
    /// A closure run by one of the transaction's calls has called the transaction.
    #[error("a closure called the transaction in one of whose calls it runs: let it return first")]
    Nested,
    /// The savepoint belongs to another transaction, or the transaction was rolled back beyond it.
    #[error("there is no such savepoint in this transaction any more")]
    NoSavepoint,
    /// Snapshots need locks, and the store has none.
    #[error(
        "there are no snapshots without locks: read the trees themselves of a store that is open \
         for reading only, and open another one with locks"
    )]
    NoSnapshots,
    /// The versions since the snapshot began exceed their memory, and could not be spilled.
    #[error(
        "the snapshot that thread '{thread}' began at {caller} {age:.1?} ago is lost: what was \
         changed since then exceeds the memory for versions, and {}; begin another one, keep it \
         for a shorter time, give the store more memory ({MEMORY}){}",
        why_not_spilled(error),
        advice(error.as_deref())
    )]
    SnapshotLost {
        /// Place in the program where the snapshot began.
        caller: String,
        /// Name of the thread that began it.
        thread: String,
        /// Time since it began.
        age: Duration,
        /// Error of the spill file. `None` if the store has no spill file, or if the memory for
        /// spilled versions was not enough.
        #[source]
        error: Option<Arc<SpillError>>,
    },
    /// A version that the snapshot needs is in the spill file, which cannot be read. The snapshot
    /// is lost.
    #[error(
        "the snapshot that was begun at {caller} is lost: {what}; drop it, and begin another one"
    )]
    SnapshotUnreadable {
        /// Place in the program where the snapshot began.
        caller: String,
        /// The failure, in words.
        what: String,
        /// The cause.
        #[source]
        error: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// The snapshot's version of an entry is in pages that cannot be read, or that hold something
    /// else. Other entries are not affected.
    #[error("what the entry was when the snapshot began cannot be read: {0}")]
    VersionUnreadable(Arc<PoolError>),
    /// A snapshot cannot begin.
    #[error(
        "no snapshot can begin: the versions of what active transactions and calls under way have \
         changed take {bytes} bytes, there are {limit}, and {}; try again when they are over, \
         give the store more memory ({MEMORY}){}",
        why_not_spilled(error),
        advice(error.as_deref())
    )]
    SnapshotTooLarge {
        /// Bytes that the versions take.
        bytes: usize,
        /// Memory for versions, in bytes.
        limit: usize,
        /// Error of the spill file. `None` if the store has no spill file, or if the memory for
        /// spilled versions was not enough.
        #[source]
        error: Option<Arc<SpillError>>,
    },
    /// The undo records of the transaction do not fit. The change was not made. The transaction can
    /// be rolled back, aborted, or committed as it is.
    #[error(
        "the undo records of the transaction need more than the {limit} bytes of memory that there \
         are for them, and {}; {}, or give the store more memory ({MEMORY}){}",
        match error {
            Some(error) => in_short(error),
            None => "what a store in memory may spill is used up".into(),
        },
        match self.is_retriable() {
            true => "others have most of the room: roll it back and try again",
            false => "abort it, change less in one transaction",
        },
        advice(error.as_ref())
    )]
    UndoTooLarge {
        /// Memory for the undo records of all transactions, in bytes.
        limit: usize,
        /// Bytes that all transactions may have, in memory and spilled.
        room: u64,
        /// Bytes that this transaction would have with the change.
        own: u64,
        /// Error of the spill file. `None` in a store in memory, if active transactions already
        /// have all of their spilled memory.
        #[source]
        error: Option<SpillError>,
    },
    /// The memory for handles of large values is full, because active transactions have replaced or
    /// removed many of them. The change was not made. The transaction can be rolled back, aborted,
    /// or committed as it is.
    #[error(
        "active transactions have replaced or removed more large values than fit into the {limit} \
         bytes of memory for that; {}, or give the store more memory ({MEMORY})",
        match self.is_retriable() {
            true => "others have most of it: roll the transaction back and try again",
            false => "commit the transaction as it is or abort it, change less in one",
        }
    )]
    TooManyLarge {
        /// Memory for the handles of all transactions, in bytes.
        limit: usize,
        /// Bytes of them that this transaction would have.
        own: usize,
    },
    /// Undo records of the transaction are in the spill file, which cannot be read.
    #[error(
        "undo records of the transaction cannot be read, as {}; drop the store and open it again: \
         recovery rolls the transaction back",
        in_short(.0)
    )]
    UndoUnreadable(#[source] SpillError),
    /// The transaction is not rolled back yet, because undo found no room. The store continues the
    /// undo by itself until it is done. The entries that the transaction changed stay locked until
    /// then.
    #[error(
        "the transaction is not rolled back yet: {0}; until there is room, what it changed stays \
         locked. The store then rolls it back by itself"
    )]
    UndoPending(Arc<TxnError>),
    /// A tree was emptied or loaded while the snapshot began.
    #[error(
        "the tree {tree} was being emptied or loaded as a whole when the snapshot was \
         begun: begin another one"
    )]
    TreeBulkModified {
        /// Name of the tree.
        tree: TreeName,
    },
    /// A tree that the transaction changed cannot be found.
    #[error("transaction {tx} changed the tree with id {owner}, which cannot be found")]
    NoTree {
        /// Id of the transaction.
        tx: u64,
        /// The tree's id.
        owner: u32,
    },
}

/// Describes briefly why versions could not be spilled.
pub(in crate::txn) fn why_not_spilled(error: &Option<Arc<SpillError>>) -> String {
    error.as_deref().map_or_else(|| "they cannot be spilled".into(), in_short)
}

/// Describes a fault of the spill file briefly, for errors that have it as their source.
pub(in crate::txn) fn in_short(error: &SpillError) -> String {
    match error {
        SpillError::Full { max, .. } => format!("the spill file has {max} bytes already"),
        SpillError::File { error, .. } => format!("the spill file failed ({})", kind_of(error)),
        SpillError::Damaged { .. } => "the spill file is damaged".into(),
        SpillError::Closed { .. } => "the store was closed".into(),
    }
}

/// Returns further advice, if there is any.
fn advice(error: Option<&SpillError>) -> String {
    match error {
        None => String::new(),
        Some(SpillError::Full { .. }) => format!(", or a larger spill file ({SPILL_MAX})"),
        Some(_) => ", or mend the spill file's folder or drive".to_string(),
    }
}

impl TxnError {
    /// Returns `true` if a wait for a lock timed out.
    #[doc(hidden)]
    pub fn is_timeout(&self) -> bool {
        matches!(self, TxnError::Lock(error) if error.is_timeout())
    }

    /// Returns `true` if the transaction lost in a deadlock.
    #[doc(hidden)]
    pub fn is_deadlock(&self) -> bool {
        matches!(self, TxnError::Lock(error) if error.is_deadlock())
    }

    /// Returns `true` if the same transaction, or another snapshot, may succeed without a change.
    #[doc(hidden)]
    pub fn is_retriable(&self) -> bool {
        match self {
            TxnError::Lock(error) => error.retriable(),
            // Ends with the transactions, or the load, of others.
            TxnError::SnapshotTooLarge { .. } | TxnError::TreeBulkModified { .. } => true,
            // A transaction that has most of the room would only need it again.
            TxnError::UndoTooLarge { room, own, .. } => own.saturating_mul(2) <= *room,
            TxnError::TooManyLarge { limit, own } => own.saturating_mul(2) <= *limit,
            _ => false,
        }
    }
}

/// Converts an error, off the hot path: errors are large.
#[cold]
#[inline(never)]
pub(super) fn failed<E: Into<TxnError>>(error: E) -> TxnError {
    error.into()
}
