//! Settings of the lock manager.

use std::time::Duration;

/// Settings of a [`super::LockManager`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LockOptions {
    /// Bytes that all locks together may take; 64 MiB by default. At least 1 MiB.
    pub memory_bytes: usize,
    /// Time after which a waiting request fails with a time-out; 10 s by default.
    pub wait_max: Duration,
    /// Number of keys of one tree that an owner locks before it tries to lock the whole tree
    /// instead; 10,000 by default.
    pub escalate_after: u32,
    /// Number of parts of the table of key locks, each with a mutex, in 64 bytes: a power of two up
    /// to 65,536. The default is 1024 for each processor: few enough to stay in its caches, and
    /// many enough that a usual transaction has at most one lock in each part.
    pub shards: usize,
}

impl Default for LockOptions {
    fn default() -> LockOptions {
        LockOptions {
            memory_bytes: 64 << 20,
            wait_max: Duration::from_secs(10),
            escalate_after: 10_000,
            shards: if cfg!(feature = "model") { 2 } else { shards_default() },
        }
    }
}

fn shards_default() -> usize {
    let processors = std::thread::available_parallelism().map_or(8, |number| number.get());
    (processors << 10).next_power_of_two().min(1 << 16)
}

impl LockOptions {
    /// Sets the bytes for all locks.
    pub fn memory_bytes(self, memory_bytes: usize) -> LockOptions {
        LockOptions { memory_bytes, ..self }
    }

    /// Sets the longest wait before a time-out.
    pub fn wait_max(self, wait_max: Duration) -> LockOptions {
        LockOptions { wait_max, ..self }
    }

    /// Sets the key locks in one tree at which an owner escalates to a tree lock.
    pub fn escalate_after(self, escalate_after: u32) -> LockOptions {
        LockOptions { escalate_after, ..self }
    }

    /// Sets the number of parts of the table, rounded up to a power of two.
    pub fn shards(self, shards: usize) -> LockOptions {
        LockOptions { shards, ..self }
    }
}
