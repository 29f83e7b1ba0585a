//! Options of a transaction: its durability, its isolation, its maximum wait for locks.

use std::time::Duration;

/// Time at which a commit becomes durable. With each of these, a crash loses at most a suffix of
/// the commits, and never a part of one.
///
/// ```
/// # use millpond::{Db, Durability, Error, Options, TxnOptions};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let counts = db.tree::<u32, u64>("counts")?;
/// let tx = db.begin_with(TxnOptions::default().durability(Durability::Async))?;
/// tx.tree(&counts).put(&7, &1)?;
/// tx.commit()?;
/// db.flush()?; // now it is durable
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Durability {
    /// Durable when the call returns. Simultaneous commits share a flush (group commit): if the
    /// last flush had several, the next one waits for others, for at most the time of a flush.
    #[default]
    Sync,
    /// Durable when the call returns. If the last flush was shared, the next one waits up to 0.2 ms
    /// for other commits, however long a flush takes.
    Group,
    /// Durable a moment after the call returned: a crash loses the commits of the last flush
    /// interval.
    Async,
    /// Like `Async`; for loads that are repeated after a crash anyway.
    Bulk,
}

/// Isolation from other transactions.
///
/// ```
/// # use millpond::{Db, Error, Isolation, Options, TxnOptions};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let counts = db.tree::<u32, u64>("counts")?;
/// let tx = db.begin_with(TxnOptions::default().isolation(Isolation::ReadCommitted))?;
/// assert_eq!(tx.tree(&counts).get(&7)?, None);
/// counts.put(&7, &1)?;
/// assert_eq!(tx.tree(&counts).get(&7)?, Some(1));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Isolation {
    /// Transactions behave as if they ran one after the other: an entry that one has read does not
    /// change until its end.
    #[default]
    Serializable,
    /// Reads see committed data only, which may change a moment later.
    ReadCommitted,
}

/// Options of a transaction.
///
/// ```
/// # use millpond::{Db, Durability, Error, Options, TxnOptions};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// use std::time::Duration;
/// let options = TxnOptions::default().durability(Durability::Group);
/// let options = options.wait_max(Duration::from_secs(1));
/// db.begin_with(options)?.commit()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TxnOptions {
    /// Durability of its commit.
    pub durability: Durability,
    /// Isolation of the transaction.
    pub isolation: Isolation,
    /// Maximum wait for a lock; `None` for the store's option.
    pub wait_max: Option<Duration>,
}

impl TxnOptions {
    /// Sets the durability.
    ///
    /// ```
    /// use millpond::{Durability, TxnOptions};
    /// assert_eq!(TxnOptions::default().durability, Durability::Sync);
    /// assert_eq!(TxnOptions::default().durability(Durability::Bulk).durability, Durability::Bulk);
    /// ```
    #[must_use]
    pub fn durability(self, durability: Durability) -> TxnOptions {
        TxnOptions { durability, ..self }
    }

    /// Sets the isolation.
    ///
    /// ```
    /// use millpond::{Isolation, TxnOptions};
    /// let options = TxnOptions::default().isolation(Isolation::ReadCommitted);
    /// assert_eq!(options.isolation, Isolation::ReadCommitted);
    /// ```
    #[must_use]
    pub fn isolation(self, isolation: Isolation) -> TxnOptions {
        TxnOptions { isolation, ..self }
    }

    /// Sets the maximum wait for a lock.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options, TxnOptions};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// use std::time::Duration;
    /// let counts = db.tree::<u32, u64>("counts")?;
    /// let holder = db.begin()?;
    /// holder.tree(&counts).put(&7, &1)?;
    /// let tx = db.begin_with(TxnOptions::default().wait_max(Duration::from_millis(5)))?;
    /// assert!(tx.tree(&counts).get(&7).is_err_and(|error| error.is_timeout()));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn wait_max(self, wait_max: Duration) -> TxnOptions {
        TxnOptions { wait_max: Some(wait_max), ..self }
    }
}
