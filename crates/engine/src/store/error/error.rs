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
    /// The laboratory's strategies cannot do this.
    #[doc(hidden)]
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The policy does not fit the combination.
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
    /// The store does not exist, and the options do not create it.
    #[error("there is no store at {}: allow {CREATE}, or name another", path.display())]
    NoStore {
        /// Path of the missing store.
        path: PathBuf,
    },
    /// The data file of a store is missing or empty, and another file of the store exists.
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
        /// Former name of the file: of the data, the log, or the cache of a second tier that writes
        /// back.
        path: PathBuf,
    },
    /// The store could not be closed cleanly.
    #[error(transparent)]
    Close(#[from] CloseError),
    /// Transactions could not be rolled back when they were aborted.
    #[error(
        "{transactions} transactions could not be undone, so the store is not closed cleanly: open \
         it again, which undoes them"
    )]
    Unfinished {
        /// Number of transactions.
        transactions: usize,
    },
    /// A closure run by one of the store's calls tried to close it.
    #[error(
        "the store cannot be closed by a closure that one of its calls runs ({} in use): let the \
         closure return first",
        count(*handles, "other handle")
    )]
    InUse {
        /// Number of handles.
        handles: usize,
    },
    /// This process is a fork of the one that opened the store.
    #[error(
        "this process is a fork of the one that opened the store, whose handles do nothing here: \
         open the store in this process, when the other one has closed it"
    )]
    Forked,
    /// The store was closed through another handle.
    #[error("the store was closed: open it again, and its trees")]
    Closed,
    /// Writes may not be durable.
    #[error(transparent)]
    Sync(#[from] SyncError),
    /// The buffer pool or the storage below it failed.
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
    /// A key or value cannot be decoded as the requested type.
    #[error("in '{tree}'{}: {error}", key.as_deref().map_or_else(String::new, shown))]
    Decode {
        /// The tree, hash index or heap.
        tree: String,
        /// Encoded key of the entry, if it is known.
        key: Option<Vec<u8>>,
        /// The decoding error.
        error: DecodeError,
    },
    /// The tree does not exist.
    #[error("there is no tree '{name}': create it, or see the list of trees")]
    NoTree {
        /// The name.
        name: String,
    },
    /// The hash index or heap does not exist.
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
    /// The name belongs to a structure of another kind.
    #[error("'{name}' is a {found}, not a {wanted}")]
    OtherKind {
        /// The name.
        name: String,
        /// The actual kind.
        found: Structure,
        /// The requested kind.
        wanted: Structure,
    },
    /// The structure was created with another type of keys or values.
    #[error(
        "'{name}' has {what} of type {found}, not {wanted}{}: open it with the types that it was created \
         with, or as byte strings (`raw_tree`)",
        only_fronts(found, wanted)
    )]
    OtherType {
        /// The name.
        name: String,
        /// The part that differs: keys or values.
        what: &'static str,
        /// The actual type.
        found: String,
        /// The requested type.
        wanted: String,
    },
    /// The value cannot be encoded.
    #[error("a value of type {type_name} cannot be encoded: {reason}")]
    Encode {
        /// The Rust type.
        type_name: &'static str,
        /// The reason of the refusal.
        reason: String,
    },
    /// The structure has open handles.
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
        /// Maximum bytes of a name in this store.
        max: usize,
    },
    /// The transaction cannot continue.
    #[error(transparent)]
    Txn(TxnError),
    /// The store could not be recovered after its process or machine had stopped.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// The log is damaged before its end, or in the part that recovery begins with.
    #[error("{0}")]
    LogDamaged(Box<LogDamage>),
    /// A record of a transaction that has to be undone lacks its undo.
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
    /// The store was not closed, and its log is missing.
    #[error(
        "{} is missing or empty, and the store beside it was not shut down: put the log back; without it, \
         `millpond dump --salvage` reads what is intact",
        path.display()
    )]
    LogMissing {
        /// Expected path of the log.
        path: PathBuf,
    },
    /// The store's file could not be cut.
    #[error(transparent)]
    Length(#[from] AllocateError),
    /// The backup failed.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The store has no log.
    #[error("{} has no log: it was opened last without one", path.display())]
    NoLog {
        /// Path of the store.
        path: PathBuf,
    },
    /// The file of the store's log is missing.
    #[error(
        "{} has no log at {}: a store that was closed needs none and gets a new one when it is \
         opened for writing; one that was not closed needs the log that was beside it",
        path.display(),
        log.display()
    )]
    NoLogFile {
        /// Path of the store.
        path: PathBuf,
        /// Expected path of the log.
        log: PathBuf,
    },
    /// An old, unneeded log is in the way of a new one.
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
        /// Path of the store.
        path: PathBuf,
    },
    /// The tree belongs to another store.
    #[error("'{name}' is a tree of another store than the transaction's")]
    OtherStore {
        /// The tree.
        name: String,
    },
    /// The store is open for reading only.
    #[error("the store is open for reading only")]
    ReadOnly,
    /// An entry of the catalog is unknown to this version.
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
    /// Returns `true` if the call would have waited for the transaction whose closure made it.
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

    /// Returns `true` if a lock timed out: its owner still uses it, or forgot to release it.
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

    /// Returns `true` if the transaction lost in a deadlock.
    pub(crate) fn is_deadlock(&self) -> bool {
        matches!(self, Error::Txn(error) if error.is_deadlock())
    }

    /// Returns `true` if the same transaction may succeed if it is restarted. It lost in a
    /// deadlock, waited too long for a lock, or others have most of the memory or room that it
    /// needs. For a snapshot: whether another one may succeed.
    ///
    /// Returns `false` for [`Error::is_own_transaction`]: within the closure another try would fail
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
