//! The errors of a store as users see them: one enum over the narrow ones of the layers below.

use std::fmt;
use std::path::PathBuf;

use millpond_base::Lsn;
use millpond_tier::TierError;

use crate::btree::{BulkError, StreamError, WriteError};
use crate::encoding::codec::DecodeError;
use crate::io::{AllocateError, CloseError, CreateError, OpenError, SyncError};
use crate::lock::LockError;
use crate::parameters::CREATE;
use crate::pool::PoolError;
use crate::recovery::{LogDamage, RecoveryError};
use crate::store::combinations::PolicyFitError;
use crate::store::entry::Structure;
use crate::store::error::backup::BackupError;
use crate::store::error::display::{count, only_fronts, shown, with_causes};
use crate::store::error::lab::LabError;
use crate::store::options::OptionsError;
use crate::txn::TxnError;
use crate::{hash_index, heap};

/// An error of a store or of something in it.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let refused = db.create_tree("ponds").and_then(|_| db.create_tree("ponds"));
/// match refused {
///     Err(Error::Exists { name, .. }) => assert_eq!(name, "ponds"),
///     other => panic!("{other:?}"),
/// }
/// # Ok(()) }
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Invalid options.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// Strategies of the laboratory cannot do this.
    #[doc(hidden)]
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The policy does not fit.
    #[error(transparent)]
    PolicyFit(#[from] PolicyFitError),
    /// The store could not be created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// The store could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The second tier cannot be used.
    #[error(transparent)]
    Tier(#[from] TierError),
    /// There is no store, and none is to be created.
    #[error("there is no store at {}: allow {CREATE}, or name another", path.display())]
    NoStore {
        /// Path of the missing store.
        path: PathBuf,
    },
    /// The data file of a store is missing or holds nothing, and another file of the store exists.
    #[error(
        "{} is missing or holds nothing, and {} beside it is {what}: put the data file back, or, if that \
         store is given up, move {} away",
        path.display(),
        beside.display(),
        beside.display()
    )]
    Remains {
        /// The data file.
        path: PathBuf,
        /// The file beside it.
        beside: PathBuf,
        /// Kind of that file.
        what: &'static str,
    },
    /// A file of the open store was deleted, renamed or replaced.
    #[error(
        "{} was deleted, renamed or replaced while the store was open, so what is stored goes to a \
         file without that name: put it back under its name, or write a backup to another path \
         before the store is closed",
        path.display()
    )]
    Displaced {
        /// Name under which the file was opened: the data file's, the log's, or that of the cache
        /// of a second tier that writes back.
        path: PathBuf,
    },
    /// The store could not be closed cleanly.
    #[error(transparent)]
    Close(#[from] CloseError),
    /// Transactions could not be undone when they were aborted.
    #[error(
        "{transactions} transactions could not be undone, so the store is not closed cleanly: open \
         it again, which undoes them"
    )]
    Unfinished {
        /// Number of transactions.
        transactions: usize,
    },
    /// The store cannot be closed by a closure that one of its calls runs.
    #[error(
        "the store cannot be closed by a closure that one of its calls runs ({} in use): let the \
         closure return first",
        count(*handles, "other handle")
    )]
    InUse {
        /// Number of handles.
        handles: usize,
    },
    /// The store was opened by the process of which this one is a fork.
    #[error(
        "this process is a fork of the one that opened the store, whose handles do nothing here: \
         open the store in this process, when the other one has closed it"
    )]
    Forked,
    /// The store was closed, by another handle of it.
    #[error("the store was closed: open it again, and its trees")]
    Closed,
    /// Writes may not be durable.
    #[error(transparent)]
    Sync(#[from] SyncError),
    /// The buffer pool failed, or the storage below it.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// An entry could not be written.
    #[error(transparent)]
    Write(WriteError),
    /// An entry could not be written into a hash index.
    #[error(transparent)]
    HashWrite(hash_index::WriteError),
    /// A record could not be written into a heap.
    #[error(transparent)]
    HeapWrite(heap::WriteError),
    /// A value could not be streamed.
    #[error(transparent)]
    Stream(StreamError),
    /// A bulk load failed.
    #[error(transparent)]
    Bulk(#[from] BulkError),
    /// A key or value is not of the type that it is read as.
    #[error("in '{tree}'{}: {error}", key.as_deref().map_or_else(String::new, shown))]
    Decode {
        /// The tree, hash index or heap.
        tree: String,
        /// The encoded key of the entry, where it is known.
        key: Option<Vec<u8>>,
        /// The decoding error.
        error: DecodeError,
    },
    /// There is no tree of that name.
    #[error("there is no tree '{name}': create it, or see the list of trees")]
    NoTree {
        /// The name.
        name: String,
    },
    /// There is no hash index, or no heap, of that name.
    #[error("there is no {wanted} '{name}': create it, or see the list of trees")]
    NoStructure {
        /// The name.
        name: String,
        /// The requested kind.
        wanted: Structure,
    },
    /// The name is taken.
    #[error("'{name}' exists already: open it, or choose another name")]
    Exists {
        /// The name.
        name: String,
    },
    /// The name belongs to something else.
    #[error("'{name}' is a {found}, not a {wanted}")]
    OtherKind {
        /// The name.
        name: String,
        /// The actual kind.
        found: Structure,
        /// The requested kind.
        wanted: Structure,
    },
    /// A structure was created with keys or values of another type.
    #[error(
        "'{name}' has {what} of type {found}, not {wanted}{}: open it with the types that it was created \
         with, or as byte strings (`raw_tree`)",
        only_fronts(found, wanted)
    )]
    OtherType {
        /// The name.
        name: String,
        /// Keys or values, whichever differ.
        what: &'static str,
        /// The actual type.
        found: String,
        /// The requested type.
        wanted: String,
    },
    /// A value cannot be written as what it is to be written as.
    #[error("a value of type {type_name} cannot be encoded: {reason}")]
    Encode {
        /// The Rust type.
        type_name: &'static str,
        /// The reason of the refusal.
        reason: String,
    },
    /// Handles of it are alive.
    #[error("'{name}' is in use by {}, to be dropped first", count(*handles, "handle"))]
    TreeInUse {
        /// The name.
        name: String,
        /// Number of handles.
        handles: usize,
    },
    /// The name is empty or too long.
    #[error("a name of {len} bytes is invalid: names have 1 to {max} bytes")]
    Name {
        /// Length of the name in bytes.
        len: usize,
        /// Most bytes of a name in this store.
        max: usize,
    },
    /// A transaction cannot go on.
    #[error(transparent)]
    Txn(TxnError),
    /// The store could not be recovered after its process or machine had stopped.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// The log is damaged before its end, or in what recovery begins with.
    #[error("{0}")]
    LogDamaged(Box<LogDamage>),
    /// A record of a transaction that has to be undone does not say how.
    #[error(
        "the record at position {} of the log, by transaction {tx}, does not say how it is undone: \
         restore a backup, or read what is intact with `millpond dump --salvage`",
        at.0
    )]
    NoUndo {
        /// Position at which the record begins.
        at: Lsn,
        /// The transaction.
        tx: u64,
    },
    /// The store was not closed, and its log is not there.
    #[error(
        "{} is missing or empty, and the store beside it was not shut down: put the log back; without it, \
         `millpond dump --salvage` reads what is intact",
        path.display()
    )]
    LogMissing {
        /// Expected path of the log.
        path: PathBuf,
    },
    /// The store's file could not be made shorter.
    #[error(transparent)]
    Length(#[from] AllocateError),
    /// There is no backup.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The store has no log.
    #[error("{} has no log: it was opened last without one", path.display())]
    NoLog {
        /// The store.
        path: PathBuf,
    },
    /// The file of the store's log is not there.
    #[error(
        "{} has no log at {}: a store that was closed needs none and gets a new one when it is \
         opened for writing; one that was not closed needs the log that was beside it",
        path.display(),
        log.display()
    )]
    NoLogFile {
        /// The store.
        path: PathBuf,
        /// Path that the log would have.
        log: PathBuf,
    },
    /// A log that is not needed any more is in the way of a new one.
    #[error("the old log {} cannot be removed ({reason}): remove it", path.display())]
    OldLog {
        /// The file.
        path: PathBuf,
        /// The operating system's message.
        reason: String,
    },
    /// The store has a log, and was not closed: it must be recovered.
    #[error(
        "{} was not shut down, and has a log: open it with its log and for writing, which recovers \
         it (`millpond recover`); `millpond dump --salvage` reads what is intact without",
        path.display()
    )]
    MustRecover {
        /// The store.
        path: PathBuf,
    },
    /// A tree of another store.
    #[error("'{name}' is a tree of another store than the transaction's")]
    OtherStore {
        /// The tree.
        name: String,
    },
    /// The store is open for reading.
    #[error("the store is open for reading only")]
    ReadOnly,
    /// The catalog holds something that this version does not know.
    #[error("the catalog's entry '{name}' cannot be read ({reason}): run `check` on the store")]
    Catalog {
        /// Name of the entry.
        name: String,
        /// The fault.
        reason: &'static str,
    },
}

/// Like [`Display`](fmt::Display), with the causes that it omits: a `main` that returns an error
/// prints it in this form.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&with_causes(self))
    }
}

impl Error {
    /// Returns whether the call would have waited for the transaction whose closure it is made in.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.tree::<String, u32>("ponds")?;
    /// db.transact(|tx| {
    ///     tx.tree(&ponds).put("mill", &7)?;
    ///     assert!(ponds.put("mill", &8).is_err_and(|error| error.is_own_transaction()));
    ///     Ok::<(), Error>(())
    /// })?;
    /// # Ok(()) }
    /// ```
    pub fn is_own_transaction(&self) -> bool {
        let is_own = |error: &LockError| matches!(error, LockError::OwnTransaction { .. });
        matches!(self, Error::Txn(TxnError::Lock(error)) if is_own(error))
    }

    /// Returns `true` if a lock timed out: its owner keeps it, or forgot to release it.
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
    /// assert!(tx.tree(&counts).put(&7, &2).is_err_and(|error| error.is_timeout()));
    /// # Ok(()) }
    /// ```
    pub fn is_timeout(&self) -> bool {
        matches!(self, Error::Txn(error) if error.is_timeout())
    }

    /// Returns whether it lost in a deadlock.
    pub(crate) fn is_deadlock(&self) -> bool {
        matches!(self, Error::Txn(error) if error.is_deadlock())
    }

    /// Returns whether the same transaction may succeed if it is restarted: it lost in a deadlock,
    /// waited for a lock for too long, or others have most of the memory or room that it needs. Of
    /// a snapshot: whether another one may succeed.
    ///
    /// [`Error::is_own_transaction`] is not one of these: within the closure another try would fail
    /// as well.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let counts = db.tree::<u32, u64>("counts")?;
    /// // What `transact` does: another try for a transaction that lost.
    /// loop {
    ///     let tx = db.begin()?;
    ///     match tx.tree(&counts).put(&7, &1).and_then(|_| tx.commit()) {
    ///         Err(error) if error.is_retriable() => {}
    ///         other => break other?,
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn is_retriable(&self) -> bool {
        matches!(self, Error::Txn(error) if error.is_retriable())
    }
}
