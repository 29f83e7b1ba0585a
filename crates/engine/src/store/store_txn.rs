//! A transaction in one compiled combination: its state, and the structures that it changed.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::btree::{Detached, WriteCondition, WriteOutcome};
use crate::log::LogError;
use crate::pool::PoolStrategy;
use crate::stats::counters::{Counter, Timing};
use crate::store::counted::{GET, Meters, PUT, ScanCount, write_of};
use crate::store::error::Error;
use crate::store::error::lab::LabError;
use crate::store::handle::StoreTree;
use crate::store::member::{Member, address_of};
use crate::store::opened::{Holds, OpenTree};
use crate::store::store::Store;
use crate::txn::{
    Bounds, ManagerShare, OwnedEntry, Savepoint, ScanSome, Structure, Transaction, TxnError,
    TxnOptions,
};

/// Structures that a transaction changed; the first few trees need no allocation.
pub(in crate::store) struct Known<M: PoolStrategy> {
    few: [Option<OpenTree<M>>; FEW],
    others: Vec<OpenTree<M>>,
    /// Hash indexes and heaps.
    kinds: Vec<Arc<dyn Holds>>,
}

const FEW: usize = 8;

impl<M: PoolStrategy> Known<M> {
    pub(in crate::store) fn none() -> Known<M> {
        Known { few: Default::default(), others: Vec::new(), kinds: Vec::new() }
    }

    /// Keeps a tree.
    #[inline]
    pub(in crate::store) fn keep(&mut self, tree: &OpenTree<M>) {
        for place in &mut self.few {
            match place {
                Some(known) if Arc::ptr_eq(known, tree) => return,
                Some(_) => {}
                None => {
                    *place = Some(tree.clone());
                    return;
                }
            }
        }
        if !self.others.iter().any(|known| Arc::ptr_eq(known, tree)) {
            self.others.push(tree.clone());
        }
    }

    /// Keeps a hash index or a heap.
    pub(in crate::store) fn keep_member(&mut self, member: &dyn Member) {
        let owner = member.as_structure().owner();
        if !self.kinds.iter().any(|known| known.held().owner() == owner) {
            self.kinds.push(member.hold());
        }
    }

    pub(in crate::store) fn find(&self, owner: u32) -> Option<&dyn Structure> {
        let mut trees = self.few.iter().flatten().chain(&self.others);
        if let Some(tree) = trees.find(|tree| tree.structure().owner() == owner) {
            return Some(tree.structure());
        }
        let mut kinds = self.kinds.iter().map(|kind| kind.held());
        kinds.find(|structure| structure.owner() == owner)
    }
}

/// A transaction of a store; aborted when it is dropped.
pub struct StoreTxn<M: PoolStrategy> {
    /// The trees that the transaction changed. First field, so that it is dropped first.
    pub(in crate::store) trees: Known<M>,
    pub(in crate::store) tx: Transaction,
    pub(in crate::store) store: Arc<Store<M>>,
    /// Kind of the last failure, under which an abort is counted.
    cause: Option<Counter>,
}

impl<M: PoolStrategy> StoreTxn<M> {
    /// Begins a transaction.
    ///
    /// # Errors
    /// The store is open for reading only, or this thread may not use it.
    pub fn begin(store: &Arc<Store<M>>, options: TxnOptions) -> Result<StoreTxn<M>, Error> {
        if M::TREES_ONLY {
            return Err(LabError::NoTransactions.into());
        }
        store.may_write()?;
        let tx = Transaction::begin(ManagerShare::mine(&store.shares), options);
        Ok(StoreTxn { trees: Known::none(), tx, store: store.clone(), cause: None })
    }

    /// Returns the transaction's id.
    pub fn id(&self) -> u64 {
        self.tx.id()
    }

    /// Fails if nothing can be written.
    pub(in crate::store) fn may_write(&self) -> Result<(), Error> {
        self.store.may_write()
    }

    /// Returns the address of its store.
    pub(in crate::store) fn store_address(&self) -> usize {
        address_of(&self.store)
    }

    /// Runs `work`, which keeps the structures that it changes, in the transaction. The call is
    /// counted in `meters`, if they are given.
    pub(in crate::store) fn call<R>(
        &mut self,
        meters: Option<Meters>,
        work: impl FnOnce(&mut Transaction) -> Result<R, TxnError>,
    ) -> Result<R, Error> {
        let done = match meters {
            Some(meters) => self.store.counted(meters, || work(&mut self.tx)),
            None => work(&mut self.tx),
        };
        self.noted(done)
    }

    /// Keeps a hash index or a heap until the end, since it may have to be undone.
    pub(in crate::store) fn keep_member(&mut self, member: &dyn Member) {
        self.trees.keep_member(member);
    }

    /// Ties the transaction to the calling thread; see [`Transaction::claim_thread`].
    pub fn claim_thread(&mut self) {
        self.tx.claim_thread();
    }

    /// Unties the transaction from its thread.
    pub fn leave_thread(&mut self) {
        self.tx.leave_thread();
    }

    pub(in crate::store) fn check(&self, tree: &StoreTree<M>) -> Result<(), Error> {
        self.store.may_write()?;
        if Arc::ptr_eq(tree.store(), &self.store) {
            return Ok(());
        }
        Err(Error::OtherStore { name: tree.name().to_string() })
    }

    /// Calls `f` with the value of `key`; `None` if there is no such key.
    ///
    /// # Errors
    /// [`Error`].
    pub fn get<R>(
        &mut self,
        tree: &StoreTree<M>,
        key: &[u8],
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        self.check(tree)?;
        let found = self.store.counted(GET, || self.tx.get(tree.btree(), key, f));
        self.noted(found)
    }

    /// Reads a value as a part of another call: the read is not counted.
    #[inline]
    pub(crate) fn peek<R>(
        &mut self,
        tree: &StoreTree<M>,
        key: &[u8],
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        self.check(tree)?;
        let found = self.tx.get(tree.btree(), key, f);
        self.noted(found)
    }

    /// Returns the result of a call and remembers the kind of its failure.
    #[inline(always)]
    pub(in crate::store) fn noted<R, E: Into<Error>>(
        &mut self,
        done: Result<R, E>,
    ) -> Result<R, Error> {
        match done {
            Ok(done) => Ok(done),
            Err(error) => Err(self.failed(error.into())),
        }
    }

    /// Records an error, away from the path of successful calls.
    #[cold]
    #[inline(never)]
    fn failed(&mut self, error: Error) -> Error {
        self.cause = Some(match (error.is_timeout(), error.is_deadlock()) {
            (true, _) => Counter::AbortsTimeout,
            (false, true) => Counter::AbortsDeadlock,
            (false, false) => Counter::AbortsError,
        });
        error
    }

    /// Locks `key` in X.
    ///
    /// # Errors
    /// [`Error`].
    pub fn lock(&mut self, tree: &StoreTree<M>, key: &[u8]) -> Result<(), Error> {
        self.check(tree)?;
        let locked = self.tx.lock(tree.btree(), key);
        self.noted(locked)
    }

    /// Sets the value of `key`, or removes it, if `condition` holds.
    ///
    /// # Errors
    /// [`Error`].
    pub fn write(
        &mut self,
        tree: &StoreTree<M>,
        key: &[u8],
        value: Option<&[u8]>,
        condition: WriteCondition<'_>,
    ) -> Result<WriteOutcome, Error> {
        self.check(tree)?;
        self.trees.keep(tree.held());
        let write = || self.tx.write(tree.btree(), key, value, condition);
        let written = self.store.counted(write_of(value), write);
        self.noted(written)
    }

    /// Lets `f` change the bytes of the value of `key` in place.
    ///
    /// # Errors
    /// [`Error`].
    pub fn update<R>(
        &mut self,
        tree: &StoreTree<M>,
        key: &[u8],
        f: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<Option<R>, Error> {
        self.check(tree)?;
        self.trees.keep(tree.held());
        let updated = self.store.counted(PUT, || self.tx.update(tree.btree(), key, f));
        self.noted(updated)
    }

    /// Calls `f` with the entries of a range, until it returns `false`.
    ///
    /// # Errors
    /// [`Error`].
    pub fn scan(
        &mut self,
        tree: &StoreTree<M>,
        bounds: Bounds<'_>,
        f: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        self.scan_counted(tree, bounds, true, f)
    }

    /// Calls `f` with the entries of a range, from the last key to the first.
    ///
    /// # Errors
    /// [`Error`].
    pub fn scan_back(
        &mut self,
        tree: &StoreTree<M>,
        bounds: Bounds<'_>,
        f: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        self.scan_counted(tree, bounds, false, f)
    }

    fn scan_counted(
        &mut self,
        tree: &StoreTree<M>,
        bounds: Bounds<'_>,
        forward: bool,
        mut f: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        self.check(tree)?;
        let mut count = ScanCount::begin(self.store.pool().statistics());
        let each = |key: &[u8], value: &[u8]| {
            count.rows += 1;
            f(key, value)
        };
        let scanned = match forward {
            true => self.tx.scan(tree.btree(), bounds.lower, bounds.upper, each),
            false => self.tx.scan_back(tree.btree(), bounds.lower, bounds.upper, each),
        };
        drop(count);
        self.noted(scanned)
    }

    /// Locks some entries of a range and appends them to `out`.
    ///
    /// # Errors
    /// [`Error`].
    pub fn scan_some(
        &mut self,
        tree: &StoreTree<M>,
        bounds: Bounds<'_>,
        how: ScanSome,
        out: &mut VecDeque<OwnedEntry>,
    ) -> Result<(), Error> {
        self.check(tree)?;
        let scanned = self.tx.scan_some(tree.btree(), bounds, how, out);
        self.noted(scanned)
    }

    /// Locks all keys of a range in S, including absent ones.
    ///
    /// # Errors
    /// [`Error`].
    pub fn lock_range(&mut self, tree: &StoreTree<M>, bounds: Bounds<'_>) -> Result<(), Error> {
        self.check(tree)?;
        let locked = self.tx.lock_range(tree.btree(), bounds.lower, bounds.upper);
        self.noted(locked)
    }

    /// Returns `true` if the transaction has locked all of a range.
    pub(crate) fn has_locked(
        &mut self,
        tree: &StoreTree<M>,
        bounds: Bounds<'_>,
    ) -> Result<bool, Error> {
        self.check(tree)?;
        let has = self.tx.has_locked(tree.btree().owner(), bounds);
        self.noted(has)
    }

    /// Sets `key` to a large value whose pages are written already.
    ///
    /// # Errors
    /// [`Error`].
    pub(crate) fn put_built(
        &mut self,
        tree: &StoreTree<M>,
        key: &[u8],
        built: Detached,
    ) -> Result<bool, Error> {
        self.check(tree)?;
        self.trees.keep(tree.held());
        let made = self.store.counted(PUT, || {
            self.tx.write_built(tree.btree(), key, None, Some(built), WriteCondition::Always)
        });
        Ok(self.noted(made)?.existed)
    }

    /// Removes the first entry, or the last, and returns it.
    ///
    /// The end of the tree is locked first. Otherwise two transactions that pop there could both
    /// read the entry that both want to remove, which is a deadlock.
    ///
    /// # Errors
    /// [`Error`].
    pub fn pop(&mut self, tree: &StoreTree<M>, first: bool) -> Result<Option<OwnedEntry>, Error> {
        self.store.pool().counters().count(Counter::Deletes);
        self.timed(Timing::DeleteTime, |txn| txn.pop_uncounted(tree, first))
    }

    /// Removes and returns the first or the last entry, for callers that count by themselves.
    pub(in crate::store) fn pop_uncounted(
        &mut self,
        tree: &StoreTree<M>,
        first: bool,
    ) -> Result<Option<OwnedEntry>, Error> {
        let how = ScanSome { forward: first, max: 1, keys_only: true, as_scan: false };
        let mut seen = VecDeque::new();
        self.check(tree)?;
        self.trees.keep(tree.held());
        let popped = self.tx.pop_inline(tree.btree(), first);
        if let Some(popped) = self.noted(popped)? {
            return Ok(Some(popped));
        }
        if !tree.btree().cursor().first()? {
            self.scan_some(tree, Bounds::ALL, how, &mut seen)?;
            if seen.is_empty() {
                return Ok(None);
            }
        }
        let locked = self.tx.lock_end(tree.btree(), first);
        self.noted(locked)?;
        loop {
            seen.clear();
            self.scan_some(tree, Bounds::ALL, how, &mut seen)?;
            let Some((key, _)) = seen.pop_front() else { return Ok(None) };
            self.lock(tree, &key)?;
            let value = self.peek(tree, &key, <[u8]>::to_vec)?;
            // Without locks on the keys read, another transaction may have removed it.
            let Some(value) = value else { continue };
            let removed = self.tx.write(tree.btree(), &key, None, WriteCondition::Present);
            if self.noted(removed)?.applied {
                return Ok(Some((key, value)));
            }
        }
    }

    /// Returns a savepoint at the present state.
    pub fn savepoint(&self) -> Savepoint {
        self.tx.savepoint()
    }

    /// Undoes the changes since `savepoint`.
    ///
    /// # Errors
    /// [`Error`].
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<(), Error> {
        let trees = &self.trees;
        let undone = self.tx.rollback_to(savepoint, &|owner| trees.find(owner));
        self.noted(undone)?;
        // The failed change is undone.
        self.cause = None;
        Ok(())
    }

    /// Commits: ends the transaction, and keeps its changes.
    ///
    /// # Errors
    /// [`Error`].
    pub fn commit(mut self) -> Result<(), Error> {
        let done = self.timed(Timing::CommitTime, Self::finish);
        if done.is_ok() {
            self.store.pool().counters().count(Counter::Commits);
        }
        done
    }

    /// Commits, and returns before the commit is durable. `ended` is called once the commit is
    /// durable, or the log has failed.
    ///
    /// # Errors
    /// The transaction is not committed; `ended` is not called.
    pub fn commit_async(
        mut self,
        ended: impl FnOnce(Result<(), LogError>) + Send + 'static,
    ) -> Result<(), Error> {
        let end = self.timed(Timing::CommitTime, |txn| {
            txn.store.may_write()?;
            let trees = &txn.trees;
            let end = txn.tx.commit_async(&|owner| trees.find(owner));
            txn.noted(end)
        })?;
        self.store.pool().counters().count(Counter::Commits);
        self.tx.when_durable(end, Box::new(ended));
        Ok(())
    }

    /// Runs, and occasionally times, a call that needs the whole transaction. It does not clone the
    /// store, whose reference count is one line for all threads.
    #[inline(always)]
    fn timed<R>(&mut self, timing: Timing, work: impl FnOnce(&mut Self) -> R) -> R {
        let started = self.store.pool().latencies().start(timing);
        let done = work(self);
        self.store.pool().latencies().stop(timing, started);
        done
    }

    pub(in crate::store) fn finish(&mut self) -> Result<(), Error> {
        self.store.may_write()?;
        let trees = &self.trees;
        let done = self.tx.commit(&|owner| trees.find(owner));
        self.noted(done)
    }

    /// Aborts: undoes all changes and ends the transaction.
    ///
    /// # Errors
    /// [`Error`].
    pub fn abort(mut self) -> Result<(), Error> {
        self.count_abort();
        self.undo()
    }

    pub(in crate::store) fn count_abort(&self) {
        let counters = self.store.pool().counters();
        for counter in [Some(Counter::Aborts), self.cause].into_iter().flatten() {
            counters.count(counter);
        }
    }
}
