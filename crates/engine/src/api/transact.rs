//! Running a closure in a transaction, and retrying it.

use std::any::Any;
use std::time::{Duration, Instant};

use crate::api::db::Db;
use crate::api::txn::{Outcome, Txn};
use crate::store::error::Error;
use crate::txn::TxnOptions;

/// How long [`Db::transact`] retries a transaction.
const RETRY_TIME: Duration = Duration::from_secs(10);

/// How [`Db::transact_with`] runs a transaction.
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
    /// The options of each of its transactions; `None`: those of [`Db::begin`].
    pub txn: Option<TxnOptions>,
    /// How long a transaction that lost in a deadlock is retried: none begins later than this after
    /// the call. The default is 10 s. Zero: there is one try.
    pub retry_time: Duration,
    /// Whether a transaction is retried, too, if it waited for a lock for as long as it may. Not by
    /// default: a lock that is kept for that long is likely to be kept for longer.
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

    /// Sets how long it retries.
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

    /// Sets whether it retries after a lock was waited for too long.
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
    /// Runs `work` in a transaction, and commits it; if that lost in a deadlock, or others have
    /// most of what it needs, again in another one, for 10 s. If `work` fails, the transaction is
    /// aborted, and its error is returned.
    ///
    /// The error may be of any type that a [`millpond::Error`](Error) converts to. Whether to retry
    /// is seen from the transaction: from whether its last call failed with an error that is
    /// [retriable](Error::is_retriable). So `work` hands such an error on, as it is or within its
    /// own.
    ///
    /// `work` reads and writes through the transaction that it is given. What it does to the same
    /// keys by plain calls is no part of the transaction, and fails at once.
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
    /// What `work` failed with, or the commit.
    pub fn transact<R, E: From<Error> + 'static>(
        &self,
        work: impl FnMut(&mut Txn) -> Result<R, E>,
    ) -> Result<R, E> {
        self.transact_with(TransactOptions::default(), work)
    }

    /// Runs `work` in a transaction, as [`Db::transact`] does, in the way that `options` state.
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
    /// As [`Db::transact`].
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
            // The one that it lost to is to come first.
            std::thread::yield_now();
        }
    }
}

/// What an error shows, if it is one of the store's: a plain call within the closure may be what
/// closed the deadlock.
fn outcome_of<E: 'static>(error: &E) -> Outcome {
    let error = (error as &dyn Any).downcast_ref::<Error>();
    error.map_or(Outcome::Settled, Outcome::of)
}
