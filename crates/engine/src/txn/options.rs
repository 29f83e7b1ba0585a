//! How a transaction runs: its durability, its isolation, how long it waits for locks.

use std::time::Duration;

/// When a commit is durable. Whatever it is, a crash loses the last commits at most, never one
/// before another that it keeps, and never a part of one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Durability {
    /// When the call returns. Commits that come at the same time share a flush: where there was
    /// company at the last one, the next waits for it for no longer than a flush takes.
    #[default]
    Sync,
    /// When the call returns, which may wait for 0.2 ms for others to share the flush with, if
    /// there was company at the last one, however long a flush takes.
    Group,
    /// A moment after the call returned: a crash loses the commits of the last flush interval.
    Async,
    /// As `Async`; for loads that are begun again after a crash anyway.
    Bulk,
}

/// What a transaction sees of others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Isolation {
    /// As if they ran one after the other: what it read stays as it was until its end.
    #[default]
    Serializable,
    /// Only what is committed, which may be something else a moment later.
    ReadCommitted,
}

/// How a transaction shall be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TxnOptions {
    /// When its commit is durable.
    pub durability: Durability,
    /// What it sees of others.
    pub isolation: Isolation,
    /// How long it waits for a lock; `None`: as long as the store's options say.
    pub wait_max: Option<Duration>,
}

impl TxnOptions {
    /// With this durability.
    #[must_use]
    pub fn durability(self, durability: Durability) -> TxnOptions {
        TxnOptions { durability, ..self }
    }

    /// With this isolation.
    #[must_use]
    pub fn isolation(self, isolation: Isolation) -> TxnOptions {
        TxnOptions { isolation, ..self }
    }

    /// Waiting so long for a lock.
    #[must_use]
    pub fn wait_max(self, wait_max: Duration) -> TxnOptions {
        TxnOptions { wait_max: Some(wait_max), ..self }
    }
}
