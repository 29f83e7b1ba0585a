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
pub(crate) struct Reader {
    /// It sees the commits up to this timestamp.
    pub(super) timestamp: u64,
    pub(super) snapshot_epoch: u64,
    pub(super) begun: Instant,
    pub(super) caller: &'static Location<'static>,
    thread: Thread,
    pub(super) lost: AtomicBool,
    pub(super) over: AtomicBool,
}

impl Reader {
    /// A reader of what is committed at `timestamp`, on behalf of `caller`.
    pub(super) fn new(
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
    pub(super) fn thread_name(&self) -> String {
        let thread = &self.thread;
        thread.name().map_or_else(|| format!("{:?}", thread.id()), str::to_string)
    }

    /// The error that reports its loss.
    pub(super) fn lost(&self) -> TxnError {
        TxnError::SnapshotLost {
            caller: self.caller.to_string(),
            thread: self.thread_name(),
            age: self.begun.elapsed(),
        }
    }

    /// Loses the snapshot to a version in the spill file that cannot be read.
    #[cold]
    pub(super) fn unreadable(&self, error: &SpillError) -> TxnError {
        tracing::warn!(%error, "a snapshot is lost");
        self.lost.store(true, Ordering::SeqCst);
        TxnError::SnapshotUnreadable { caller: self.caller.to_string(), what: error.to_string() }
    }
}
