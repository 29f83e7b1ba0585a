//! One transaction: strict two-phase locking, undo by key, commit and abort.
//!
//! # Rules
//! 1. A key is locked before its leaf is latched: in S to be read, in X to be written. Locks are
//!    kept to the end; with read committed, those of reads are released at once.
//! 2. A change that was made is in the undo list, whatever else went wrong with it. If it is
//!    unknown whether a change was made, the transaction fails.
//! 3. The record that ends a transaction is in the log before its first lock is released, and
//!    before pages that it replaced are freed. So a crash loses only a suffix of commits.
//! 4. A change that cannot be undone stays locked. The store has to be opened again, and recovers.

use std::sync::Arc;

use millpond_base::Lsn;

use crate::btree::{
    Detached, NewValue, UpdateOutcome, Updated, WriteCondition, WriteContext, WriteOutcome,
    WriteRequest,
};
use crate::lock::{LockMode, LockOwner};
use crate::log::{LogError, OnDurable, Record};
use crate::pool::mini_transaction::kind;
use crate::pool::{Actor, Reserved};
use crate::txn::active::add_record;
use crate::txn::error::{TxnError, failed};
use crate::txn::manager::ManagerShare;
use crate::txn::options::{Durability, Isolation, TxnOptions};
use crate::txn::scratch::{Sequence, TxnScratch};
use crate::txn::structure::{Keyed, free};
use crate::txn::trees::StructureOf;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Running,
    Failed,
    Over,
}

/// An active transaction. Its holder ends it, since undo needs the trees that it changed.
pub struct Transaction {
    pub(super) manager: Arc<ManagerShare>,
    pub(super) options: TxnOptions,
    pub(super) tx: u64,
    /// LSN of its last record, or 0 if it has none.
    pub(super) last: Lsn,
    pub(super) state: State,
    /// Set if the transaction is in the transaction table; the scratch has its entry.
    pub(super) is_entered: bool,
    /// Lists and lock owner; without locks there is no owner.
    pub(super) scratch: TxnScratch,
}

/// One write of an entry whose key is locked in X.
pub(super) struct EntryWrite<'w> {
    pub(super) key: &'w [u8],
    /// New value; `None` removes the entry.
    pub(super) value: Option<&'w [u8]>,
    /// Pages of a large value that are written already.
    pub(super) built: Option<Detached>,
    pub(super) condition: WriteCondition<'w>,
}

impl Transaction {
    /// Begins a transaction.
    pub fn begin(manager: &Arc<ManagerShare>, options: TxnOptions) -> Transaction {
        let tx = manager.active().new_id();
        let mut scratch = manager.take_scratch();
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

    /// Returns the transaction id.
    pub fn id(&self) -> u64 {
        self.tx
    }

    pub(super) fn isolation(&self) -> Isolation {
        self.options.isolation
    }

    /// Returns `true` if it has ended. In a child of its process, and once the store is closed,
    /// there is nothing left to end.
    pub fn is_over(&self) -> bool {
        self.state == State::Over || !self.manager.is_here() || self.manager.is_over()
    }

    /// Returns `true` if it has changes that are not undone.
    pub fn has_written(&self) -> bool {
        self.changes_len() > 0
    }

    pub(super) fn running(&self) -> Result<(), TxnError> {
        self.manager.may_call()?;
        if self.state == State::Running { Ok(()) } else { Err(TxnError::Failed) }
    }

    #[inline]
    fn lock_key(&mut self, tree: u32, key: &[u8], mode: LockMode) -> Result<(), TxnError> {
        match &mut self.scratch.owner {
            Some(owner) => owner.lock_key(tree, key, mode).map_err(failed),
            None => Ok(()),
        }
    }

    /// Calls `f` with the value of `key`; `None` if there is no such key.
    ///
    /// # Errors
    /// [`TxnError`].
    pub fn get<K: Keyed + ?Sized, R>(
        &mut self,
        tree: &K,
        key: &[u8],
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, TxnError> {
        self.running()?;
        self.lock_key(tree.owner_id(), key, LockMode::S)?;
        let found = tree.look(key, f);
        if self.options.isolation == Isolation::ReadCommitted
            && let Some(owner) = &mut self.scratch.owner
        {
            owner.release_shared(tree.owner_id(), key);
        }
        found.map_err(failed)
    }

    /// Locks `key` in X, so that a later write of a key that is read now does not deadlock with
    /// another transaction that does the same (like `SELECT … FOR UPDATE`).
    ///
    /// # Errors
    /// [`TxnError`].
    pub fn lock<K: Keyed + ?Sized>(&mut self, tree: &K, key: &[u8]) -> Result<(), TxnError> {
        self.running()?;
        self.lock_key(tree.owner_id(), key, LockMode::X)
    }

    /// Ties the transaction to the calling thread, which runs a closure in it. Until it ends or
    /// leaves the thread, a call outside it that would wait for one of its locks fails with
    /// [`LockError::OwnTransaction`](crate::lock::LockError::OwnTransaction).
    pub fn claim_thread(&mut self) {
        if let Some(owner) = &mut self.scratch.owner {
            owner.claim();
        }
    }

    /// Unties the transaction from its thread.
    pub fn leave_thread(&mut self) {
        if let Some(owner) = &mut self.scratch.owner {
            owner.leave_thread();
        }
    }

    /// Ends a statement: with read committed, shared locks are released.
    pub fn end_statement(&mut self) {
        if self.options.isolation == Isolation::ReadCommitted
            && let Some(owner) = &mut self.scratch.owner
        {
            owner.release_all_shared();
        }
    }

    /// Sets the value of `key`, or removes it, if `condition` holds. A value in overflow pages that
    /// it replaces is kept until the transaction has ended: `gone` of the outcome is `None`.
    ///
    /// # Errors
    /// [`TxnError`]; nothing was changed.
    pub fn write<K: Keyed + ?Sized>(
        &mut self,
        tree: &K,
        key: &[u8],
        value: Option<&[u8]>,
        condition: WriteCondition<'_>,
    ) -> Result<WriteOutcome, TxnError> {
        self.write_built(tree, key, value, None, condition)
    }

    /// Sets the value of `key`, or removes it, if `condition` holds. `built` has the pages of a
    /// large value that are written already.
    ///
    /// # Errors
    /// [`TxnError`]; nothing was changed.
    pub fn write_built<K: Keyed + ?Sized>(
        &mut self,
        tree: &K,
        key: &[u8],
        value: Option<&[u8]>,
        built: Option<Detached>,
        condition: WriteCondition<'_>,
    ) -> Result<WriteOutcome, TxnError> {
        self.running()?;
        self.lock_key(tree.owner_id(), key, LockMode::X)?;
        let write = EntryWrite { key, value, built, condition };
        self.write_locked(tree, write, Sequence::Any, None)
    }

    /// Writes an entry whose key is locked in X, as one of a sequence. `old` receives the old
    /// inline value.
    #[inline(always)]
    pub(super) fn write_locked<K: Keyed + ?Sized>(
        &mut self,
        tree: &K,
        write: EntryWrite<'_>,
        sequence: Sequence,
        old: Option<&mut Vec<u8>>,
    ) -> Result<WriteOutcome, TxnError> {
        let EntryWrite { key, value, built, condition } = write;
        let actor = Actor::Transaction { tx: self.tx, prev: self.last };
        self.enter();
        let built = self.make_room_for(tree, value, built)?;
        // A large value may take seconds. So its pages are written before the step that checkpoints
        // wait for, and outside the latch that a thread beginning a snapshot waits for.
        let large = value.map(|value| tree.large(key, value)).transpose().map_err(failed)?;
        let mut large = large.flatten().or(built);
        let Some(active) = &self.scratch.active else { return Err(TxnError::Failed) };
        let mut buffer = active.undo();
        let (versions, undo_room) = (self.manager.versions(), self.manager.undo_room());
        if let Err(error) = buffer.before_write(versions, undo_room, tree, key) {
            if let Some(large) = large {
                free(tree.structure(), large);
            }
            return Err(error);
        }
        let undo = &mut buffer.undo;
        let (start, step) = (undo.end(), active.begin_step());
        // Destructured in place: moving the whole struct would wait for the stores of its parts.
        let finger = &mut self.scratch.fingers[sequence as usize];
        let context = WriteContext::with_undo(actor, undo.room()).by(finger).returning(old);
        let request = WriteRequest::new(key, NewValue::of(value), condition).within(context);
        let written = match large.take() {
            None => tree.put(request),
            Some(large) => tree.put_large(request, large),
        };
        match written {
            Ok(WriteOutcome { existed, applied, rows, at, gone }) => {
                step.end(at);
                undo.record(start, self.last, value.map_or(0, <[u8]>::len));
                let keep = |gone| undo.record_detached(undo_room, tree.owner_id(), gone);
                let kept = gone.map_or(Ok(()), keep);
                buffer.rows.count(tree.owner_id(), rows);
                add_record(&mut self.last, at);
                if tree.keeps_removed() && applied && value.is_none() {
                    buffer.has_removed = true;
                }
                drop(buffer);
                self.undo_last_if(tree.structure(), kept)?;
                Ok(WriteOutcome { existed, applied, rows, at, gone: None })
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Lets `f` change the bytes of the value of `key` in place, and not its length. Returns `None`
    /// if there is no such key. `f` runs once, and must not use the store.
    ///
    /// # Errors
    /// [`TxnError`]; nothing was changed.
    pub fn update<K: Keyed + ?Sized, R>(
        &mut self,
        tree: &K,
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
                let Some(mut value) = tree.look(key, <[u8]>::to_vec)? else { return Ok(None) };
                once(&mut value);
                self.write(tree, key, Some(&value), WriteCondition::Always)?;
            }
            Err(error) => return Err(error),
        }
        Ok(result)
    }

    fn update_inline<K: Keyed + ?Sized>(
        &mut self,
        tree: &K,
        key: &[u8],
        f: &mut dyn FnMut(&mut [u8]),
    ) -> Result<Updated, TxnError> {
        self.running()?;
        self.lock_key(tree.owner_id(), key, LockMode::X)?;
        let actor = Actor::Transaction { tx: self.tx, prev: self.last };
        self.enter();
        self.make_log_room(0)?;
        let TxnScratch { active: Some(active), room, .. } = &mut self.scratch else {
            return Err(TxnError::Failed);
        };
        let mut buffer = active.undo();
        buffer.before_write(self.manager.versions(), self.manager.undo_room(), tree, key)?;
        let undo = &mut buffer.undo;
        let (start, step) = (undo.end(), active.begin_step());
        let context = WriteContext::with_undo(actor, undo.room());
        let mut len = 0;
        let mut counted = |value: &mut [u8]| {
            len = value.len();
            f(value);
        };
        match tree.change(key, context, room, &mut counted) {
            Ok(UpdateOutcome { updated, at }) => {
                step.end(at);
                undo.record(start, self.last, len);
                add_record(&mut self.last, at);
                Ok(updated)
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Enters the transaction table, before the first record; the scratch has the entry from then
    /// on.
    #[inline]
    pub(super) fn enter(&mut self) {
        if !self.is_entered {
            self.manager.await_room();
            let (manager, tx) = (&self.manager, self.tx);
            let spare = self.scratch.active.take();
            let active = manager.active().enter_again(spare, tx, manager.tail(), Lsn(0));
            active.undo().undo.claim_ahead(manager.undo_room());
            self.scratch.active = Some(active);
            self.is_entered = true;
        }
    }

    /// Fails if the log has no room for one more change, of a value of `coming` bytes, beside the
    /// undo of active transactions.
    #[inline]
    pub(super) fn make_log_room(&self, coming: u64) -> Result<(), LogError> {
        self.manager.make_log_room(coming).inspect_err(|_| {
            // A transaction without changes has nothing to undo.
            if let Some(active) = &self.scratch.active {
                active.undo().undo.unclaim();
            }
        })
    }

    /// Makes room in the log for a write of `value`. If there is none, frees `built`.
    #[inline]
    pub(super) fn make_room_for<K: Keyed + ?Sized>(
        &self,
        tree: &K,
        value: Option<&[u8]>,
        built: Option<Detached>,
    ) -> Result<Option<Detached>, LogError> {
        let Err(error) = self.make_log_room(value.map_or(0, <[u8]>::len) as u64) else {
            return Ok(built);
        };
        if let Some(built) = built {
            free(tree.structure(), built);
        }
        Err(error)
    }

    /// Commits: ends the transaction, and keeps its changes.
    ///
    /// # Errors
    /// [`TxnError::Failed`]: it can only be aborted. [`TxnError::Log`]: its durability is unknown,
    /// and the store has to be opened again.
    pub fn commit(&mut self, structure_of: &StructureOf<'_, '_>) -> Result<(), TxnError> {
        let has_entered = self.is_entered;
        let end = self.commit_in_memory(structure_of)?;
        let durable = match end {
            Some(end) => self.manager.make_durable(end, self.options.durability),
            None if self.asks_for_durability() => self.manager.await_durable_commits(),
            None => Ok(()),
        };
        if has_entered {
            self.free_kept(structure_of);
        }
        Ok(durable?)
    }

    /// Commits without waiting for the log. Returns the position up to which the log has to be
    /// durable for the commit to be durable; 0 if there is nothing to wait for.
    ///
    /// # Errors
    /// [`TxnError::Failed`]: it can only be aborted.
    pub fn commit_async(&mut self, structure_of: &StructureOf<'_, '_>) -> Result<Lsn, TxnError> {
        let has_entered = self.is_entered;
        let end = self.commit_in_memory(structure_of)?;
        if has_entered {
            self.free_kept(structure_of);
        }
        Ok(match end {
            Some(end) => end,
            None if self.asks_for_durability() => self.manager.pending_commit(),
            None => Lsn(0),
        })
    }

    /// Runs `call` once the log is durable up to `end`, like [`when_durable`] of the log.
    ///
    /// [`when_durable`]: crate::log::Log::when_durable
    pub fn when_durable(&self, end: Lsn, call: OnDurable) {
        self.manager.when_durable(end, call);
    }

    /// Ends the transaction with a commit record, and releases its locks. Returns the end of the
    /// record, or `None` if the transaction has changed nothing.
    fn commit_in_memory(
        &mut self,
        structure_of: &StructureOf<'_, '_>,
    ) -> Result<Option<Lsn>, TxnError> {
        self.running()?;
        let end = self.end(kind::COMMIT, structure_of);
        if let Some(end) = end
            && self.asks_for_durability()
        {
            self.manager.register_durable_commit(end);
        }
        self.release();
        Ok(end)
    }

    fn asks_for_durability(&self) -> bool {
        matches!(self.options.durability, Durability::Sync | Durability::Group)
    }

    /// Aborts: undoes all changes and ends the transaction.
    ///
    /// # Errors
    /// A change could not be undone. The entries that the transaction changed stay locked, and the
    /// store has to be opened again.
    pub fn abort(&mut self, structure_of: &StructureOf<'_, '_>) -> Result<(), TxnError> {
        if !self.manager.is_here() {
            return Err(TxnError::Forked);
        }
        if self.is_over() {
            return Ok(());
        }
        self.undo_to(0, structure_of)?;
        self.end(kind::ABORT, structure_of);
        self.release();
        if let Some(active) = &self.scratch.active {
            active.undo().undo.clear();
        }
        Ok(())
    }

    /// Appends the record of kind `kind` that ends the transaction, if it has any earlier records.
    /// Returns the end of the record.
    fn end(&mut self, kind: u8, structure_of: &StructureOf<'_, '_>) -> Option<Lsn> {
        debug_assert!(kind == kind::COMMIT || kind == kind::ABORT, "a record that ends it");
        debug_assert_ne!(self.state, State::Over, "a transaction ends once");
        self.state = State::Over;
        if !std::mem::take(&mut self.is_entered) {
            return None;
        }
        let active = self.scratch.active.as_ref()?;
        let (manager, tx, last) = (&self.manager, self.tx, self.last);
        let end = || {
            active.step(|| {
                // Nothing follows the chain from here: a transaction that is over is not undone.
                let appended = manager
                    .log()
                    .filter(|_| last != Lsn(0))
                    .map(|log| log.append(&Record { kind, tx, prev: Lsn(0), parts: &[] }));
                manager.active().leave(active);
                (appended.map(|appended| appended.end), Lsn(0))
            })
        };
        active.undo().end(manager.versions(), manager.rows(), structure_of, end)
    }

    /// Frees the large values that were replaced, and the places of records that were removed. To
    /// be called after the transaction's end (rule 3).
    fn free_kept(&mut self, structure_of: &StructureOf<'_, '_>) {
        debug_assert_eq!(self.state, State::Over, "pages are freed after the commit record");
        let Some(active) = &self.scratch.active else { return };
        let mut buffer = active.undo();
        let large = buffer.undo.take_large();
        if buffer.has_removed {
            buffer.release_removed(self.tx, structure_of);
        }
        drop(buffer);
        let _reserved = Reserved::begin();
        for (owner, large) in large {
            if let Some(structure) = structure_of(owner) {
                free(structure, large);
            }
        }
        active.undo().undo.clear();
    }

    /// Returns the number of changes that are not undone.
    pub(super) fn changes_len(&self) -> usize {
        match &self.scratch.active {
            Some(active) if self.is_entered => active.undo().undo.len(),
            _ => 0,
        }
    }

    /// Releases all locks.
    fn release(&mut self) {
        debug_assert_eq!(self.state, State::Over, "its last record is in the log (rule 3)");
        if let Some(owner) = &mut self.scratch.owner {
            owner.release_all();
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.manager.is_here() {
            // Its locks and its undo are the parent's.
            std::mem::forget(std::mem::take(&mut self.scratch));
        } else if self.state == State::Over {
            self.manager.return_scratch(std::mem::take(&mut self.scratch));
        } else if self.manager.is_over() {
            // Nobody requests locks any more.
            if let Some(owner) = self.scratch.owner.take() {
                self.manager.keep_left(owner);
            }
        }
    }
}
