//! Calls outside transactions. Each locks one key or one tree, and reads or changes it, like a
//! transaction with a single call. It writes no commit record and needs no undo.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::lock::{LockError, LockManager, LockMode, LockOwner};
use crate::pool::PoolError;
use crate::pool::borrowed::pages_borrowed;
use crate::txn::before_image::Found;
use crate::txn::commit_stamp::CommitStamp;
use crate::txn::error::TxnError;
use crate::txn::manager::TransactionManager;
use crate::txn::trees::{Each, Look};
use crate::txn::versions::{BulkModification, VersionStore};

/// Locks a key for a call outside transactions. If the thread lends a page to a closure, the call
/// waits only briefly: the lock might be released only after that closure ends.
#[inline(always)]
pub(super) fn lock(
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

/// Repeats the request for the only lock of a call outside transactions, with no lock held, while
/// the call is the victim of a deadlock. If this thread has a transaction, that may be part of the
/// cycle. A retry is useless then, and the transaction gets the error.
#[cold]
pub(super) fn lock_again(
    locks: &LockManager,
    owner: &mut LockOwner,
    mut done: Result<(), LockError>,
    mut attempt: impl FnMut(&mut LockOwner) -> Result<(), LockError>,
) -> Result<(), LockError> {
    let begun = Instant::now();
    while matches!(done, Err(LockError::Deadlock { .. }))
        && !owner.thread_owns_others()
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

/// A writer that ends when this is dropped, also by a panic.
struct Writing<'a>(&'a VersionStore, Arc<CommitStamp>);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.end_writer(&self.1);
    }
}

/// Number of reads that avoid the word that all writers write, once a read found writers active.
const BUSY_READS: u8 = 64;

thread_local! {
    /// Number of these reads left.
    static BUSY: Cell<u8> = const { Cell::new(0) };
}

/// Releases the locks when it is dropped, also by a panic.
struct Release<'a>(&'a mut LockOwner);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.release_all();
    }
}

impl TransactionManager {
    /// Runs `work` with `key` of `tree` locked in X, like a transaction with a single call. `look`
    /// returns the key's entry, if there are snapshots. It returns a large value as a whole if its
    /// argument is `true`.
    ///
    /// # Errors
    /// The lock is unavailable, or the log has failed, or `work` failed.
    #[inline]
    pub fn alone<'t, R, E: From<TxnError>>(
        &self,
        tree: u32,
        key: &[u8],
        look: impl FnMut(bool) -> Result<Option<Found<'t>>, PoolError>,
        work: impl FnOnce() -> Result<R, E>,
    ) -> Result<R, E> {
        self.may_write()?;
        self.await_room();
        let Some(locks) = &self.locks else { return work() };
        let Some(mut guard) = self.slot().try_lock() else {
            // A nested call, or the slot that late threads share.
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
    fn alone_apart<'t, R, E: From<TxnError>>(
        &self,
        locks: &Arc<LockManager>,
        tree: u32,
        key: &[u8],
        look: impl FnMut(bool) -> Result<Option<Found<'t>>, PoolError>,
        work: impl FnOnce() -> Result<R, E>,
    ) -> Result<R, E> {
        let mut owner = LockOwner::begin(locks, self.active.new_id());
        let release = Release(&mut owner);
        lock(locks, release.0, tree, key, LockMode::X)?;
        self.call(tree, key, look, work)
    }

    /// Runs `work`, which changes the entry of `key`; the key is locked.
    #[inline(always)]
    pub(super) fn call<'t, R, E: From<TxnError>>(
        &self,
        tree: u32,
        key: &[u8],
        mut look: impl FnMut(bool) -> Result<Option<Found<'t>>, PoolError>,
        work: impl FnOnce() -> Result<R, E>,
    ) -> Result<R, E> {
        let _call = self.calls.enter();
        // A store that is being closed waits for earlier calls.
        self.may_call()?;
        if self.versions.snapshot_epoch().is_none() {
            return work();
        }
        let _writing = self.put_version(tree, key, &mut look)?;
        work()
    }

    #[cold]
    fn put_version(
        &self,
        tree: u32,
        key: &[u8],
        look: &mut Look<'_, '_>,
    ) -> Result<Writing<'_>, TxnError> {
        let writing = Writing(&self.versions, CommitStamp::new());
        self.versions.put_found(tree, key, &writing.1, look)?;
        Ok(writing)
    }

    /// Runs `work`, which changes `tree` as a whole, with all of it locked in X. `is_empty` returns
    /// whether the tree is empty. `each` calls its argument with all entries that `work` changes,
    /// if snapshots need them.
    ///
    /// # Errors
    /// Like [`TransactionManager::alone`], or `is_empty` or `each` failed.
    pub fn alone_in<R, E: From<TxnError> + From<PoolError>>(
        &self,
        tree: u32,
        is_empty: impl FnOnce() -> Result<bool, PoolError>,
        each: impl FnOnce(&mut Each<'_>) -> Result<(), PoolError>,
        work: impl FnOnce() -> Result<R, E>,
    ) -> Result<R, E> {
        self.may_write()?;
        self.await_room();
        let Some(locks) = &self.locks else { return work() };
        let mut owner = LockOwner::begin(locks, self.active.new_id());
        let release = Release(&mut owner);
        lock_tree(locks, release.0, tree, LockMode::X)?;
        // The source of a bulk load, which `work` calls, must not wait for this lock.
        release.0.claim();
        let _modification = self.mark_bulk_modified(tree, is_empty()?, each)?;
        let _whole = self.rows().begin_whole(tree);
        self.to_end(work)
    }

    /// Runs `work`, which drops `tree`, once no transaction has a lock in it: no transaction that
    /// read the tree may find another one of its name.
    ///
    /// # Errors
    /// The lock is unavailable, or `work` failed.
    pub fn alone_with<R, E: From<TxnError>>(
        &self,
        tree: u32,
        work: impl FnOnce() -> Result<R, E>,
    ) -> Result<R, E> {
        self.with_tree_locked(tree, LockMode::X, work)
    }

    /// Runs `work` while nobody writes to `tree`, outside transactions or inside them.
    ///
    /// # Errors
    /// The lock is unavailable, or `work` failed.
    pub fn while_unchanged<R, E: From<TxnError>>(
        &self,
        tree: u32,
        work: impl FnOnce() -> Result<R, E>,
    ) -> Result<R, E> {
        self.with_tree_locked(tree, LockMode::S, work)
    }

    fn with_tree_locked<R, E: From<TxnError>>(
        &self,
        tree: u32,
        mode: LockMode,
        work: impl FnOnce() -> Result<R, E>,
    ) -> Result<R, E> {
        let Some(locks) = &self.locks else { return work() };
        let mut owner = LockOwner::begin(locks, self.active.new_id());
        let release = Release(&mut owner);
        lock_tree(locks, release.0, tree, mode)?;
        self.to_end(work)
    }

    /// Runs `work`, which a close of the store does not wait for. Fails if the store was closed in
    /// the meantime: then the effect of `work` may be in the store or not.
    pub fn to_end<R, E: From<TxnError>>(
        &self,
        work: impl FnOnce() -> Result<R, E>,
    ) -> Result<R, E> {
        let done = work()?;
        self.may_call()?;
        Ok(done)
    }

    fn mark_bulk_modified(
        &self,
        tree: u32,
        is_empty: bool,
        each: impl FnOnce(&mut Each<'_>) -> Result<(), PoolError>,
    ) -> Result<BulkModification<'_>, TxnError> {
        self.versions.mark_bulk_modified(tree, is_empty, |stamp| {
            let put = &mut |key: &[u8], look: &mut Look<'_, '_>| {
                self.versions.put_found(tree, key, stamp, look)
            };
            Ok(each(put)?)
        })
    }

    /// Waits until no owner has locked `tree` as a whole.
    ///
    /// # Errors
    /// The lock is unavailable.
    pub fn wait_for_tree(&self, tree: u32) -> Result<(), TxnError> {
        self.with_tree_locked(tree, LockMode::IS, || Ok(()))
    }

    /// Reads the committed state of `key` with `look`, which may run more than once.
    ///
    /// # Errors
    /// The lock is unavailable, or `look` failed.
    #[inline]
    pub fn committed<R, E: From<TxnError>>(
        &self,
        tree: u32,
        key: &[u8],
        mut look: impl FnMut() -> Result<R, E>,
    ) -> Result<R, E> {
        let Some(locks) = &self.locks else { return look() };
        let is_busy = BUSY.get() > 0;
        if !is_busy && let Some(token) = locks.quiet() {
            let seen = look();
            if locks.still_quiet(token) {
                return seen;
            }
        }
        self.committed_among_writers(locks, tree, key, look)
    }

    /// Reads the committed state of `key` while others write. All writers then keep writing the
    /// shared word that shows their activity, so later reads avoid that word for a while.
    #[inline(never)]
    fn committed_among_writers<R, E: From<TxnError>>(
        &self,
        locks: &Arc<LockManager>,
        tree: u32,
        key: &[u8],
        mut look: impl FnMut() -> Result<R, E>,
    ) -> Result<R, E> {
        self.may_call()?;
        BUSY.set(BUSY.get().checked_sub(1).unwrap_or(BUSY_READS));
        for _ in 0..2 {
            let Some(token) = locks.key_quiet(tree, key) else { break };
            let seen = look();
            if locks.key_still_quiet(&token) {
                return seen;
            }
        }
        self.committed_slowly(locks, tree, key, look)
    }

    /// Runs `look`, and returns its result if there were no uncommitted changes in the meantime.
    #[inline]
    pub fn quietly<R>(&self, look: &mut impl FnMut() -> R) -> Option<R> {
        let Some(locks) = &self.locks else { return Some(look()) };
        let token = locks.quiet()?;
        let seen = look();
        locks.still_quiet(token).then_some(seen)
    }

    #[cold]
    fn committed_slowly<R, E: From<TxnError>>(
        &self,
        locks: &Arc<LockManager>,
        tree: u32,
        key: &[u8],
        mut look: impl FnMut() -> Result<R, E>,
    ) -> Result<R, E> {
        self.with_owner(locks, |owner| {
            lock(locks, owner, tree, key, LockMode::S)?;
            look()
        })
    }

    /// Runs `work` with a lock owner, and releases its locks. That is the owner that the thread
    /// keeps; nested calls, and the slot that late threads share, get another one.
    pub(super) fn with_owner<R>(
        &self,
        locks: &Arc<LockManager>,
        work: impl FnOnce(&mut LockOwner) -> R,
    ) -> R {
        let Some(mut guard) = self.slot().try_lock() else {
            let mut owner = LockOwner::begin(locks, self.active.new_id());
            return work(Release(&mut owner).0);
        };
        let scratch = guard.get_or_insert_default();
        let owner = scratch.owner.get_or_insert_with(|| LockOwner::begin(locks, 0));
        owner.renew(self.active.new_id());
        work(Release(owner).0)
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::lock::LockOptions;
    use crate::txn::manager::HistoryMemory;

    fn manager() -> (Arc<TransactionManager>, Arc<LockManager>) {
        let locks = Arc::new(LockManager::new(LockOptions::default()));
        let manager = TransactionManager::new(
            None,
            Some(locks.clone()),
            1,
            Duration::ZERO,
            4096,
            HistoryMemory { version_bytes: 1 << 20, undo_bytes: 1 << 20, spill: None },
        );
        (Arc::new(manager), locks)
    }

    fn nothing(_: bool) -> Result<Option<Found<'static>>, PoolError> {
        Ok(None)
    }

    #[test]
    fn a_closure_that_panics_leaves_its_threads_slot_to_the_next_call() {
        let (manager, locks) = manager();
        let fail = || manager.alone::<(), TxnError>(7, b"key", nothing, || panic!("as ordered"));
        assert!(catch_unwind(AssertUnwindSafe(fail)).is_err());
        assert_eq!(locks.keys_locked(), 0);
        let kept = manager
            .slot()
            .try_lock()
            .and_then(|scratch| scratch.as_ref().map(|scratch| scratch.owner.is_some()));
        assert_eq!(kept, Some(true));
        manager.alone(7, b"key", nothing, || Ok::<_, TxnError>(())).unwrap();
        // A transaction takes it, and returns it.
        let scratch = manager.take_scratch();
        assert!(scratch.owner.is_some() && manager.slot().try_lock().unwrap().is_none());
        manager.return_scratch(scratch);
        assert!(manager.slot().try_lock().unwrap().is_some());
    }

    /// A transaction holds a key that a call waits for, and requests all of the tree, in which the
    /// call holds an intention lock. The call is younger, so it is the victim, and retries.
    fn calls_retry(
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
        calls_retry(|manager| manager.alone(7, b"key", nothing, || Ok(())), LockMode::S);
    }

    #[test]
    fn a_plain_read_that_loses_a_deadlock_tries_again_by_itself() {
        calls_retry(|manager| manager.committed(7, b"key", || Ok(())), LockMode::X);
    }
}
