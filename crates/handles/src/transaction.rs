//! A transaction whose handles may be used and dropped in any order, by any thread.

use std::sync::Arc;
use std::time::Instant;

use millpond::{Db, Error, ErrorKind, KeyRange, RawTree, TransactOptions, Txn, TxnOptions};

use crate::cursor::Cursor;
use crate::fault::Fault;
use crate::shared::Shared;

/// A transaction. Dropped, it is aborted, and its cursors are over.
///
/// Calls of several threads wait for one another. Locks belong to the transaction; the thread that
/// made its last call is the one for which [`Error::is_own_transaction`] is told.
///
/// ```
/// use millpond::{Db, Options};
/// use millpond_handles::{Fault, Transaction};
///
/// # fn main() -> Result<(), Fault> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let ponds = db.raw_tree("ponds")?;
/// let tx = Transaction::begin(&db, None)?;
/// tx.call(|txn| txn.tree(&ponds).put(b"mill", b"deep"))?;
/// tx.commit()?;
/// assert_eq!(ponds.get(b"mill")?, Some(b"deep".to_vec()));
/// assert!(matches!(tx.commit(), Err(Fault::TransactionOver)));
/// # Ok(()) }
/// ```
pub struct Transaction {
    shared: Arc<Shared>,
}

impl Drop for Transaction {
    fn drop(&mut self) {
        // It aborts itself; who wants to know whether that went well calls `abort`.
        drop(self.shared.lock().take());
    }
}

impl Transaction {
    /// Begins one; without options, with the store's.
    ///
    /// # Errors
    /// As [`Db::begin`].
    pub fn begin(db: &Db, options: Option<TxnOptions>) -> Result<Transaction, Fault> {
        Ok(Transaction { shared: Arc::new(Shared::begin(db, options)?) })
    }

    /// Makes a call of the transaction.
    ///
    /// # Errors
    /// [`Fault::TransactionOver`], or as the call.
    pub fn call<R>(&self, call: impl FnOnce(&Txn) -> Result<R, Error>) -> Result<R, Fault> {
        let mut state = self.shared.lock();
        let done = call(state.txn.as_deref().ok_or(Fault::TransactionOver)?);
        state.note(done)
    }

    /// Commits it, which ends it and its cursors whatever happens.
    ///
    /// # Errors
    /// As [`Txn::commit`].
    pub fn commit(&self) -> Result<(), Fault> {
        let mut state = self.shared.lock();
        let done = state.take()?.commit();
        state.note(done)
    }

    /// Undoes what it did, and ends it and its cursors.
    ///
    /// # Errors
    /// As [`Txn::abort`].
    pub fn abort(&self) -> Result<(), Fault> {
        let mut state = self.shared.lock();
        let done = state.take()?.abort();
        state.note(done)
    }

    /// Returns `true` if the transaction can continue.
    pub fn is_open(&self) -> bool {
        self.shared.lock().txn.is_some()
    }

    /// Ties the transaction to the calling thread, which waits for its end in a block or a function
    /// of the caller's: until then, a call of this thread outside the transaction that would wait
    /// for it fails at once.
    ///
    /// ```
    /// use millpond::{Db, ErrorKind, Options};
    /// use millpond_handles::{Fault, Transaction};
    ///
    /// # fn main() -> Result<(), Fault> {
    /// let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.raw_tree("ponds")?;
    /// let tx = Transaction::begin(&db, None)?;
    /// tx.claim_thread()?;
    /// tx.call(|txn| txn.tree(&ponds).put(b"mill", b"deep"))?;
    /// let outside = ponds.put(b"mill", b"dry");
    /// assert_eq!(outside.map_err(|error| error.kind()), Err(ErrorKind::OwnTransaction));
    /// tx.commit()
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Fault::TransactionOver`].
    pub fn claim_thread(&self) -> Result<(), Fault> {
        self.shared.lock().txn.as_ref().ok_or(Fault::TransactionOver)?.claim_thread();
        Ok(())
    }

    /// Makes a savepoint; returns its number.
    ///
    /// # Errors
    /// [`Fault::TransactionOver`].
    pub fn savepoint(&self) -> Result<usize, Fault> {
        let mut state = self.shared.lock();
        let savepoint = state.txn.as_ref().ok_or(Fault::TransactionOver)?.savepoint()?;
        state.savepoints.push(savepoint);
        Ok(state.savepoints.len() - 1)
    }

    /// Undoes what was done since a savepoint, which stays; later ones, and all cursors, are over.
    ///
    /// # Errors
    /// [`Fault::NoSavepoint`], or as [`Txn::rollback_to`].
    pub fn rollback_to(&self, number: usize) -> Result<(), Fault> {
        let savepoint = {
            let mut state = self.shared.lock();
            let there = state.savepoints.len();
            let savepoint = state.savepoints.get(number).cloned();
            let savepoint = savepoint.ok_or(Fault::NoSavepoint { number, there })?;
            state.savepoints.truncate(number + 1);
            savepoint
        };
        self.with_mut(|txn| txn.rollback_to(&savepoint))
    }

    /// Makes a call that needs the transaction for itself.
    fn with_mut(&self, call: impl FnOnce(&mut Txn) -> Result<(), Error>) -> Result<(), Fault> {
        let mut state = self.shared.lock();
        let done = call(state.txn_mut()?);
        state.note(done)
    }

    /// A cursor of `tree` within `range`, which sees and locks what the transaction does.
    ///
    /// # Errors
    /// [`Fault::TransactionOver`].
    pub fn cursor(&self, tree: &RawTree, range: KeyRange) -> Result<Cursor, Fault> {
        let mut state = self.shared.lock();
        let id = state.open_range(tree)?;
        drop(state);
        Ok(Cursor::in_transaction(self.shared.clone(), id, range))
    }

    /// Returns the category of the last call's failure.
    fn failure(&self) -> Option<ErrorKind> {
        self.shared.lock().failure
    }
}

/// Runs `work` in a transaction and commits it, unless `work` has ended it; retries what lost in a
/// deadlock, as [`Db::transact_with`] does.
///
/// ```
/// use millpond::{Db, Options, TransactOptions};
/// use millpond_handles::{Fault, transact};
///
/// # fn main() -> Result<(), Fault> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let ponds = db.raw_tree("ponds")?;
/// transact(&db, TransactOptions::default(), |tx| {
///     tx.call(|txn| txn.tree(&ponds).put(b"mill", b"deep"))
/// })?;
/// assert_eq!(ponds.len()?, 1);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As `work` and [`Txn::commit`].
pub fn transact<R, E: From<Fault>>(
    db: &Db,
    options: TransactOptions,
    mut work: impl FnMut(&Arc<Transaction>) -> Result<R, E>,
) -> Result<R, E> {
    let begun = Instant::now();
    loop {
        let tx = Arc::new(Transaction::begin(db, options.txn)?);
        tx.claim_thread()?;
        let error = match work(&tx) {
            Ok(done) if !tx.is_open() => return Ok(done),
            Ok(done) => match tx.commit() {
                Ok(()) => return Ok(done),
                Err(fault) => fault.into(),
            },
            Err(error) => error,
        };
        let is_worth_it = match tx.failure() {
            Some(ErrorKind::Deadlock) => true,
            Some(ErrorKind::Timeout) => options.retry_timeouts,
            _ => false,
        };
        if tx.is_open() {
            tx.abort()?;
        }
        if !is_worth_it || begun.elapsed() >= options.retry_time {
            return Err(error);
        }
        // The one that it lost to is to come first.
        std::thread::yield_now();
    }
}
