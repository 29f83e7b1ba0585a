//! Reasons why a lock was not granted.

use std::fmt;
use std::time::Duration;

use crate::parameters::MEMORY;

/// A tree, as errors name it.
///
/// ```
/// use millpond::error::TreeName;
/// let tree = TreeName { id: 7, name: Some("ponds".to_string()) };
/// assert_eq!(tree.to_string(), "'ponds'");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreeName {
    /// Id in the tree's pages.
    pub id: u32,
    /// Name that users know the tree by, if known.
    pub name: Option<String>,
}

impl fmt::Display for TreeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "'{name}'"),
            None => write!(f, "with id {}", self.id),
        }
    }
}

/// Error of a request for a lock. The owner keeps all locks that it had before; its transaction has
/// to roll back and release them.
///
/// ```
/// # use millpond::{Db, Error, Options, error::{LockError, TxnError}};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let ponds = db.tree::<String, u32>("ponds")?;
/// let refused = db.transact(|tx| {
///     tx.tree(&ponds).put("mill", &7)?;
///     // A call outside the transaction would wait for the closure that it is made in.
///     ponds.put("mill", &8)
/// });
/// assert!(matches!(
///     refused,
///     Err(Error::Txn(TxnError::Lock(LockError::OwnTransaction { .. })))
/// ));
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Transactions wait for each other in a cycle, and this one, the youngest, has to give way.
    #[error(
        "deadlock: transactions {cycle:?} wait for each other, and {victim}, which wanted a lock in \
         tree {tree}, is the youngest that waits; roll it back and try again"
    )]
    Deadlock {
        /// The owner whose request failed.
        victim: u64,
        /// The tree in which the owner wanted a lock.
        tree: TreeName,
        /// The cycle: each transaction waits for the next, and the last for the first.
        cycle: Vec<u64>,
    },
    /// Other transactions kept the lock too long.
    #[error(
        "waited {waited:?} for a lock in tree {tree} that transactions {holders:?} keep; roll \
         back and try again, or wait longer"
    )]
    Timeout {
        /// Time that the request waited.
        waited: Duration,
        /// The tree in which the lock was wanted.
        tree: TreeName,
        /// Owners that blocked the request at the end.
        holders: Vec<u64>,
    },
    /// The lock is held by another transaction of the same thread, which would wait for itself. In
    /// asynchronous code that may be the transaction of another task: roll back, yield to the
    /// executor, and try again.
    #[error(
        "transaction {holder}, whose closure this thread is in, holds the lock in tree {tree} that \
         the call would wait for, so it would wait for ever: inside a transaction, read and write \
         through its own methods, or end it first"
    )]
    OwnTransaction {
        /// The transaction that holds the lock.
        holder: u64,
        /// The tree in which the lock was wanted.
        tree: TreeName,
    },
    /// The lock is held by a transaction that ended without being rolled back. It keeps its locks
    /// until the store is opened again, which rolls it back.
    #[error(
        "transaction {holder} could not be rolled back, and keeps the lock in tree {tree}: what it \
         changed is neither read nor written until the store is opened again, which takes it back"
    )]
    Stranded {
        /// The transaction that holds the lock.
        holder: u64,
        /// The tree in which the lock was wanted.
        tree: TreeName,
    },
    /// The thread's own interrupt check ended the wait, because of a signal, for example.
    #[error("a wait of {waited:?} for a lock in tree {tree} was interrupted")]
    Interrupted {
        /// Time that the request had waited.
        waited: Duration,
        /// The tree in which the lock was wanted.
        tree: TreeName,
    },
    /// Another thread is closing the store.
    #[error("the store was closed while the call waited for a lock in tree {tree}")]
    Closed {
        /// The tree in which the lock was wanted.
        tree: TreeName,
    },
    /// There is no memory for more locks, and the tree could not be locked as a whole.
    #[error(
        "locks take {used} of {limit} bytes; {own} of them are this transaction's, which has \
         {keys} keys in tree {tree}; {}",
        match self.retriable() {
            true => format!(
                "others have the rest: roll it back and try again, keep fewer transactions open, \
                 or give the store more memory ({MEMORY})"
            ),
            false => format!(
                "commit more often, lock the tree, or give the store more memory ({MEMORY})"
            ),
        }
    )]
    Memory {
        /// Bytes in use.
        used: usize,
        /// Bytes allowed.
        limit: usize,
        /// Bytes in use by the owner.
        own: usize,
        /// The tree in which the lock was wanted.
        tree: TreeName,
        /// Keys of that tree that the owner holds.
        keys: u32,
    },
}

impl LockError {
    /// Returns whether the same transaction may well succeed if it is rolled back and run again.
    #[doc(hidden)]
    pub fn retriable(&self) -> bool {
        match self {
            LockError::Deadlock { .. } | LockError::Timeout { .. } => true,
            // A transaction that has most of the memory would only need it again. So would one that
            // wants more than there is, whatever others have.
            LockError::Memory { own, used, limit, .. } => {
                let others = used.saturating_sub(*own);
                own.saturating_mul(2) <= *limit && others.saturating_mul(4) >= *limit
            }
            // Within the closure, another try would fail as well.
            LockError::OwnTransaction { .. }
            | LockError::Stranded { .. }
            | LockError::Interrupted { .. }
            | LockError::Closed { .. } => false,
        }
    }

    /// Returns whether the request was the victim of a deadlock.
    #[doc(hidden)]
    pub fn is_deadlock(&self) -> bool {
        matches!(self, LockError::Deadlock { .. })
    }

    /// Returns whether other transactions kept the lock too long.
    #[doc(hidden)]
    pub fn is_timeout(&self) -> bool {
        matches!(self, LockError::Timeout { .. })
    }
}
