//! Why a lock was not granted.

use std::time::Duration;

/// Why a request for a lock failed. The owner keeps all locks that it had before: it is for the
/// transaction to roll back and to release them.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Transactions wait for each other in a circle, and this one, the youngest, has to give way.
    #[error(
        "deadlock: transactions {cycle:?} wait for each other, and {victim} is the youngest; \
         roll it back and try again"
    )]
    Deadlock {
        /// The owner whose request failed.
        victim: u64,
        /// The tree in which it wanted a lock.
        tree: u32,
        /// The circle: each waits for the next, and the last for the first.
        cycle: Vec<u64>,
    },
    /// Others kept what was asked for too long.
    #[error(
        "waited {waited:?} for a lock in tree {tree} that transactions {holders:?} keep; roll \
         back and try again, or wait longer"
    )]
    Timeout {
        /// How long the request waited.
        waited: Duration,
        /// The tree in which the lock was wanted.
        tree: u32,
        /// Who stood in the way at the end.
        holders: Vec<u64>,
    },
    /// There is no memory for more locks, and the tree could not be locked as a whole.
    #[error(
        "locks take {used} of {limit} bytes, {keys} of them are this transaction's keys in tree \
         {tree}; commit more often, lock the tree, or give locks more memory"
    )]
    Memory {
        /// Bytes in use.
        used: usize,
        /// Bytes allowed.
        limit: usize,
        /// The tree in which the lock was wanted.
        tree: u32,
        /// Keys of that tree that the owner holds.
        keys: u32,
    },
}

impl LockError {
    /// Whether the same transaction, rolled back and run again, may well succeed.
    pub fn retriable(&self) -> bool {
        matches!(self, LockError::Deadlock { .. } | LockError::Timeout { .. })
    }
}
