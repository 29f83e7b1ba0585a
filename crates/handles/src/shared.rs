//! What a transaction shares with its cursors.
//!
//! [`Txn`] is for one thread at a time, and what reads in it borrows from it. Here both are behind
//! one mutex: the transaction, and a range for each of its cursors. A call locks it; ending the
//! transaction drops the ranges first, and cursors that are left have nothing to read any more.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use millpond::{Db, Error, ErrorKind, RawTree, Savepoint, Txn, TxnOptions};

use crate::fault::Fault;
use crate::range_cell::{Place, RangeCell, Source};

/// What a transaction shares with its cursors.
pub(crate) struct Shared(Mutex<State>);

// SAFETY: `State` is not `Send`, as it has `Rc`s of a `Txn`, which is not `Sync`, and ranges with
// references to one. All of these are inside of this one mutex and never leave it (`Place::Txn` is
// made in this module only, for ranges that `State::ranges` takes), so that no two threads touch
// any of them at once. What they refer to outside (trees, the store) is `Send` and `Sync`: the
// engine asserts it of everything that a range has but for the reference to its transaction
// (`api/place/range.rs`), and `Txn` itself is `Send`.
unsafe impl Send for Shared {}
// SAFETY: as above: a shared reference gives access to the mutex only.
unsafe impl Sync for Shared {}

pub(crate) struct State {
    /// The ranges of its cursors. They refer to `txn`, so they are dropped first.
    ranges: HashMap<u64, RangeCell>,
    /// `None`: it is over.
    pub(crate) txn: Option<Rc<Txn>>,
    pub(crate) savepoints: Vec<Savepoint>,
    cursors: u64,
    /// The last call's failure, for what retries.
    pub(crate) failure: Option<ErrorKind>,
    /// Its owner between calls; `None`: the thread that made the last one.
    pub(crate) home: Option<Home>,
}

/// The thread whose own a transaction is between its calls, if any's.
pub(crate) type Home = Option<ThreadId>;

impl State {
    /// The transaction, with no other reference to it.
    pub(crate) fn take(&mut self) -> Result<Txn, Fault> {
        self.ranges.clear();
        let txn = self.txn.take().ok_or(Fault::TransactionOver)?;
        // The ranges had the other references.
        Rc::try_unwrap(txn).map_err(|_| Fault::TransactionOver)
    }

    /// The transaction, for a call that needs it for itself: its cursors are over.
    pub(crate) fn txn_mut(&mut self) -> Result<&mut Txn, Fault> {
        self.ranges.clear();
        self.txn.as_mut().and_then(Rc::get_mut).ok_or(Fault::TransactionOver)
    }

    /// Opens a range of `tree`; returns its number.
    pub(crate) fn open_range(&mut self, tree: &RawTree) -> Result<u64, Fault> {
        let txn = self.txn.clone().ok_or(Fault::TransactionOver)?;
        let id = self.cursors;
        self.cursors += 1;
        let source = Source { tree: tree.clone(), place: Place::Txn(txn) };
        self.ranges.insert(id, RangeCell::of(source));
        Ok(id)
    }

    /// Ends a call: remembers its failure, and leaves a thread that is not the transaction's home.
    pub(crate) fn note<R>(&mut self, done: Result<R, Error>) -> Result<R, Fault> {
        if let (Some(home), Some(txn)) = (self.home, &self.txn)
            && home != Some(std::thread::current().id())
        {
            txn.release_thread();
        }
        self.failure = done.as_ref().err().map(Error::kind);
        Ok(done?)
    }
}

impl Shared {
    pub(crate) fn begin(db: &Db, options: Option<TxnOptions>) -> Result<Shared, Fault> {
        let txn = match options {
            Some(options) => db.begin_with(options)?,
            None => db.begin()?,
        };
        let (ranges, savepoints) = (HashMap::new(), Vec::new());
        let txn = Some(Rc::new(txn));
        let state = State { ranges, txn, savepoints, cursors: 0, failure: None, home: None };
        Ok(Shared(Mutex::new(state)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic between two statements of this module leaves nothing half done; one within the
        // engine fails the transaction.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call of one of its ranges.
    pub(crate) fn with_range<R>(
        &self,
        id: u64,
        call: impl FnOnce(&mut RangeCell) -> Result<R, Error>,
    ) -> Result<R, Fault> {
        let mut state = self.lock();
        if state.txn.is_none() {
            return Err(Fault::TransactionOver);
        }
        let done = call(state.ranges.get_mut(&id).ok_or(Fault::CursorOver)?);
        state.note(done)
    }

    /// Drops one of its ranges.
    pub(crate) fn drop_range(&self, id: u64) {
        self.lock().ranges.remove(&id);
    }
}
