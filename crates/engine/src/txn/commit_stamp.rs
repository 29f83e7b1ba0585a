//! Commit timestamps: the positions of writers in the order of commits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const PENDING: u64 = u64::MAX;
/// Values from here on mean that there is no timestamp yet.
pub(super) const COMMITTING: u64 = u64::MAX - 1;

/// The commit timestamp of a writer, shared by all its versions.
#[derive(Debug)]
pub(crate) struct CommitStamp(AtomicU64);

impl CommitStamp {
    /// Returns the stamp of an active writer.
    pub(crate) fn new() -> Arc<CommitStamp> {
        CommitStamp::at(PENDING)
    }

    /// Returns the stamp of a writer that ended at `timestamp`.
    pub(super) fn at(timestamp: u64) -> Arc<CommitStamp> {
        Arc::new(CommitStamp(AtomicU64::new(timestamp)))
    }

    /// Returns the commit timestamp; that of an active writer is larger than all others.
    pub(super) fn timestamp(&self) -> u64 {
        loop {
            match self.0.load(Ordering::SeqCst) {
                // The writer has drawn its timestamp, and is about to store it.
                COMMITTING => std::thread::yield_now(),
                timestamp => return timestamp,
            }
        }
    }

    /// Returns the commit timestamp, or `None` if the writer is active.
    pub(super) fn ended(&self) -> Option<u64> {
        Some(self.timestamp()).filter(|timestamp| *timestamp < COMMITTING)
    }

    /// Ends the writer at the next timestamp of `clock`.
    pub(super) fn end(&self, clock: &AtomicU64) {
        let before = self.0.swap(COMMITTING, Ordering::SeqCst);
        debug_assert_eq!(before, PENDING, "a writer ends once");
        let timestamp = clock.fetch_add(1, Ordering::SeqCst) + 1;
        assert!(timestamp < COMMITTING, "commit timestamps are used up");
        self.0.store(timestamp, Ordering::SeqCst);
    }
}
