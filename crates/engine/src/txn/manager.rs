//! What all transactions of a store share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use millpond_base::Lsn;

use crate::io::SpillFile;
use crate::io::simulated::planted::planted;
use crate::lock::LockManager;
use crate::log::{Log, LogError};
use crate::pool::thread_slot::{SLOTS, thread_slot};
use crate::txn::active::ActiveTable;
use crate::txn::active_writers::ActiveWriters;
use crate::txn::error::TxnError;
use crate::txn::log_room::LogRoom;
use crate::txn::options::Durability;
use crate::txn::scratch::{ScratchSlot, TxnScratch};
use crate::txn::trees::Trees;
use crate::txn::undo_list::UndoRoom;
use crate::txn::versions::Versions;

/// Log, locks, and the table of transactions under way.
pub struct TransactionManager {
    log: Option<Arc<Log>>,
    pub(super) locks: Option<Arc<LockManager>>,
    pub(super) active: ActiveTable,
    group_delay: Duration,
    /// End of the last commit record whose transaction asked for more than `async`.
    promised: AtomicU64,
    /// What transactions, and calls outside of them, use one after the other, by thread.
    scratches: Box<[ScratchSlot]>,
    room: LogRoom,
    /// What transactions keep to be taken back.
    undo_room: Arc<UndoRoom>,
    pub(super) versions: Versions,
    /// Calls outside transactions that change something.
    pub(super) calls: ActiveWriters,
}

impl TransactionManager {
    /// A manager whose next transaction has the id `next`. Without a log nothing is durable,
    /// without locks transactions see each other's changes. Versions for snapshots that do not
    /// fit so many bytes of memory go to the spill file, if there is one, and so does undo that
    /// does not fit the second number.
    pub fn new(
        log: Option<Arc<Log>>,
        locks: Option<Arc<LockManager>>,
        next: u64,
        group_delay: Duration,
        (version_bytes, undo_bytes, spill): (usize, usize, Option<Arc<SpillFile>>),
    ) -> TransactionManager {
        let (active, promised) = (ActiveTable::new(next), AtomicU64::new(0));
        let scratches = (0..SLOTS).map(|_| ScratchSlot::default()).collect();
        let undo_room = Arc::new(UndoRoom::new(undo_bytes, spill.clone()));
        let (versions, calls) = (Versions::new(version_bytes, spill), ActiveWriters::new());
        let room = LogRoom::new();
        TransactionManager {
            log,
            locks,
            active,
            group_delay,
            promised,
            scratches,
            room,
            undo_room,
            versions,
            calls,
        }
    }

    /// The log, if there is one.
    pub fn log(&self) -> Option<&Arc<Log>> {
        self.log.as_ref()
    }

    /// The locks, if there are any.
    pub fn locks(&self) -> Option<&Arc<LockManager>> {
        self.locks.as_ref()
    }

    /// How far the log may run ahead of checkpoints.
    pub fn room(&self) -> &LogRoom {
        &self.room
    }

    /// Waits until the log has room; to be called before something is written, under no latch.
    #[inline]
    pub fn await_room(&self) {
        if let Some(log) = &self.log {
            self.room.wait(|| log.tail());
        }
    }

    /// Where transactions keep how they are taken back.
    pub(super) fn undo_room(&self) -> &Arc<UndoRoom> {
        &self.undo_room
    }

    pub(super) fn versions(&self) -> &Versions {
        &self.versions
    }

    /// Transactions under way.
    pub fn active(&self) -> &ActiveTable {
        &self.active
    }

    #[inline]
    pub(super) fn slot(&self) -> &ScratchSlot {
        &self.scratches[thread_slot() % SLOTS]
    }

    /// What a transaction that begins works with.
    pub(super) fn take_kit(&self) -> TxnScratch {
        let kept = self.slot().try_lock().and_then(|mut kept| kept.take());
        kept.unwrap_or_default()
    }

    /// For the next transaction of this thread, unless another one left its own.
    pub(super) fn give_kit(&self, mut scratch: TxnScratch) {
        scratch.clear();
        if let Some(mut place) = self.slot().try_lock()
            && place.is_none()
        {
            *place = Some(scratch);
        }
    }

    /// Goes to all writers at the beginning of `snapshot_epoch`: it waits for calls under way, and
    /// puts what transactions have changed already.
    pub(super) fn capture_versions(
        &self,
        snapshot_epoch: u64,
        trees: &mut dyn Trees,
    ) -> Result<(), TxnError> {
        self.calls.settle()?;
        let forgotten = usize::from(planted!(WriterNotCaptured));
        for active in self.active.all().into_iter().skip(forgotten) {
            active.changes_of_other()?.put_versions(&self.versions, snapshot_epoch, trees)?;
        }
        Ok(())
    }

    /// Fails once the log takes nothing more: what is changed from then on is lost.
    #[inline]
    pub fn is_sound(&self) -> Result<(), LogError> {
        match &self.log {
            Some(log) => log.poisoned().map_or(Ok(()), Err),
            None => Ok(()),
        }
    }

    /// Where the next record will be, at least.
    pub(super) fn tail(&self) -> Lsn {
        self.log.as_ref().map_or(Lsn(0), |log| log.tail())
    }

    /// Makes the commit that ends at `end` as durable as was asked for.
    pub(super) fn make_durable(&self, end: Lsn, durability: Durability) -> Result<(), LogError> {
        let Some(log) = &self.log else { return Ok(()) };
        planted!(CommitDoesNotWait, return Ok(()));
        match durability {
            Durability::Sync => log.wait_commit(end, self.group_delay),
            Durability::Group => log.wait_group(end, self.group_delay),
            Durability::Async | Durability::Bulk => match log.poisoned() {
                Some(error) => Err(error),
                None => Ok(()),
            },
        }
    }

    pub(super) fn promise(&self, end: Lsn) {
        self.promised.fetch_max(end.0, Ordering::AcqRel);
    }

    /// Waits until everything is durable that a transaction may have read and whose commit promises
    /// to be: locks are given back before that.
    pub(super) fn keep_promises(&self) -> Result<(), LogError> {
        let Some(log) = &self.log else { return Ok(()) };
        let promised = Lsn(self.promised.load(Ordering::Acquire));
        if promised > log.durable() { log.wait_durable(promised) } else { Ok(()) }
    }
}
