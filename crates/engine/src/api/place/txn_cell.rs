//! A transaction whose handles share it: its byte-level calls, each of which has it to itself for
//! as long as it runs.
//!
//! [`Txn`](crate::Txn) and its trees hold it by shared reference, so that several trees of one
//! transaction are used side by side and a range goes on while entries are written. A closure of
//! the user runs when the call is over, with a copy; only that of an update in place runs within
//! it, and fails with [`TxnError::Nested`] if it calls the transaction.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Bound;

use crate::api::strategy::*;
use crate::btree::{WriteCondition, WriteOutcome};
use crate::encoding::key_range::KeyRange;
use crate::store::error::Error;
use crate::txn::{OwnedEntry, Savepoint, ScanSome, TxnError};

/// The outcome of the last call of a transaction, for what retries it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Nothing that a retry would change.
    Settled,
    /// The transaction lost in a deadlock, or others had most of the memory or room for it.
    Victim,
    /// It waited for a lock for too long.
    TimedOut,
}

impl Outcome {
    pub(crate) fn of(error: &Error) -> Outcome {
        match (error.is_timeout(), error.is_retriable() && !error.is_own_transaction()) {
            (true, _) => Outcome::TimedOut,
            (false, true) => Outcome::Victim,
            (false, false) => Outcome::Settled,
        }
    }
}

/// A transaction, and what its handles have to know of one another.
pub(crate) struct TxnCell {
    txn: RefCell<DbTxn>,
    outcome: Cell<Outcome>,
    /// Writes so far: what was read ahead before one of them may have changed.
    writes: Cell<u64>,
}

pub(crate) fn bounds(range: &KeyRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (range.start.as_ref().map(Vec::as_slice), range.end.as_ref().map(Vec::as_slice))
}

impl TxnCell {
    pub(crate) fn new(txn: DbTxn) -> TxnCell {
        let (outcome, writes) = (Cell::new(Outcome::Settled), Cell::new(0));
        TxnCell { txn: RefCell::new(txn), outcome, writes }
    }

    /// The outcome of the last call.
    pub(crate) fn outcome(&self) -> Outcome {
        self.outcome.get()
    }

    /// How many calls have written.
    pub(crate) fn writes(&self) -> u64 {
        self.writes.get()
    }

    /// Runs a call.
    #[inline]
    pub(crate) fn call<R>(
        &self,
        work: impl FnOnce(&mut DbTxn) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let Ok(mut txn) = self.txn.try_borrow_mut() else { return Err(TxnError::Nested.into()) };
        let done = work(&mut txn);
        let outcome = match &done {
            Ok(_) => Outcome::Settled,
            Err(error) => Outcome::of(error),
        };
        self.outcome.set(outcome);
        done
    }

    /// Runs a call that writes.
    #[inline]
    pub(crate) fn writing<R>(
        &self,
        work: impl FnOnce(&mut DbTxn) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.writes.set(self.writes.get() + 1);
        self.call(work)
    }

    /// The transaction, for a call that has the handle to itself.
    pub(crate) fn get_mut(&mut self) -> &mut DbTxn {
        self.txn.get_mut()
    }

    /// Releases it from its thread, unless a call is under way.
    pub(crate) fn release_thread(&self) {
        if let Ok(mut txn) = self.txn.try_borrow_mut() {
            txn.leave_thread();
        }
    }

    /// A moment to go back to.
    pub(crate) fn savepoint(&self) -> Savepoint {
        self.txn.borrow().savepoint()
    }

    /// Undoes what was changed since `savepoint`.
    pub(crate) fn rollback_to(&self, savepoint: &Savepoint) -> Result<(), Error> {
        self.writing(|txn| txn.rollback_to(savepoint))
    }

    /// Hands the entries of a range, which is locked as a whole first, to `f` until it returns
    /// `false`. `f` must not call the transaction.
    pub(crate) fn scan(
        &self,
        tree: &DbTree,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        forward: bool,
        f: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        self.call(|txn| match forward {
            true => txn.scan(tree, bounds, f),
            false => txn.scan_back(tree, bounds, f),
        })
    }

    /// The transaction, to end it.
    pub(crate) fn into_inner(self) -> DbTxn {
        self.txn.into_inner()
    }

    /// Hands the value of `key` to `f`, which must not call the transaction; returns whether there
    /// is such a key.
    pub(crate) fn get(
        &self,
        tree: &DbTree,
        key: &[u8],
        f: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        self.call(|txn| Ok(txn.get(tree, key, f)?.is_some()))
    }

    /// The same for what is part of another call: it is not counted.
    pub(crate) fn peek(
        &self,
        tree: &DbTree,
        key: &[u8],
        f: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        self.call(|txn| Ok(txn.peek(tree, key, f)?.is_some()))
    }

    /// Locks `key` to write it.
    pub(crate) fn lock(&self, tree: &DbTree, key: &[u8]) -> Result<(), Error> {
        self.call(|txn| txn.lock(tree, key))
    }

    /// Locks the keys of a range to read them.
    pub(crate) fn lock_range(&self, tree: &DbTree, range: &KeyRange) -> Result<(), Error> {
        self.call(|txn| txn.lock_range(tree, bounds(range)))
    }

    /// Whether nobody else can change what is in a range before the transaction is over.
    pub(crate) fn has_locked(&self, tree: &DbTree, range: &KeyRange) -> Result<bool, Error> {
        self.call(|txn| txn.has_locked(tree, bounds(range)))
    }

    /// As [`DbTxn::len`].
    pub(crate) fn len(&self, tree: &DbTree) -> Result<Option<u64>, Error> {
        self.call(|txn| txn.len(tree))
    }

    /// As [`Transaction::write`](crate::txn::Transaction::write).
    pub(crate) fn write(
        &self,
        tree: &DbTree,
        key: &[u8],
        value: Option<&[u8]>,
        condition: WriteCondition<'_>,
    ) -> Result<WriteOutcome, Error> {
        self.writing(|txn| txn.write(tree, key, value, condition))
    }

    /// Lets `f` change the bytes of a value, but not their number; returns whether there is such a
    /// key. `f` must not call the transaction.
    pub(crate) fn update_bytes(
        &self,
        tree: &DbTree,
        key: &[u8],
        f: &mut dyn FnMut(&mut [u8]),
    ) -> Result<bool, Error> {
        self.writing(|txn| Ok(txn.update(tree, key, f)?.is_some()))
    }

    /// Removes the first entry, or the last, and returns it.
    pub(crate) fn pop(&self, tree: &DbTree, first: bool) -> Result<Option<OwnedEntry>, Error> {
        self.writing(|txn| txn.pop(tree, first))
    }

    /// Sets `key` to `len` bytes out of `source`; returns whether there was an entry. The key is
    /// locked first; `source` is read before the entry is changed, and may call the transaction.
    pub(crate) fn put_from(
        &self,
        tree: &DbTree,
        key: &[u8],
        len: u64,
        mut source: &mut dyn std::io::Read,
    ) -> Result<bool, Error> {
        use crate::btree::Streamed;
        self.lock(tree, key)?;
        match tree.btree().read_streamed(key, len, &mut source)? {
            Streamed::Inline(value) => {
                Ok(self.write(tree, key, Some(&value), WriteCondition::Always)?.existed)
            }
            Streamed::Detached(built) => self.writing(|txn| txn.put_built(tree, key, built)),
        }
    }

    /// As [`Transaction::scan_some`](crate::txn::Transaction::scan_some).
    pub(crate) fn scan_some(
        &self,
        tree: &DbTree,
        range: &KeyRange,
        how: ScanSome,
        out: &mut VecDeque<OwnedEntry>,
    ) -> Result<(), Error> {
        self.call(|txn| txn.scan_some(tree, bounds(range), how, out))
    }
}
