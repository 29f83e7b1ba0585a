//! A transaction whose handles may be used and dropped in any order, by any thread.

use std::sync::Arc;
use std::time::Instant;

use millpond::{Db, Error, ErrorKind, KeyRange, RawTree, TransactOptions, Txn, TxnOptions};

use crate::cursor::Cursor;
use crate::fault::Fault;
use crate::shared::Shared;

/// A transaction. Dropping it aborts it, and ends its cursors.
///
/// Calls from several threads wait for each other. Locks belong to the transaction;
/// [`Error::is_own_transaction`] refers to the thread that made its last call.
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
        // It aborts itself; a caller that needs the result calls `abort`.
        drop(self.shared.lock().take());
    }
}

impl Transaction {
    /// Begins a transaction; without options, with those of the store.
    ///
    /// # Errors
    /// Same as [`Db::begin`].
    pub fn begin(db: &Db, options: Option<TxnOptions>) -> Result<Transaction, Fault> {
        Ok(Transaction { shared: Arc::new(Shared::begin(db, options)?) })
    }

    /// Runs a call on the transaction.
    ///
    /// # Errors
    /// [`Fault::TransactionOver`], or the error of the call.
    pub fn call<R>(&self, call: impl FnOnce(&Txn) -> Result<R, Error>) -> Result<R, Fault> {
        let mut state = self.shared.lock();
        let done = call(state.txn.as_deref().ok_or(Fault::TransactionOver)?);
        state.note(done)
    }

    /// Commits the transaction. It and its cursors end in any case.
    ///
    /// # Errors
    /// Same as [`Txn::commit`].
    pub fn commit(&self) -> Result<(), Fault> {
        let mut state = self.shared.lock();
        let done = state.take()?.commit();
        state.note(done)
    }

    /// Rolls the transaction back, and ends it and its cursors.
    ///
    /// # Errors
    /// Same as [`Txn::abort`].
    pub fn abort(&self) -> Result<(), Fault> {
        let mut state = self.shared.lock();
        let done = state.take()?.abort();
        state.note(done)
    }

    /// Returns `true` if the transaction can continue.
    pub fn is_open(&self) -> bool {
        self.shared.lock().txn.is_some()
    }

    /// Ties the transaction to the calling thread, which runs a block or function until the
    /// transaction ends. Until then, a call of this thread outside the transaction that would wait
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

    /// Creates a savepoint, and returns its number.
    ///
    /// # Errors
    /// [`Fault::TransactionOver`].
    pub fn savepoint(&self) -> Result<usize, Fault> {
        let mut state = self.shared.lock();
        let savepoint = state.txn.as_ref().ok_or(Fault::TransactionOver)?.savepoint()?;
        state.savepoints.push(savepoint);
        Ok(state.savepoints.len() - 1)
    }

    /// Rolls back to a savepoint, which stays. Later savepoints and all cursors end.
    ///
    /// # Errors
    /// [`Fault::NoSavepoint`], or any error of [`Txn::rollback_to`].
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

    /// Runs a call that needs the transaction exclusively.
    fn with_mut(&self, call: impl FnOnce(&mut Txn) -> Result<(), Error>) -> Result<(), Fault> {
        let mut state = self.shared.lock();
        let done = call(state.txn_mut()?);
        state.note(done)
    }

    /// Returns a cursor of `tree` within `range`. It sees the transaction's writes, and takes its
    /// locks.
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

/// Runs `work` in a transaction and commits it, unless `work` has ended it. A transaction that
/// loses in a deadlock is retried, as in [`Db::transact_with`].
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
/// Errors of `work`, and of [`Txn::commit`].
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
        // The transaction that it lost to should go first.
        std::thread::yield_now();
    }
}
