//! The transaction manager: shared state of all transactions of a store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use millpond_base::Lsn;
use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::Mutex;
use millpond_device::Life;

use crate::io::SpillFile;
use crate::lock::{LockManager, LockOwner};
use crate::log::{Log, LogError, OnDurable};
use crate::pool::mini_transaction::RowCounts;
use crate::stats::thread_slot::{SLOTS, thread_slot};
use crate::txn::active::ActiveTable;
use crate::txn::active_writers::ActiveWriters;
use crate::txn::error::TxnError;
use crate::txn::log_room::LogRoom;
use crate::txn::options::Durability;
use crate::txn::scratch::{ScratchSlot, TxnScratch};
use crate::txn::trees::Trees;
use crate::txn::undo_list::room::UndoRoom;
use crate::txn::versions::VersionStore;

/// Maximum bytes of a value for which room in the log is made ahead. Most of a longer value is in
/// segments that checkpoints free while it is written.
const COMING_MOST: u64 = 4 << 20;

/// Log, locks, transaction table, and versions.
pub struct TransactionManager {
    log: Option<Arc<Log>>,
    pub(super) locks: Option<Arc<LockManager>>,
    pub(super) active: ActiveTable,
    group_delay: Duration,
    /// End of the last commit record whose transaction requires a durable commit.
    durable_commit: AtomicU64,
    /// Scratch of transactions, and of calls outside them, by thread.
    scratches: Box<[ScratchSlot]>,
    room: LogRoom,
    /// Room for undo records.
    undo_room: Arc<UndoRoom>,
    pub(super) versions: VersionStore,
    /// Writing calls outside transactions.
    pub(super) calls: ActiveWriters,
    /// Numbers of entries in trees.
    rows: Arc<RowCounts>,
    /// Decides, at the beginning of every call of the store, whether it may proceed.
    life: Life,
    /// Spill file for versions and undo records beyond their memory.
    spill: Option<Arc<SpillFile>>,
    /// Locks of transactions that were left when the store was closed: nobody gets them any more.
    left: Mutex<Vec<LockOwner>>,
}

/// The manager for the threads of one slot: only they write this reference count.
#[repr(align(128))]
pub struct ManagerShare(Arc<TransactionManager>);

impl ManagerShare {
    /// Returns a share for each slot.
    pub fn for_slots(manager: &Arc<TransactionManager>) -> Box<[Arc<ManagerShare>]> {
        (0..SLOTS).map(|_| Arc::new(ManagerShare(manager.clone()))).collect()
    }

    /// Returns the calling thread's share.
    #[inline]
    pub fn mine(shares: &[Arc<ManagerShare>]) -> &Arc<ManagerShare> {
        &shares[thread_slot() % SLOTS]
    }
}

impl std::ops::Deref for ManagerShare {
    type Target = TransactionManager;

    #[inline(always)]
    fn deref(&self) -> &TransactionManager {
        &self.0
    }
}

/// Memory for the versions of snapshots and for undo records. The spill file, if there is one, has
/// what exceeds it.
pub struct HistoryMemory {
    /// Bytes for versions.
    pub version_bytes: usize,
    /// Bytes for undo records.
    pub undo_bytes: usize,
    /// File that takes the rest.
    pub spill: Option<Arc<SpillFile>>,
}

impl TransactionManager {
    /// Returns a manager whose next transaction has the id `next`. Without a log nothing is
    /// durable; without locks transactions see each other's changes. The log keeps room for undoing
    /// changes of pages of `page_bytes` bytes.
    pub fn new(
        log: Option<Arc<Log>>,
        locks: Option<Arc<LockManager>>,
        next: u64,
        group_delay: Duration,
        page_bytes: u64,
        history: HistoryMemory,
    ) -> TransactionManager {
        let HistoryMemory { version_bytes, undo_bytes, spill } = history;
        let (active, durable_commit) = (ActiveTable::new(next), AtomicU64::new(0));
        let scratches = (0..SLOTS).map(|_| ScratchSlot::default()).collect();
        let undo_room = UndoRoom::new(undo_bytes, spill.clone()).logged(log.clone(), page_bytes);
        let undo_room = Arc::new(undo_room);
        let versions = VersionStore::new(version_bytes, spill.clone());
        let calls = ActiveWriters::new();
        let room = LogRoom::new();
        TransactionManager {
            log,
            locks,
            active,
            group_delay,
            durable_commit,
            scratches,
            room,
            undo_room,
            versions,
            calls,
            rows: Arc::default(),
            life: Life::new(),
            spill,
            left: Mutex::default(),
        }
    }

    /// Returns the manager with these counts, which its transactions update on commit.
    #[must_use]
    pub fn counting(self, rows: Arc<RowCounts>) -> TransactionManager {
        TransactionManager { rows, ..self }
    }

    /// Returns the numbers of entries in trees.
    pub(crate) fn rows(&self) -> &Arc<RowCounts> {
        &self.rows
    }

    /// Returns the log, if there is one.
    pub fn log(&self) -> Option<&Arc<Log>> {
        self.log.as_ref()
    }

    /// Returns the locks, if there are any.
    pub fn locks(&self) -> Option<&Arc<LockManager>> {
        self.locks.as_ref()
    }

    /// Returns the bound of the log's lead over checkpoints.
    pub fn room(&self) -> &LogRoom {
        &self.room
    }

    /// Waits until the log has room. To be called before a write, under no latch.
    #[inline]
    pub fn await_room(&self) {
        if let Some(log) = &self.log {
            self.room.wait(log.statistics(), || log.tail());
        }
    }

    /// Returns the room for undo records.
    pub(super) fn undo_room(&self) -> &Arc<UndoRoom> {
        &self.undo_room
    }

    pub(super) fn versions(&self) -> &VersionStore {
        &self.versions
    }

    /// Returns the memory kept for snapshots and undo: bytes of versions and of undo records in
    /// memory, and bytes of either in the spill file.
    pub(crate) fn bytes_kept(&self) -> (u64, u64, u64) {
        let (versions, undo) = (self.versions.bytes(), self.undo_room.used());
        (versions as u64, undo as u64, self.undo_room.spilled())
    }

    /// Returns the number of open snapshots.
    pub(crate) fn snapshots(&self) -> u64 {
        self.versions.snapshots()
    }

    /// Returns the transaction table.
    pub fn active(&self) -> &ActiveTable {
        &self.active
    }

    #[inline]
    pub(super) fn slot(&self) -> &ScratchSlot {
        &self.scratches[thread_slot() % SLOTS]
    }

    /// Returns a scratch for a transaction that begins.
    pub(super) fn take_scratch(&self) -> TxnScratch {
        let kept = self.slot().try_lock().and_then(|mut kept| kept.take());
        kept.unwrap_or_default()
    }

    /// Keeps `scratch` for this thread's next transaction, unless there is one already.
    pub(super) fn return_scratch(&self, mut scratch: TxnScratch) {
        scratch.clear();
        if let Some(mut place) = self.slot().try_lock()
            && place.is_none()
        {
            *place = Some(scratch);
        }
    }

    /// Captures the versions of all writers at the beginning of `snapshot_epoch`. It waits for
    /// calls in progress, and puts the before images of the entries that transactions have changed
    /// so far.
    pub(super) fn capture_versions(
        &self,
        snapshot_epoch: u64,
        trees: &mut dyn Trees,
    ) -> Result<(), TxnError> {
        self.calls.quiesce()?;
        for active in self.active.all() {
            active.undo_of_other()?.put_versions(&self.versions, snapshot_epoch, trees)?;
        }
        Ok(())
    }

    /// Fails once the log has failed, since later changes are lost. It also fails if the log has no
    /// room for one more change beside the undo of active transactions, and where
    /// [`TransactionManager::may_call`] does.
    #[inline]
    pub fn may_write(&self) -> Result<(), TxnError> {
        self.may_call()?;
        match &self.log {
            Some(log) => match log.poisoned() {
                Some(error) => Err(error.into()),
                None => Ok(self.make_log_room(0)?),
            },
            None => Ok(()),
        }
    }

    /// Fails in a child of the process that opened the store, and once it is closed.
    #[inline(always)]
    pub fn may_call(&self) -> Result<(), TxnError> {
        if self.life.goes_on() { Ok(()) } else { Err(self.refusal()) }
    }

    #[cold]
    #[inline(never)]
    fn refusal(&self) -> TxnError {
        if self.is_here() { TxnError::Closed } else { TxnError::Forked }
    }

    /// Returns `true` in the process that opened the store, and `false` in a child.
    #[inline]
    pub fn is_here(&self) -> bool {
        self.life.is_here()
    }

    /// Returns `true` if the store was closed and its files given up: there is nothing to undo.
    pub(super) fn is_over(&self) -> bool {
        self.life.is_over()
    }

    /// Refuses calls from now on, ends all waits for locks, and waits for writing calls in progress
    /// outside transactions: their results are correct.
    ///
    /// # Errors
    /// [`PoolError::Held`](crate::pool::PoolError::Held): one of them waits for a page that this
    /// thread lends.
    pub fn refuse_calls(&self) -> Result<(), TxnError> {
        self.life.refuse();
        if let Some(locks) = &self.locks {
            locks.end_waits();
        }
        Ok(self.calls.quiesce()?)
    }

    /// Keeps the locks of a transaction that was left, until the last handle is dropped.
    #[cold]
    pub(super) fn keep_left(&self, mut owner: LockOwner) {
        owner.leave_thread();
        self.left.lock().past_poison().push(owner);
    }

    /// Ends everything. For transactions that are left, the log has the changes to be undone.
    pub fn end(&self) {
        self.life.end();
        if let Some(spill) = &self.spill {
            spill.end();
        }
    }

    /// Fails if the log has no room for one more change, of a value of `coming` bytes, beside the
    /// undo of active transactions.
    #[inline]
    pub(super) fn make_log_room(&self, coming: u64) -> Result<(), LogError> {
        let Some(log) = &self.log else { return Ok(()) };
        let coming = coming.min(COMING_MOST);
        log.make_room(coming).or_else(|_| {
            self.end_idle_claims();
            log.make_room(coming)
        })
    }

    /// Releases the room in the log that scratches without a transaction have reserved.
    #[cold]
    pub(crate) fn end_idle_claims(&self) {
        for slot in &self.scratches {
            let Some(scratch) = slot.try_lock() else { continue };
            if let Some(active) = scratch.as_ref().and_then(|scratch| scratch.active.as_ref()) {
                active.undo().undo.unclaim();
            }
        }
    }

    /// Returns a lower bound of the next record's LSN.
    pub(super) fn tail(&self) -> Lsn {
        self.log.as_ref().map_or(Lsn(0), |log| log.tail())
    }

    /// Makes the commit whose record ends at `end` as durable as `durability` demands.
    pub(super) fn make_durable(&self, end: Lsn, durability: Durability) -> Result<(), LogError> {
        let Some(log) = &self.log else { return Ok(()) };
        match durability {
            Durability::Sync => log.wait_commit(end, self.group_delay),
            Durability::Group => log.wait_group(end, self.group_delay),
            Durability::Async | Durability::Bulk => match log.poisoned() {
                Some(error) => Err(error),
                None => Ok(()),
            },
        }
    }

    /// Registers a durable commit whose record ends at `end`, before its locks are released.
    pub(super) fn register_durable_commit(&self, end: Lsn) {
        debug_assert!(end <= self.tail(), "the commit record is in the log");
        self.durable_commit.fetch_max(end.0, Ordering::AcqRel);
    }

    /// Returns the end of the last registered durable commit; 0 if that is durable by now.
    pub(super) fn pending_commit(&self) -> Lsn {
        let commit = Lsn(self.durable_commit.load(Ordering::Acquire));
        let is_pending = self.log.as_ref().is_some_and(|log| commit > log.durable());
        if is_pending { commit } else { Lsn(0) }
    }

    /// Runs `call` once the log is durable up to `end`; at once if `end` is 0 or there is no log.
    pub(super) fn when_durable(&self, end: Lsn, call: OnDurable) {
        match &self.log {
            Some(log) if end != Lsn(0) => log.when_durable(end, call),
            _ => call(Ok(())),
        }
    }

    /// Waits until all registered durable commits are durable. A transaction may have read their
    /// changes, since their locks are released before that.
    pub(super) fn await_durable_commits(&self) -> Result<(), LogError> {
        let Some(log) = &self.log else { return Ok(()) };
        log.wait_durable(self.pending_commit())
    }
}
