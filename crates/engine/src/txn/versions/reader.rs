//! Reader of a snapshot: its read timestamp, and the loss of its snapshot.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Instant;

use crate::io::SpillError;
use crate::txn::error::{TxnError, in_short};

/// The reader of a snapshot.
#[derive(Debug)]
pub(in crate::txn) struct Reader {
    /// Read timestamp: the reader sees the commits up to it.
    pub(in crate::txn) timestamp: u64,
    number: u64,
    pub(in crate::txn) snapshot_epoch: u64,
    pub(in crate::txn) begun: Instant,
    pub(in crate::txn) caller: &'static Location<'static>,
    thread: Thread,
    lost: AtomicBool,
    /// Reason that versions could not be spilled when it was lost.
    error: OnceLock<Arc<SpillError>>,
}

/// A reader's timestamp, and the number of readers before it.
pub(in crate::txn) type ReaderKey = (u64, u64);

impl Reader {
    /// Returns a reader of the state committed at a timestamp, on behalf of `caller`.
    pub(in crate::txn) fn new(
        key: ReaderKey,
        snapshot_epoch: u64,
        caller: &'static Location<'static>,
    ) -> Arc<Reader> {
        let (timestamp, number) = key;
        debug_assert_eq!(snapshot_epoch % 2, 1, "a snapshot epoch is odd");
        let (thread, begun) = (std::thread::current(), Instant::now());
        let (lost, error) = (AtomicBool::new(false), OnceLock::new());
        Arc::new(Reader { timestamp, number, snapshot_epoch, begun, caller, thread, lost, error })
    }

    /// Returns the reader's key among all readers.
    pub(in crate::txn) fn key(&self) -> ReaderKey {
        (self.timestamp, self.number)
    }

    /// Returns `true` if it is lost.
    pub(in crate::txn) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }

    /// Loses it: versions do not fit into memory, and `error` prevented spilling them.
    pub(in crate::txn) fn lose(&self, error: Option<Arc<SpillError>>) {
        if let Some(error) = error {
            self.error.get_or_init(|| error);
        }
        self.lost.store(true, Ordering::SeqCst);
    }

    /// Returns the name of the thread that began the snapshot.
    pub(in crate::txn) fn thread_name(&self) -> String {
        let thread = &self.thread;
        thread.name().map_or_else(|| format!("{:?}", thread.id()), str::to_string)
    }

    /// Returns the error that reports its loss.
    pub(in crate::txn) fn lost(&self) -> TxnError {
        TxnError::SnapshotLost {
            caller: self.caller.to_string(),
            thread: self.thread_name(),
            age: self.begun.elapsed(),
            error: self.error.get().cloned(),
        }
    }

    /// Loses the snapshot to a version in the spill file that cannot be read.
    #[cold]
    pub(in crate::txn) fn unreadable(&self, error: SpillError) -> TxnError {
        tracing::warn!(error = &error as &dyn std::error::Error, "a snapshot is lost");
        self.lost.store(true, Ordering::SeqCst);
        let (caller, what) = (self.caller.to_string(), in_short(&error));
        TxnError::SnapshotUnreadable { caller, what, error: Arc::new(error) }
    }
}

/// Read timestamps, each with the number of its snapshots.
#[derive(Default)]
pub(super) struct ReadTimestamps {
    counts: BTreeMap<u64, u64>,
    all: u64,
}

impl ReadTimestamps {
    /// Adds a snapshot's timestamp.
    pub(super) fn add(&mut self, timestamp: u64) {
        *self.counts.entry(timestamp).or_default() += 1;
        self.all += 1;
    }

    /// Removes a snapshot's timestamp, if it is there.
    pub(super) fn remove(&mut self, timestamp: u64) {
        if let Entry::Occupied(mut count) = self.counts.entry(timestamp) {
            self.all -= 1;
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// Returns the number of readers.
    pub(super) fn len(&self) -> u64 {
        self.all
    }

    /// Returns the largest.
    pub(super) fn last(&self) -> Option<u64> {
        self.counts.keys().next_back().copied()
    }

    /// Returns all timestamps, in order.
    pub(super) fn each(&self) -> Vec<u64> {
        self.counts.keys().copied().collect()
    }
}
