//! When a writer ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const PENDING: u64 = u64::MAX;
/// What is not smaller is no place yet.
pub(super) const COMMITTING: u64 = u64::MAX - 1;

/// When a writer ended.
#[derive(Debug)]
pub(crate) struct CommitStamp(AtomicU64);

impl CommitStamp {
    /// Of a writer under way.
    pub(crate) fn new() -> Arc<CommitStamp> {
        CommitStamp::at(PENDING)
    }

    /// Of a writer that ended at `place`.
    pub(super) fn at(place: u64) -> Arc<CommitStamp> {
        Arc::new(CommitStamp(AtomicU64::new(place)))
    }

    /// Its place in the order of commits; larger than all of them if it is under way.
    pub(super) fn place(&self) -> u64 {
        loop {
            match self.0.load(Ordering::SeqCst) {
                // It has drawn its place, and will have written it in a moment.
                COMMITTING => std::thread::yield_now(),
                place => return place,
            }
        }
    }

    /// The same, if the writer is over.
    pub(super) fn ended(&self) -> Option<u64> {
        Some(self.place()).filter(|place| *place < COMMITTING)
    }

    /// The writer is over, at the next place of `clock`.
    pub(super) fn end(&self, clock: &AtomicU64) {
        self.0.store(COMMITTING, Ordering::SeqCst);
        let place = clock.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.store(place, Ordering::SeqCst);
    }
}
