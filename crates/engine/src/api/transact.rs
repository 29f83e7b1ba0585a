//! Running a closure in a transaction, and retrying it.

use std::any::Any;
use std::time::{Duration, Instant};

use crate::api::db::Db;
use crate::api::txn::{Outcome, Txn};
use crate::store::error::Error;
use crate::txn::TxnOptions;

/// Time for which [`Db::transact`] retries a transaction.
const RETRY_TIME: Duration = Duration::from_secs(10);

/// Options of [`Db::transact_with`].
///
/// ```
/// use std::time::Duration;
///
/// use millpond::{Db, Durability, Error, Options, TransactOptions, TxnOptions};
/// # fn main() -> Result<(), Error> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let counts = db.tree::<u32, u64>("counts")?;
/// let options = TransactOptions::default()
///     .txn(TxnOptions::default().durability(Durability::Async))
///     .retry_time(Duration::from_secs(60))
///     .retry_timeouts(true);
/// db.transact_with(options, |tx| tx.tree(&counts).put(&7, &1))?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TransactOptions {
    /// Options of each transaction; `None` for the options of [`Db::begin`].
    pub txn: Option<TxnOptions>,
    /// Time for which a deadlock's victim is retried: no try begins later than this after the call.
    /// The default is 10 s. With zero there is one try.
    pub retry_time: Duration,
    /// Retry a transaction after a lock timeout, too. Off by default: a lock held for that long is
    /// likely to be held for longer.
    pub retry_timeouts: bool,
}

impl Default for TransactOptions {
    fn default() -> TransactOptions {
        TransactOptions { txn: None, retry_time: RETRY_TIME, retry_timeouts: false }
    }
}

impl TransactOptions {
    /// Sets the options of its transactions.
    ///
    /// ```
    /// use millpond::{Durability, TransactOptions, TxnOptions};
    /// let txn = TxnOptions::default().durability(Durability::Async);
    /// let options = TransactOptions::default().txn(txn);
    /// assert!(options.txn.is_some_and(|txn| txn.durability == Durability::Async));
    /// ```
    #[must_use]
    pub fn txn(self, txn: TxnOptions) -> TransactOptions {
        TransactOptions { txn: Some(txn), ..self }
    }

    /// Sets the time for which a deadlock's victim is retried.
    ///
    /// ```
    /// use std::time::Duration;
    /// use millpond::TransactOptions;
    /// let once = TransactOptions::default().retry_time(Duration::ZERO);
    /// assert!(once.retry_time < TransactOptions::default().retry_time);
    /// ```
    #[must_use]
    pub fn retry_time(self, retry_time: Duration) -> TransactOptions {
        TransactOptions { retry_time, ..self }
    }

    /// Sets whether a transaction is retried after a lock timeout.
    ///
    /// ```
    /// use millpond::TransactOptions;
    /// assert!(TransactOptions::default().retry_timeouts(true).retry_timeouts);
    /// ```
    #[must_use]
    pub fn retry_timeouts(self, retry_timeouts: bool) -> TransactOptions {
        TransactOptions { retry_timeouts, ..self }
    }
}

impl Db {
    /// Runs `work` in a transaction and commits it. If the transaction lost in a deadlock, or
    /// others have most of the memory or room it needs, `work` runs again in another one, for 10 s.
    /// If `work` fails, the transaction is aborted and the error is returned.
    ///
    /// The error may be of any type that a [`millpond::Error`](Error) converts to. The decision to
    /// retry depends on the transaction's last call: its error must be
    /// [retriable](Error::is_retriable). So `work` should return such an error, as it is or within
    /// its own.
    ///
    /// `work` reads and writes through the transaction that it is given. A plain call that writes
    /// the same keys is not part of the transaction, and fails at once.
    ///
    /// ```
    /// use millpond::{Db, Error, Options};
    ///
    /// #[derive(Debug)]
    /// enum Refused {
    ///     NoMoney,
    ///     Store(Error),
    /// }
    ///
    /// impl From<Error> for Refused {
    ///     fn from(error: Error) -> Refused {
    ///         Refused::Store(error)
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Refused> {
    /// let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let accounts = db.tree::<String, u64>("accounts")?;
    /// accounts.put("heron", &100)?;
    /// let pay = |amount| {
    ///     db.transact(|tx| {
    ///         let accounts = tx.tree(&accounts);
    ///         let has = accounts.get_for_update("heron")?.unwrap_or(0);
    ///         let left = has.checked_sub(amount).ok_or(Refused::NoMoney)?;
    ///         accounts.put("heron", &left)?;
    ///         accounts.update("otter", |has| Some(has.unwrap_or(0) + amount))?;
    ///         Ok::<_, Refused>(left)
    ///     })
    /// };
    /// assert_eq!(pay(70)?, 30);
    /// assert!(matches!(pay(70), Err(Refused::NoMoney)));
    /// assert_eq!(accounts.get("otter")?, Some(70));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The error of `work`, or that of the commit.
    pub fn transact<R, E: From<Error> + 'static>(
        &self,
        work: impl FnMut(&mut Txn) -> Result<R, E>,
    ) -> Result<R, E> {
        self.transact_with(TransactOptions::default(), work)
    }

    /// Runs `work` in a transaction, like [`Db::transact`], with `options`.
    ///
    /// ```
    /// use millpond::{Db, Error, Options, TransactOptions};
    /// # fn main() -> Result<(), Error> {
    /// let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let counts = db.tree::<u32, u64>("counts")?;
    /// let patient = TransactOptions::default().retry_timeouts(true);
    /// let count = db.transact_with(patient, |tx| {
    ///     tx.tree(&counts).update(&7, |count| Some(count.unwrap_or(0) + 1))
    /// })?;
    /// assert_eq!(count, Some(1));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Db::transact`].
    pub fn transact_with<R, E: From<Error> + 'static>(
        &self,
        options: TransactOptions,
        mut work: impl FnMut(&mut Txn) -> Result<R, E>,
    ) -> Result<R, E> {
        let begun = Instant::now();
        loop {
            let mut tx = match options.txn {
                Some(txn) => self.begin_with(txn)?,
                None => self.begin()?,
            };
            tx.claim_thread();
            let (error, outcome) = match work(&mut tx) {
                Ok(done) => match tx.commit() {
                    Ok(()) => return Ok(done),
                    Err(error) => {
                        let outcome = Outcome::of(&error);
                        (error.into(), outcome)
                    }
                },
                Err(error) => {
                    let outcome = match tx.outcome() {
                        Outcome::Settled => outcome_of(&error),
                        outcome => outcome,
                    };
                    tx.abort()?;
                    (error, outcome)
                }
            };
            let is_worth_it = match outcome {
                Outcome::Settled => false,
                Outcome::Victim => true,
                Outcome::TimedOut => options.retry_timeouts,
            };
            if !is_worth_it || begun.elapsed() >= options.retry_time {
                return Err(error);
            }
            // The transaction that won should run first.
            std::thread::yield_now();
        }
    }
}

/// Returns the outcome that an error of the store indicates: a plain call within the closure may
/// have closed the deadlock.
fn outcome_of<E: 'static>(error: &E) -> Outcome {
    let error = (error as &dyn Any).downcast_ref::<Error>();
    error.map_or(Outcome::Settled, Outcome::of)
}
