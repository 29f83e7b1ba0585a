//! What can go wrong in a transaction.

use crate::btree::WriteError;
use crate::lock::LockError;
use crate::log::LogError;
use crate::pool::PoolError;

/// Why a transaction cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TxnError {
    /// A lock was not to be had: a deadlock, or waiting took too long.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A key or a value cannot be, or the memory behind the tree failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The memory behind the tree failed.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The log failed: the transaction may not be durable, and nothing after it will be.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The transaction failed before, and can only be aborted.
    #[error("the transaction failed before: abort it and begin again")]
    Failed,
    /// A savepoint is of another transaction, or the transaction was rolled back beyond it.
    #[error("there is no such savepoint in this transaction any more")]
    NoSavepoint,
    /// A tree that the transaction changed cannot be found.
    #[error("transaction {tx} changed the tree with id {owner}, which cannot be found")]
    NoTree {
        /// The transaction.
        tx: u64,
        /// The tree's id.
        owner: u32,
    },
}

impl TxnError {
    /// Whether the same transaction may well succeed if it is begun once more.
    pub fn is_retriable(&self) -> bool {
        match self {
            TxnError::Lock(error) => error.retriable(),
            _ => false,
        }
    }
}
