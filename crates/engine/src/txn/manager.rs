//! What all transactions of a store share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use millpond_base::Lsn;

use crate::btree::Detached;
use crate::io::SpillFile;
use crate::io::simulated::planted::{Bug, is_planted};
use crate::lock::{LockError, LockManager, LockMode, LockOwner};
use crate::log::{Log, LogError};
use crate::pool::PoolError;
use crate::pool::borrowed::pages_borrowed;
use crate::pool::thread_slot::{SLOTS, thread_slot};
use crate::txn::active::ActiveTable;
use crate::txn::active_writers::ActiveWriters;
use crate::txn::before_image::{BeforeImage, Found};
use crate::txn::error::TxnError;
use crate::txn::log_room::LogRoom;
use crate::txn::scratch::TxnScratch;
use crate::txn::transaction::Durability;
use crate::txn::undo_list::UndoRoom;
use crate::txn::versions::{CommitStamp, Unsettled, Versions};

/// Log, locks, and the table of transactions under way.
pub struct TransactionManager {
    log: Option<Arc<Log>>,
    locks: Option<Arc<LockManager>>,
    active: ActiveTable,
    group_delay: Duration,
    /// End of the last commit record whose transaction asked for more than `async`.
    promised: AtomicU64,
    /// What transactions, and calls outside of them, use one after the other, by thread.
    kits: Box<[Slot]>,
    room: LogRoom,
    /// What transactions keep to be taken back.
    undo_room: Arc<UndoRoom>,
    versions: Versions,
    /// Calls outside transactions that change something.
    calls: ActiveWriters,
}

/// A thread's, and not in a cache line with another thread's.
#[derive(Default)]
#[repr(align(128))]
struct Slot(Mutex<Option<TxnScratch>>);

impl Slot {
    /// What is kept there, unless it is in use. A closure that panicked has left a kit that is
    /// whole: its locks are given back on the way out, and nothing else in it is of the call.
    #[inline]
    fn try_lock(&self) -> Option<MutexGuard<'_, Option<TxnScratch>>> {
        match self.0.try_lock() {
            Ok(kept) => Some(kept),
            Err(TryLockError::Poisoned(kept)) => Some(kept.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// Locks a key for a call outside transactions. One that is made while the thread lends a page to a
/// closure, in which it is made perhaps, must not wait for what only that closure's end gives back.
fn lock(
    locks: &LockManager,
    owner: &mut LockOwner,
    tree: u32,
    key: &[u8],
    mode: LockMode,
) -> Result<(), TxnError> {
    const PATIENCE: Duration = Duration::from_millis(300);
    let pages = pages_borrowed();
    if pages > 0 {
        owner.set_wait_max(PATIENCE);
    }
    let mut done = owner.lock_key(tree, key, mode);
    if matches!(done, Err(LockError::Deadlock { .. })) {
        done = lock_again(locks, owner, done, |owner| owner.lock_key(tree, key, mode));
    }
    match done {
        Err(LockError::Timeout { .. }) if pages > 0 => Err(PoolError::Held { pages }.into()),
        done => Ok(done?),
    }
}

/// Asks once more for the only lock of a call outside transactions, with empty hands, as long as
/// it loses to others in a deadlock. What closes the circle may be a transaction of this thread:
/// then nothing is won by that, and the transaction has to hear of it.
#[cold]
fn lock_again(
    locks: &LockManager,
    owner: &mut LockOwner,
    mut done: Result<(), LockError>,
    mut attempt: impl FnMut(&mut LockOwner) -> Result<(), LockError>,
) -> Result<(), LockError> {
    let begun = Instant::now();
    while matches!(done, Err(LockError::Deadlock { .. }))
        && !owner.has_company()
        && begun.elapsed() < locks.options().wait_max
    {
        owner.release_all();
        millpond_base::sync::thread::yield_now();
        done = attempt(owner);
    }
    done
}

/// Locks a tree for a call outside transactions.
fn lock_tree(
    locks: &LockManager,
    owner: &mut LockOwner,
    tree: u32,
    mode: LockMode,
) -> Result<(), TxnError> {
    let done = owner.lock_tree(tree, mode);
    Ok(lock_again(locks, owner, done, |owner| owner.lock_tree(tree, mode))?)
}

/// What a key's entry is.
pub type Look<'l, 't> = dyn FnMut(bool) -> Result<Option<Found<'t>>, PoolError> + 'l;

/// Takes keys, and for each what says what its entry is.
pub type Each<'e> = dyn FnMut(&[u8], &mut Look<'_, '_>) -> Result<(), PoolError> + 'e;

/// The trees of a store, for whoever has to read what a transaction changed.
pub trait Trees {
    /// The value of `key` in the tree whose pages carry the id `owner`, as it is now.
    ///
    /// # Errors
    /// There is no such tree, or it cannot be read.
    fn value(&mut self, owner: u32, key: &[u8]) -> Result<Option<Vec<u8>>, TxnError>;

    /// A large value that such a tree had, and that hangs now.
    ///
    /// # Errors
    /// As [`Trees::value`].
    fn large(&mut self, owner: u32, value: &Detached) -> Result<Vec<u8>, TxnError>;

    /// Up to `max` bytes of such a value from `offset`, at least one, into `out`.
    ///
    /// # Errors
    /// As [`Trees::value`].
    fn large_from(
        &mut self,
        owner: u32,
        value: &Detached,
        range: (u64, usize),
        out: &mut Vec<u8>,
    ) -> Result<(), TxnError>;
}

/// A writer that ends when this goes, also if what it does panics.
struct Writing<'a>(&'a Versions, Arc<CommitStamp>);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.end_writer(&self.1);
    }
}

/// Gives the locks back, also if what was done with them panics.
struct Release<'a>(&'a mut LockOwner);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.release_all();
    }
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
        let kits = (0..SLOTS).map(|_| Slot::default()).collect();
        let undo_room = Arc::new(UndoRoom::new(undo_bytes, spill.clone()));
        let (versions, calls) = (Versions::new(version_bytes, spill), ActiveWriters::new());
        let room = LogRoom::new();
        TransactionManager {
            log,
            locks,
            active,
            group_delay,
            promised,
            kits,
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
    fn slot(&self) -> &Slot {
        &self.kits[thread_slot() % SLOTS]
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

    /// Does `work` with `key` of `tree` locked in X, as a transaction of its own would. `look` says
    /// what the key's entry is, if there are snapshots, a large value as a whole if it is asked to.
    ///
    /// # Errors
    /// The lock was not to be had, or the log takes nothing more.
    #[inline]
    pub fn alone<'t, R>(
        &self,
        tree: u32,
        key: &[u8],
        look: impl FnMut(bool) -> Result<Option<Found<'t>>, PoolError>,
        work: impl FnOnce() -> R,
    ) -> Result<R, TxnError> {
        self.is_sound()?;
        self.await_room();
        let Some(locks) = &self.locks else { return Ok(work()) };
        let Some(mut guard) = self.slot().try_lock() else {
            // A call within a call, or the slot that late threads share.
            return self.alone_apart(locks, tree, key, look, work);
        };
        let scratch = guard.get_or_insert_default();
        let owner = scratch.owner.get_or_insert_with(|| LockOwner::begin(locks, 0));
        owner.renew(self.active.new_id());
        let release = Release(owner);
        lock(locks, release.0, tree, key, LockMode::X)?;
        self.call(tree, key, look, work)
    }

    #[cold]
    fn alone_apart<'t, R>(
        &self,
        locks: &Arc<LockManager>,
        tree: u32,
        key: &[u8],
        look: impl FnMut(bool) -> Result<Option<Found<'t>>, PoolError>,
        work: impl FnOnce() -> R,
    ) -> Result<R, TxnError> {
        let mut owner = LockOwner::begin(locks, self.active.new_id());
        let release = Release(&mut owner);
        lock(locks, release.0, tree, key, LockMode::X)?;
        self.call(tree, key, look, work)
    }

    /// Does `work`, which changes `key`'s entry, for which there is a lock.
    #[inline]
    fn call<'t, R>(
        &self,
        tree: u32,
        key: &[u8],
        mut look: impl FnMut(bool) -> Result<Option<Found<'t>>, PoolError>,
        work: impl FnOnce() -> R,
    ) -> Result<R, TxnError> {
        let _call = self.calls.enter();
        if self.versions.snapshot_epoch().is_none() {
            return Ok(work());
        }
        if is_planted(Bug::VersionAfterChange) {
            let done = work();
            let _writing = self.put_version(tree, key, &mut look)?;
            return Ok(done);
        }
        let _writing = self.put_version(tree, key, &mut look)?;
        Ok(work())
    }

    #[cold]
    fn put_version(
        &self,
        tree: u32,
        key: &[u8],
        look: &mut Look<'_, '_>,
    ) -> Result<Writing<'_>, TxnError> {
        let writing = Writing(&self.versions, CommitStamp::new());
        let before = BeforeImage::of(self.versions.file(), look)?;
        self.versions.put_image(tree, key, &writing.1, before);
        Ok(writing)
    }

    /// Does `work`, which changes `tree` as a whole, with all of it locked in X. `is_empty` says
    /// whether there is nothing in it; `each` hands all entries that `work` changes to what
    /// it is given, if snapshots need them.
    ///
    /// # Errors
    /// As [`TransactionManager::alone`], or `is_empty` or `each` failed.
    pub fn alone_in<R>(
        &self,
        tree: u32,
        is_empty: impl FnOnce() -> Result<bool, PoolError>,
        each: impl FnOnce(&mut Each<'_>) -> Result<(), PoolError>,
        work: impl FnOnce() -> R,
    ) -> Result<R, TxnError> {
        self.is_sound()?;
        self.await_room();
        let Some(locks) = &self.locks else { return Ok(work()) };
        let mut owner = LockOwner::begin(locks, self.active.new_id());
        let release = Release(&mut owner);
        lock_tree(locks, release.0, tree, LockMode::X)?;
        let _unsettled = self.mark_bulk_modified(tree, is_empty()?, each)?;
        Ok(work())
    }

    /// Does `work`, the end of `tree`, when no transaction has anything of it locked: none of those
    /// that read it may find another one of its name.
    ///
    /// # Errors
    /// The lock was not to be had.
    pub fn alone_with<R>(&self, tree: u32, work: impl FnOnce() -> R) -> Result<R, TxnError> {
        let Some(locks) = &self.locks else { return Ok(work()) };
        let mut owner = LockOwner::begin(locks, self.active.new_id());
        let release = Release(&mut owner);
        lock_tree(locks, release.0, tree, LockMode::X)?;
        Ok(work())
    }

    /// Does `work` while nobody writes to `tree`, outside transactions and inside them.
    ///
    /// # Errors
    /// The lock was unavailable.
    pub fn while_unchanged<R>(&self, tree: u32, work: impl FnOnce() -> R) -> Result<R, TxnError> {
        let Some(locks) = &self.locks else { return Ok(work()) };
        let mut owner = LockOwner::begin(locks, self.active.new_id());
        let release = Release(&mut owner);
        lock_tree(locks, release.0, tree, LockMode::S)?;
        Ok(work())
    }

    fn mark_bulk_modified(
        &self,
        tree: u32,
        is_empty: bool,
        each: impl FnOnce(&mut Each<'_>) -> Result<(), PoolError>,
    ) -> Result<Unsettled<'_>, TxnError> {
        self.versions.mark_bulk_modified(tree, is_empty, |stamp| {
            let put = &mut |key: &[u8], look: &mut Look<'_, '_>| {
                let before = BeforeImage::of(self.versions.file(), look)?;
                self.versions.put_image(tree, key, stamp, before);
                Ok(())
            };
            Ok(each(put)?)
        })
    }

    /// Goes to all writers at the beginning of `snapshot_epoch`: it waits for calls under way, and
    /// puts what transactions have changed already.
    pub(super) fn capture_versions(
        &self,
        snapshot_epoch: u64,
        trees: &mut dyn Trees,
    ) -> Result<(), TxnError> {
        self.calls.settle()?;
        let forgotten = usize::from(is_planted(Bug::WriterNotGathered));
        for active in self.active.all().into_iter().skip(forgotten) {
            active.changes_of_other()?.put_versions(&self.versions, snapshot_epoch, trees)?;
        }
        Ok(())
    }

    /// Waits until nobody has locked `tree` as a whole.
    ///
    /// # Errors
    /// The lock was not to be had.
    pub fn wait_for_tree(&self, tree: u32) -> Result<(), TxnError> {
        let Some(locks) = &self.locks else { return Ok(()) };
        let mut owner = LockOwner::begin(locks, self.active.new_id());
        let release = Release(&mut owner);
        lock_tree(locks, release.0, tree, LockMode::IS)
    }

    /// Looks, with `look`, at what is committed of `key`. `look` may run more than once.
    ///
    /// # Errors
    /// The lock was not to be had.
    #[inline]
    pub fn committed<R>(
        &self,
        tree: u32,
        key: &[u8],
        mut look: impl FnMut() -> R,
    ) -> Result<R, TxnError> {
        let Some(locks) = &self.locks else { return Ok(look()) };
        if let Some(token) = locks.quiet() {
            let seen = look();
            if locks.still_quiet(token) {
                return Ok(seen);
            }
        }
        self.committed_slowly(locks, tree, key, look)
    }

    #[cold]
    fn committed_slowly<R>(
        &self,
        locks: &Arc<LockManager>,
        tree: u32,
        key: &[u8],
        mut look: impl FnMut() -> R,
    ) -> Result<R, TxnError> {
        let mut owner = LockOwner::begin(locks, self.active.new_id());
        let release = Release(&mut owner);
        lock(locks, release.0, tree, key, LockMode::S)?;
        Ok(look())
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
        if is_planted(Bug::CommitDoesNotWait) {
            return Ok(());
        }
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::lock::LockOptions;

    fn manager() -> (Arc<TransactionManager>, Arc<LockManager>) {
        let locks = Arc::new(LockManager::new(LockOptions::default()));
        let manager = TransactionManager::new(
            None,
            Some(locks.clone()),
            1,
            Duration::ZERO,
            (1 << 20, 1 << 20, None),
        );
        (Arc::new(manager), locks)
    }

    fn nothing(_: bool) -> Result<Option<Found<'static>>, PoolError> {
        Ok(None)
    }

    #[test]
    fn a_closure_that_panics_leaves_its_threads_slot_to_the_next_call() {
        let (manager, locks) = manager();
        let fail = || manager.alone(7, b"key", nothing, || panic!("as ordered"));
        assert!(catch_unwind(AssertUnwindSafe(fail)).is_err());
        assert_eq!(locks.keys_locked(), 0);
        let kept = manager
            .slot()
            .try_lock()
            .and_then(|scratch| scratch.as_ref().map(|scratch| scratch.owner.is_some()));
        assert_eq!(kept, Some(true));
        manager.alone(7, b"key", nothing, || ()).unwrap();
        // A transaction takes it, and gives it back.
        let scratch = manager.take_kit();
        assert!(scratch.owner.is_some() && manager.slot().try_lock().unwrap().is_none());
        manager.give_kit(scratch);
        assert!(manager.slot().try_lock().unwrap().is_some());
    }

    /// A transaction holds a key that a call waits for, and wants all of the tree, at which the
    /// call has announced itself: the call, which is younger, gives way, and comes again.
    fn calls_come_again(
        call: impl Fn(&TransactionManager) -> Result<(), TxnError> + Sync,
        whole: LockMode,
    ) {
        let (manager, locks) = manager();
        let mut owner = LockOwner::begin(&locks, manager.active.new_id());
        owner.lock_key(7, b"key", LockMode::X).unwrap();
        std::thread::scope(|scope| {
            let calling = scope.spawn(|| call(&manager));
            while locks.counts().waits == 0 {
                std::thread::yield_now();
            }
            owner.lock_tree(7, whole).unwrap();
            owner.release_all();
            calling.join().unwrap().unwrap();
        });
        assert_eq!((locks.counts().deadlocks, locks.keys_locked()), (1, 0));
    }

    #[test]
    fn a_plain_write_that_loses_a_deadlock_tries_again_by_itself() {
        calls_come_again(|manager| manager.alone(7, b"key", nothing, || ()), LockMode::S);
    }

    #[test]
    fn a_plain_read_that_loses_a_deadlock_tries_again_by_itself() {
        calls_come_again(|manager| manager.committed(7, b"key", || ()), LockMode::X);
    }
}
