//! How a transaction runs: its durability, its isolation, how long it waits for locks.

use std::time::Duration;

/// When a commit is durable. With each of these, a crash loses a suffix of the commits at most, and
/// never a part of one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Durability {
    /// When the call returns. Commits at the same time share a flush (group commit): if the last
    /// flush had several, the next one waits for others, for no longer than a flush takes.
    #[default]
    Sync,
    /// When the call returns. If the last flush was shared, it waits up to 0.2 ms for other
    /// commits, however long a flush takes.
    Group,
    /// A moment after the call returned: a crash loses the commits of the last flush interval.
    Async,
    /// As `Async`; for loads that are repeated after a crash anyway.
    Bulk,
}

/// What a transaction sees of others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Isolation {
    /// As if transactions ran one after the other: what it read does not change until its end.
    #[default]
    Serializable,
    /// Only what is committed, which may be something else a moment later.
    ReadCommitted,
}

/// The options of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TxnOptions {
    /// When its commit is durable.
    pub durability: Durability,
    /// What it sees of others.
    pub isolation: Isolation,
    /// How long it waits for a lock; `None`: the store's option.
    pub wait_max: Option<Duration>,
}

impl TxnOptions {
    /// Sets the durability.
    #[must_use]
    pub fn durability(self, durability: Durability) -> TxnOptions {
        TxnOptions { durability, ..self }
    }

    /// Sets the isolation.
    #[must_use]
    pub fn isolation(self, isolation: Isolation) -> TxnOptions {
        TxnOptions { isolation, ..self }
    }

    /// Sets how long it waits for a lock.
    #[must_use]
    pub fn wait_max(self, wait_max: Duration) -> TxnOptions {
        TxnOptions { wait_max: Some(wait_max), ..self }
    }
}
