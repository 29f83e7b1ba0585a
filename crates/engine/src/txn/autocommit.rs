//! Calls outside transactions: each locks and changes, or reads, one key or one tree, as a
//! transaction of its own would, but writes no commit record and needs no undo.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::io::simulated::planted::planted;
use crate::lock::{LockError, LockManager, LockMode, LockOwner};
use crate::pool::PoolError;
use crate::pool::borrowed::pages_borrowed;
use crate::txn::before_image::{BeforeImage, Found};
use crate::txn::commit_stamp::CommitStamp;
use crate::txn::error::TxnError;
use crate::txn::manager::TransactionManager;
use crate::txn::trees::{Each, Look};
use crate::txn::versions::{BulkModification, Versions};

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
        planted!(VersionAfterChange, return self.version_after(tree, key, &mut look, work));
        let _writing = self.put_version(tree, key, &mut look)?;
        Ok(work())
    }

    /// Puts the version after the change, which is a planted bug.
    #[cfg(feature = "planted")]
    fn version_after<R>(
        &self,
        tree: u32,
        key: &[u8],
        look: &mut Look<'_, '_>,
        work: impl FnOnce() -> R,
    ) -> Result<R, TxnError> {
        let done = work();
        let _writing = self.put_version(tree, key, look)?;
        Ok(done)
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
        let _modification = self.mark_bulk_modified(tree, is_empty()?, each)?;
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

    fn mark_bulk_modified(
        &self,
        tree: u32,
        is_empty: bool,
        each: impl FnOnce(&mut Each<'_>) -> Result<(), PoolError>,
    ) -> Result<BulkModification<'_>, TxnError> {
        self.versions.mark_bulk_modified(tree, is_empty, |stamp| {
            let put = &mut |key: &[u8], look: &mut Look<'_, '_>| {
                let before = BeforeImage::of(self.versions.file(), look)?;
                self.versions.put_image(tree, key, stamp, before);
                Ok(())
            };
            Ok(each(put)?)
        })
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
