//! The reader of a snapshot: its read timestamp, and whether its snapshot is lost.

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::Instant;

use crate::io::SpillError;
use crate::txn::error::TxnError;

/// The reader of a snapshot.
#[derive(Debug)]
pub(in crate::txn) struct Reader {
    /// It sees the commits up to this timestamp.
    pub(in crate::txn) timestamp: u64,
    pub(in crate::txn) snapshot_epoch: u64,
    pub(in crate::txn) begun: Instant,
    pub(in crate::txn) caller: &'static Location<'static>,
    thread: Thread,
    pub(in crate::txn) lost: AtomicBool,
    pub(in crate::txn) over: AtomicBool,
}

impl Reader {
    /// A reader of what is committed at `timestamp`, on behalf of `caller`.
    pub(in crate::txn) fn new(
        timestamp: u64,
        snapshot_epoch: u64,
        caller: &'static Location<'static>,
    ) -> Arc<Reader> {
        debug_assert_eq!(snapshot_epoch % 2, 1, "a snapshot epoch is odd");
        let (thread, begun) = (std::thread::current(), Instant::now());
        let (lost, over) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Reader { timestamp, snapshot_epoch, begun, caller, thread, lost, over })
    }

    /// The name of the thread that began the snapshot.
    pub(in crate::txn) fn thread_name(&self) -> String {
        let thread = &self.thread;
        thread.name().map_or_else(|| format!("{:?}", thread.id()), str::to_string)
    }

    /// The error that reports its loss.
    pub(in crate::txn) fn lost(&self) -> TxnError {
        TxnError::SnapshotLost {
            caller: self.caller.to_string(),
            thread: self.thread_name(),
            age: self.begun.elapsed(),
        }
    }

    /// Loses the snapshot to a version in the spill file that cannot be read.
    #[cold]
    pub(in crate::txn) fn unreadable(&self, error: &SpillError) -> TxnError {
        tracing::warn!(%error, "a snapshot is lost");
        self.lost.store(true, Ordering::SeqCst);
        TxnError::SnapshotUnreadable { caller: self.caller.to_string(), what: error.to_string() }
    }
}
