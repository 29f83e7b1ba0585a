//! State that a transaction shares with its cursors.
//!
//! A range borrows its [`Txn`]. Here one mutex guards both: the transaction, and a range for each
//! of its cursors. Every call locks it. The end of the transaction drops the ranges first, and the
//! remaining cursors find no range.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use millpond::{Db, Error, ErrorKind, RawTree, Savepoint, Txn, TxnOptions};
use millpond_base::PastPoison;

use crate::fault::Fault;
use crate::range_cell::{Context, RangeCell, Source};

/// The shared state and its mutex.
pub(crate) struct Shared(Mutex<State>);

pub(crate) struct State {
    /// Ranges of the cursors. They refer to `txn`, so they are dropped first.
    ranges: HashMap<u64, RangeCell>,
    /// The transaction, or `None` once it has ended.
    pub(crate) txn: Option<Arc<Txn>>,
    pub(crate) savepoints: Vec<Savepoint>,
    cursors: u64,
    /// Failure of the last call, for the retry loop.
    pub(crate) failure: Option<ErrorKind>,
}

impl State {
    /// Takes the transaction; no other reference to it is left.
    pub(crate) fn take(&mut self) -> Result<Txn, Fault> {
        self.ranges.clear();
        let txn = self.txn.take().ok_or(Fault::TransactionOver)?;
        // The ranges had the other references.
        Arc::try_unwrap(txn).map_err(|_| Fault::TransactionOver)
    }

    /// Returns the transaction for a call that needs it exclusively, which ends its cursors.
    pub(crate) fn txn_mut(&mut self) -> Result<&mut Txn, Fault> {
        self.ranges.clear();
        self.txn.as_mut().and_then(Arc::get_mut).ok_or(Fault::TransactionOver)
    }

    /// Opens a range of `tree`, and returns its number.
    pub(crate) fn open_range(&mut self, tree: &RawTree) -> Result<u64, Fault> {
        let txn = self.txn.clone().ok_or(Fault::TransactionOver)?;
        let id = self.cursors;
        self.cursors += 1;
        let source = Source { tree: tree.clone(), context: Context::Txn(txn) };
        self.ranges.insert(id, RangeCell::of(source));
        Ok(id)
    }

    /// Ends a call, and remembers its failure.
    pub(crate) fn note<R>(&mut self, done: Result<R, Error>) -> Result<R, Fault> {
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
        let txn = Some(Arc::new(txn));
        let state = State { ranges, txn, savepoints, cursors: 0, failure: None };
        Ok(Shared(Mutex::new(state)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic between two statements of this module leaves nothing half done. A panic within
        // the engine fails the transaction.
        self.0.lock().past_poison()
    }

    /// Runs `call` on one of the ranges.
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

    /// Drops one of the ranges.
    pub(crate) fn drop_range(&self, id: u64) {
        self.lock().ranges.remove(&id);
    }
}
