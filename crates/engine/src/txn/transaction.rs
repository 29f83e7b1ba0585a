//! One transaction: strict two-phase locking, undo by key, commit and abort.
//!
//! # Rules
//! 1. A key is locked before its leaf is latched: in S to be read, in X to be written. Locks are
//!    kept to the end; reads that are only committed give theirs back at once.
//! 2. A change that was made is in the undo list, whatever else went wrong with it. What cannot be
//!    known to be made or not, fails the transaction.
//! 3. The record that ends a transaction is in the log before its first lock is given back, and
//!    before pages that it replaced are freed. So whoever saw its changes comes after it in the
//!    log, and a crash loses only a suffix of commits.
//! 4. What cannot be undone stays locked. The store has to be opened again, and recovers.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use millpond_base::Lsn;

use crate::btree::{Applied, BTree, Before, Condition, Detached, Undo, Updated, WriteError};
use crate::io::simulated::planted::{Bug, is_planted};
use crate::lock::{LockMode, LockOwner};
use crate::log::Record;
use crate::pool::mini_transaction::kind;
use crate::pool::{Actor, Pages, PoolError};
use crate::txn::error::TxnError;
use crate::txn::manager::TransactionManager;
use crate::txn::scratch::TxnScratch;
use crate::txn::undo_list::Newest;

/// When a commit is durable. Whatever it is, a crash loses the last commits at most, never one
/// before another that it keeps, and never a part of one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Durability {
    /// When the call returns. Commits that come at the same time share a flush: where there was
    /// company at the last one, the next waits for it for no longer than a flush takes.
    #[default]
    Sync,
    /// When the call returns, which may wait for 0.2 ms for others to share the flush with, if
    /// there was company at the last one, however long a flush takes.
    Group,
    /// A moment after the call returned: a crash loses the commits of the last flush interval.
    Async,
    /// As `Async`; for loads that are begun again after a crash anyway.
    Bulk,
}

/// What a transaction sees of others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Isolation {
    /// As if they ran one after the other: what it read stays as it was until its end.
    #[default]
    Serializable,
    /// Only what is committed, which may be something else a moment later.
    ReadCommitted,
}

/// How a transaction shall be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TxnOptions {
    /// When its commit is durable.
    pub durability: Durability,
    /// What it sees of others.
    pub isolation: Isolation,
    /// How long it waits for a lock; `None`: as long as the store's options say.
    pub wait_max: Option<Duration>,
}

impl TxnOptions {
    /// With this durability.
    #[must_use]
    pub fn durability(self, durability: Durability) -> TxnOptions {
        TxnOptions { durability, ..self }
    }

    /// With this isolation.
    #[must_use]
    pub fn isolation(self, isolation: Isolation) -> TxnOptions {
        TxnOptions { isolation, ..self }
    }

    /// Waiting so long for a lock.
    #[must_use]
    pub fn wait_max(self, wait_max: Duration) -> TxnOptions {
        TxnOptions { wait_max: Some(wait_max), ..self }
    }
}

/// A moment in a transaction that it can go back to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Savepoint {
    tx: u64,
    changes: usize,
    /// Rollbacks so far: a savepoint behind one that was gone back to is gone.
    epoch: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Running,
    Failed,
    Over,
}

/// A transaction under way. Whoever holds it ends it: to drop it leaves locks behind, since the
/// trees that it changed are needed to undo it.
pub struct Transaction {
    manager: Arc<TransactionManager>,
    options: TxnOptions,
    tx: u64,
    /// Its last record.
    last: Lsn,
    state: State,
    /// Whether it is in the table of those under way, as its kit says.
    is_entered: bool,
    /// Without locks there is no owner in it.
    scratch: TxnScratch,
}

impl Transaction {
    /// A new transaction.
    pub fn begin(manager: &Arc<TransactionManager>, options: TxnOptions) -> Transaction {
        let tx = manager.active().new_id();
        let mut scratch = manager.take_kit();
        if let Some(locks) = manager.locks() {
            let owner = match &mut scratch.owner {
                Some(owner) => {
                    owner.renew(tx);
                    owner
                }
                none => none.insert(LockOwner::begin(locks, tx)),
            };
            if let Some(wait_max) = options.wait_max {
                owner.set_wait_max(wait_max);
            }
        }
        let (manager, state) = (manager.clone(), State::Running);
        Transaction { manager, options, tx, last: Lsn(0), state, is_entered: false, scratch }
    }

    /// Its id.
    pub fn id(&self) -> u64 {
        self.tx
    }

    /// Whether it ended.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Whether it changed anything that is not taken back.
    pub fn has_written(&self) -> bool {
        self.changes_len() > 0
    }

    fn running(&self) -> Result<(), TxnError> {
        if self.state == State::Running { Ok(()) } else { Err(TxnError::Failed) }
    }

    fn lock_key(&mut self, tree: u32, key: &[u8], mode: LockMode) -> Result<(), TxnError> {
        match &mut self.scratch.owner {
            Some(owner) => {
                owner.claim();
                owner.lock_key(tree, key, mode).map_err(failed)
            }
            None => Ok(()),
        }
    }

    /// Looks at the value of `key`; `None` if there is no such key.
    ///
    /// # Errors
    /// [`TxnError`].
    pub fn get<P: Pages, R>(
        &mut self,
        tree: &BTree<P>,
        key: &[u8],
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, TxnError> {
        self.running()?;
        self.lock_key(tree.owner(), key, LockMode::S)?;
        let found = tree.get(key, f);
        if self.options.isolation == Isolation::ReadCommitted
            && let Some(owner) = &mut self.scratch.owner
        {
            owner.release_shared(tree.owner(), key);
        }
        found.map_err(failed)
    }

    /// Locks `key` as if to write it, so that what is read of it now can be written later without
    /// the deadlock of two that read first.
    ///
    /// # Errors
    /// [`TxnError`].
    pub fn lock<P: Pages>(&mut self, tree: &BTree<P>, key: &[u8]) -> Result<(), TxnError> {
        self.running()?;
        self.lock_key(tree.owner(), key, LockMode::X)
    }

    /// Hands the entries between the bounds to `f`, in order, until it answers `false`.
    ///
    /// # Errors
    /// [`TxnError`].
    pub fn scan<P: Pages>(
        &mut self,
        tree: &BTree<P>,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        f: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), TxnError> {
        self.lock_range(tree, lower, upper)?;
        let scanned = tree.scan(lower, upper, f);
        self.end_statement();
        Ok(scanned?)
    }

    /// As [`Transaction::scan`], from the last key to the first.
    ///
    /// # Errors
    /// [`TxnError`].
    pub fn scan_back<P: Pages>(
        &mut self,
        tree: &BTree<P>,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        mut f: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), TxnError> {
        self.lock_range(tree, lower, upper)?;
        let mut cursor = tree.cursor_in(lower, upper);
        let mut scan = || {
            let mut more = cursor.last()?;
            while more && f(cursor.key(), cursor.value()) {
                more = cursor.prev()?;
            }
            Ok::<(), PoolError>(())
        };
        let scanned = scan();
        self.end_statement();
        Ok(scanned?)
    }

    /// Locks all keys between the bounds, those that are not there, too, for reading.
    ///
    /// # Errors
    /// [`TxnError`].
    pub fn lock_range<P: Pages>(
        &mut self,
        tree: &BTree<P>,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> Result<(), TxnError> {
        self.running()?;
        match &mut self.scratch.owner {
            Some(owner) => {
                owner.claim();
                Ok(owner.lock_range(tree.owner(), lower, upper)?)
            }
            None => Ok(()),
        }
    }

    /// Locks the first or the last end of the tree, as [`LockOwner::lock_end`].
    ///
    /// # Errors
    /// [`TxnError`].
    pub fn lock_end<P: Pages>(&mut self, tree: &BTree<P>, first: bool) -> Result<(), TxnError> {
        self.running()?;
        match &mut self.scratch.owner {
            Some(owner) => {
                owner.claim();
                Ok(owner.lock_end(tree.owner(), first)?)
            }
            None => Ok(()),
        }
    }

    /// Another thread goes on with it: until that has asked for a lock here, the transaction is no
    /// thread's own.
    pub fn leave_thread(&mut self) {
        if let Some(owner) = &mut self.scratch.owner {
            owner.leave_thread();
        }
    }

    /// What was read is read: where reads need not be repeatable, their locks go.
    pub fn end_statement(&mut self) {
        if self.options.isolation == Isolation::ReadCommitted
            && let Some(owner) = &mut self.scratch.owner
        {
            owner.release_all_shared();
        }
    }

    /// Sets the value of `key`, or removes it, if `condition` holds. Answers whether the key was
    /// there, and whether anything was changed.
    ///
    /// # Errors
    /// [`TxnError`]; nothing was changed.
    pub fn write<P: Pages>(
        &mut self,
        tree: &BTree<P>,
        key: &[u8],
        value: Option<&[u8]>,
        condition: Condition,
    ) -> Result<(bool, bool), TxnError> {
        self.write_built(tree, key, value, None, condition)
    }

    /// As [`Transaction::write`]; the pages of a large value may have been written already, and are
    /// in `built` then.
    ///
    /// # Errors
    /// [`TxnError`]; nothing was changed.
    pub fn write_built<P: Pages>(
        &mut self,
        tree: &BTree<P>,
        key: &[u8],
        value: Option<&[u8]>,
        built: Option<Detached>,
        condition: Condition,
    ) -> Result<(bool, bool), TxnError> {
        self.running()?;
        self.lock_key(tree.owner(), key, LockMode::X)?;
        let actor = Actor::Transaction { tx: self.tx, prev: self.last };
        self.enter();
        // A large value may take seconds: its pages are written before the step that checkpoints
        // wait for, and outside the latch that whoever begins a snapshot waits for.
        let large = value.map(|value| tree.build_large(key, value)).transpose().map_err(failed)?;
        let mut large = large.flatten().or(built);
        let Some(active) = &self.scratch.active else { return Err(TxnError::Failed) };
        let mut changes = active.changes();
        let (versions, undo_room) = (self.manager.versions(), self.manager.undo_room());
        if let Err(error) = changes.before_write((versions, undo_room), tree, key) {
            if let Some(large) = large {
                free(tree, large);
            }
            return Err(error);
        }
        let undo = &mut changes.undo;
        let (start, step) = (undo.end(), active.begin_step());
        // Taken apart where it lies: what is moved as a whole waits for its parts to be written.
        let made = match large.take() {
            None => tree.write_as(actor, key, value, condition, Some(undo.room())),
            Some(large) => {
                let attached = tree.place_as(actor, key, large, condition, Some(undo.room()));
                attached.map_err(WriteError::from)
            }
        };
        match made {
            Ok(Applied { existed, applied, at, gone }) => {
                step.end(at);
                undo.noted(start, self.last);
                if let Some(gone) = gone {
                    undo.took(undo_room, tree.owner(), gone);
                }
                if at != Lsn(0) {
                    self.last = at;
                }
                Ok((existed, applied))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Lets `f` change the bytes of the value of `key`, but not how many they are; `None` if there
    /// is no such key. `f` runs once, and must not use the store.
    ///
    /// # Errors
    /// [`TxnError`]; nothing was changed.
    pub fn update<P: Pages, R>(
        &mut self,
        tree: &BTree<P>,
        key: &[u8],
        f: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<Option<R>, TxnError> {
        let (mut f, mut result) = (Some(f), None);
        let mut once = |value: &mut [u8]| {
            if let Some(f) = f.take() {
                result = Some(f(value));
            }
        };
        match self.update_inline(tree, key, &mut once) {
            Ok(Updated::Done | Updated::Absent) => {}
            Ok(Updated::Large) => {
                let Some(mut value) = tree.get(key, <[u8]>::to_vec)? else { return Ok(None) };
                once(&mut value);
                self.write(tree, key, Some(&value), Condition::Always)?;
            }
            Err(error) => return Err(error),
        }
        Ok(result)
    }

    fn update_inline<P: Pages>(
        &mut self,
        tree: &BTree<P>,
        key: &[u8],
        f: &mut dyn FnMut(&mut [u8]),
    ) -> Result<Updated, TxnError> {
        self.running()?;
        self.lock_key(tree.owner(), key, LockMode::X)?;
        let actor = Actor::Transaction { tx: self.tx, prev: self.last };
        self.enter();
        let TxnScratch { active: Some(active), room, .. } = &mut self.scratch else {
            return Err(TxnError::Failed);
        };
        let mut changes = active.changes();
        changes.before_write((self.manager.versions(), self.manager.undo_room()), tree, key)?;
        let undo = &mut changes.undo;
        let (start, step) = (undo.end(), active.begin_step());
        match tree.update_as(actor, key, (Some(undo.room()), room), f) {
            Ok((updated, at)) => {
                step.end(at);
                undo.noted(start, self.last);
                if at != Lsn(0) {
                    self.last = at;
                }
                Ok(updated)
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Enters it into the table of those under way; its kit has its entry from then on.
    #[inline]
    fn enter(&mut self) {
        if !self.is_entered {
            self.manager.await_room();
            let (manager, tx) = (&self.manager, self.tx);
            let spare = self.scratch.active.take();
            let active = manager.active().enter_again(spare, tx, manager.tail(), Lsn(0));
            self.scratch.active = Some(active);
            self.is_entered = true;
        }
    }

    /// A moment to go back to.
    pub fn savepoint(&self) -> Savepoint {
        let epoch = self.scratch.rollbacks.len() as u64;
        Savepoint { tx: self.tx, changes: self.changes_len(), epoch }
    }

    /// Takes back what was changed since `savepoint`. Locks stay.
    ///
    /// # Errors
    /// [`TxnError::NoSavepoint`], or a change could not be taken back: the transaction can only be
    /// aborted then.
    pub fn rollback_to<'t, P: Pages>(
        &mut self,
        savepoint: &Savepoint,
        tree_of: impl Fn(u32) -> Option<&'t BTree<P>>,
    ) -> Result<(), TxnError> {
        self.running()?;
        let since = self.scratch.rollbacks.get(savepoint.epoch as usize..).unwrap_or(&[]);
        let is_gone = since.iter().any(|changes| *changes < savepoint.changes);
        if savepoint.tx != self.tx || savepoint.changes > self.changes_len() || is_gone {
            return Err(TxnError::NoSavepoint);
        }
        let undone = self.undo_to(savepoint.changes, tree_of);
        self.scratch.rollbacks.push(savepoint.changes);
        if undone.is_err() {
            self.state = State::Failed;
        }
        undone
    }

    fn undo_to<'t, P: Pages>(
        &mut self,
        changes: usize,
        tree_of: impl Fn(u32) -> Option<&'t BTree<P>>,
    ) -> Result<(), TxnError> {
        while self.changes_len() > changes {
            let Some(active) = &self.scratch.active else { break };
            let mut changes = active.changes();
            let Some(Newest { prev, large, undo }) = changes.undo.newest()? else { break };
            let no_tree = TxnError::NoTree { tx: self.tx, owner: undo.owner };
            let tree = tree_of(undo.owner).ok_or(no_tree)?;
            let actor = Actor::Undo { tx: self.tx, prev: self.last, next: prev };
            let applied = active.step(|| {
                let applied = take_back(tree, actor, &undo, large);
                let at = applied.as_ref().map_or(Lsn(0), |applied| applied.0);
                (applied, at)
            });
            // A change that could not be taken back stays in the list, and is tried again.
            let (at, gone) = applied?;
            changes.undo.pop();
            if at != Lsn(0) {
                self.last = at;
            }
            if let Some(gone) = gone {
                free(tree, gone);
            }
        }
        Ok(())
    }

    /// Ends the transaction; its changes stay.
    ///
    /// # Errors
    /// [`TxnError::Failed`]: it can only be aborted. [`TxnError::Log`]: whether it is durable is
    /// unknown, and the store has to be opened again.
    pub fn commit<'t, P: Pages>(
        &mut self,
        tree_of: impl Fn(u32) -> Option<&'t BTree<P>>,
    ) -> Result<(), TxnError> {
        self.running()?;
        let has_entered = self.is_entered;
        let end = self.end(kind::COMMIT, &tree_of);
        let is_promise = matches!(self.options.durability, Durability::Sync | Durability::Group);
        if is_promise && let Some(end) = end {
            self.manager.promise(end);
        }
        self.release();
        if is_planted(Bug::StampAfterLocks) {
            self.stamp_late();
        }
        let durable = match end {
            Some(end) => self.manager.make_durable(end, self.options.durability),
            None if is_promise => self.manager.keep_promises(),
            None => Ok(()),
        };
        if has_entered {
            self.free_large(tree_of);
        }
        Ok(durable?)
    }

    /// Ends the transaction as if it had never been.
    ///
    /// # Errors
    /// A change could not be taken back: what the transaction changed stays locked, and the store
    /// has to be opened again.
    pub fn abort<'t, P: Pages>(
        &mut self,
        tree_of: impl Fn(u32) -> Option<&'t BTree<P>>,
    ) -> Result<(), TxnError> {
        if self.state == State::Over {
            return Ok(());
        }
        self.undo_to(0, &tree_of)?;
        if is_planted(Bug::AbortNotStamped)
            && let Some(active) = &self.scratch.active
        {
            active.changes().forget_stamp();
        }
        self.end(kind::ABORT, &tree_of);
        self.release();
        if is_planted(Bug::StampAfterLocks) {
            self.stamp_late();
        }
        Ok(())
    }

    /// Tells snapshots of the end when others may have ended since: only a planted bug wants that.
    #[cold]
    fn stamp_late(&self) {
        std::thread::yield_now();
        if let Some(active) = &self.scratch.active {
            active.changes().end_writer(self.manager.versions());
        }
    }

    /// Appends the last record, if there were any before it; answers where it ends.
    fn end<'t, P: Pages + 't>(
        &mut self,
        kind: u8,
        tree_of: impl Fn(u32) -> Option<&'t BTree<P>>,
    ) -> Option<Lsn> {
        self.state = State::Over;
        if !std::mem::take(&mut self.is_entered) {
            return None;
        }
        let active = self.scratch.active.as_ref()?;
        let (manager, tx, last) = (&self.manager, self.tx, self.last);
        let end = || {
            active.step(|| {
                let appended = manager
                    .log()
                    .filter(|_| last != Lsn(0))
                    .map(|log| log.append(&Record { kind, tx, prev: last, parts: &[] }));
                manager.active().leave(active);
                (appended.map(|appended| appended.end), Lsn(0))
            })
        };
        active.changes().end(manager.versions(), tree_of, end)
    }

    /// Frees the large values that were replaced: the transaction is over.
    fn free_large<'t, P: Pages + 't>(&mut self, tree_of: impl Fn(u32) -> Option<&'t BTree<P>>) {
        let Some(active) = &self.scratch.active else { return };
        let mut changes = active.changes();
        let large = changes.undo.take_large();
        changes.undo.clear();
        drop(changes);
        for (owner, large) in large {
            if let Some(tree) = tree_of(owner) {
                free(tree, large);
            }
        }
    }

    /// Changes that are not taken back.
    fn changes_len(&self) -> usize {
        match &self.scratch.active {
            Some(active) if self.is_entered => active.changes().undo.len(),
            _ => 0,
        }
    }

    /// Leaves the transaction as it is, for good: it could not be undone. What it changed stays
    /// locked, and the log keeps what a recovery needs to undo it.
    pub fn strand(&mut self) {
        if let Some(owner) = self.scratch.owner.take() {
            owner.strand();
        }
    }

    fn release(&mut self) {
        if let Some(owner) = &mut self.scratch.owner {
            owner.release_all();
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.state == State::Over {
            self.manager.give_kit(std::mem::take(&mut self.scratch));
        }
    }
}

/// Apart from the path of what succeeds: errors are long, and so are results that may be one.
#[cold]
#[inline(never)]
fn failed<E: Into<TxnError>>(error: E) -> TxnError {
    error.into()
}

/// Makes an entry what it was; answers where the record begins, and what large value had to go for
/// it. `large` is the one that comes back.
fn take_back<P: Pages>(
    tree: &BTree<P>,
    actor: Actor,
    undo: &Undo<'_>,
    large: Option<&Detached>,
) -> Result<(Lsn, Option<Detached>), TxnError> {
    let key = undo.key;
    let applied = match (undo.before, large) {
        (_, Some(large)) => tree.attach_as(actor, key, large)?,
        (Before::Absent, _) => tree.write_as(actor, key, None, Condition::Present, None)?,
        (Before::Value(value), _) => {
            tree.write_as(actor, key, Some(value), Condition::Always, None)?
        }
        (Before::Part { offset, bytes }, _) => tree.patch_as(actor, key, offset, bytes)?,
        (Before::Large(value), None) => tree.attach_as(actor, key, &tree.detached(value)?)?,
    };
    Ok((applied.at, applied.gone))
}

/// Frees a large value that is no longer needed. If that fails, what is left of its pages is freed
/// when the store is opened the next time.
fn free<P: Pages>(tree: &BTree<P>, large: Detached) {
    if let Err(error) = tree.free_detached(large) {
        tracing::warn!(%error, "the pages of a large value could not be freed");
    }
}
