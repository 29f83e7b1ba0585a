//! Transactions in the public API.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::api::db::Db;
use crate::api::hash_index::HashIndex;
use crate::api::heap::Heap;
use crate::api::pending_commit::PendingCommit;
use crate::api::strategy::*;
use crate::api::tree::Tree;
use crate::encoding::key::Key;
use crate::encoding::value::Value;
use crate::lock::this_thread;
use crate::store::error::Error;
use crate::store::store_txn::StoreTxn;
use crate::txn::{Savepoint, TxnError, TxnOptions};
use millpond_base::PastPoison;

/// A transaction: it sees the store as if it were alone, and its changes appear all at once when it
/// commits, or not at all. It locks the entries that it reads and writes, and waits for a lock that
/// another transaction holds. [`Txn::tree`] returns its trees, which have the methods of a
/// [`Tree`](crate::Tree).
///
/// A transaction that is dropped is aborted. It is a value, not tied to a thread: it can be sent to
/// another thread, and threads that share it make their calls one after the other. A call outside
/// it that needs one of its locks waits for it, on any thread. In the closure of [`Db::transact`]
/// such a call would wait for the closure itself, so it fails at once
/// ([`LockError::OwnTransaction`]).
///
/// [`LockError::OwnTransaction`]: crate::lock::LockError::OwnTransaction
///
/// ```
/// use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let accounts = db.tree::<String, u64>("accounts")?;
/// accounts.put("heron", &100)?;
/// let tx = db.begin()?;
/// let inside = tx.tree(&accounts);
/// inside.put("heron", &70)?;
/// inside.put("otter", &30)?;
/// tx.commit()?;
/// assert_eq!(accounts.get("otter")?, Some(30));
/// # Ok(()) }
/// ```
pub struct Txn {
    id: u64,
    txn: Mutex<DbTxn>,
    /// Number of the thread that is in a call; 0 between calls.
    caller: AtomicU64,
    /// The [`Outcome`] of the last call.
    outcome: AtomicU8,
    /// Number of calls that have written. Entries read ahead before one of them may have changed.
    writes: AtomicU64,
}

/// The outcome of a transaction's last call, which decides about a retry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Outcome {
    /// A retry would change nothing.
    Settled,
    /// The transaction lost in a deadlock, or others had most of the memory or room for it.
    Victim,
    /// The transaction waited for a lock for too long.
    TimedOut,
}

impl Outcome {
    pub(crate) fn of(error: &Error) -> Outcome {
        match (error.is_timeout(), error.is_retriable()) {
            (true, _) => Outcome::TimedOut,
            (false, true) => Outcome::Victim,
            (false, false) => Outcome::Settled,
        }
    }
}

/// A call in progress, with exclusive access to the transaction.
struct Call<'t> {
    txn: MutexGuard<'t, DbTxn>,
    caller: &'t AtomicU64,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.caller.store(0, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Txn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Txn").field("id", &self.id()).finish_non_exhaustive()
    }
}

impl Db {
    /// Begins a transaction, with the durability of the store's options.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.tree::<String, u32>("ponds")?;
    /// let tx = db.begin()?;
    /// tx.tree(&ponds).put("mill", &7)?;
    /// tx.abort()?;
    /// assert!(ponds.is_empty()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The store is open for reading only, or runs with strategies without transactions.
    pub fn begin(&self) -> Result<Txn, Error> {
        self.begin_with(TxnOptions::default().durability(self.durability()))
    }

    /// Begins a transaction with these options.
    ///
    /// ```
    /// # use millpond::{Db, Durability, Error, Options, TxnOptions};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let tx = db.begin_with(TxnOptions::default().durability(Durability::Async))?;
    /// tx.commit()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Db::begin`].
    pub fn begin_with(&self, options: TxnOptions) -> Result<Txn, Error> {
        let txn = StoreTxn::begin(self.store(), options)?;
        Ok(Txn {
            id: txn.id(),
            txn: Mutex::new(txn),
            caller: AtomicU64::new(0),
            outcome: AtomicU8::new(Outcome::Settled as u8),
            writes: AtomicU64::new(0),
        })
    }
}

impl Txn {
    /// Gets exclusive access to the transaction until the call is over. Another thread's call
    /// waits.
    ///
    /// # Errors
    /// [`TxnError::Nested`]: this thread is in a call of the transaction.
    #[inline]
    fn enter(&self) -> Result<Call<'_>, TxnError> {
        let thread = this_thread();
        // Only this thread stores its own number there.
        if self.caller.load(Ordering::Relaxed) == thread {
            return Err(TxnError::Nested);
        }
        let txn = self.txn.lock().past_poison();
        self.caller.store(thread, Ordering::Relaxed);
        Ok(Call { txn, caller: &self.caller })
    }

    /// Runs a call.
    #[inline]
    pub(crate) fn call<R>(
        &self,
        work: impl FnOnce(&mut DbTxn) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let done = work(&mut self.enter()?.txn);
        let outcome = match &done {
            Ok(_) => Outcome::Settled,
            Err(error) => Outcome::of(error),
        };
        self.outcome.store(outcome as u8, Ordering::Relaxed);
        done
    }

    /// Runs a call that writes.
    #[inline]
    pub(crate) fn writing<R>(
        &self,
        work: impl FnOnce(&mut DbTxn) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.call(|txn| {
            // Within the call, so that a range of another thread reads the new entries afterwards.
            self.writes.fetch_add(1, Ordering::Relaxed);
            work(txn)
        })
    }

    /// Ties the transaction to the calling thread, which runs a closure in it. A call outside the
    /// transaction that would wait for one of its locks then fails. For `transact`, here and in
    /// other languages.
    #[doc(hidden)]
    pub fn claim_thread(&self) {
        if let Ok(mut call) = self.enter() {
            call.txn.claim_thread();
        }
    }

    /// Unties the transaction from its thread.
    #[doc(hidden)]
    pub fn leave_thread(&self) {
        if let Ok(mut call) = self.enter() {
            call.txn.leave_thread();
        }
    }

    /// Returns the outcome of the last call.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.outcome.load(Ordering::Relaxed) {
            outcome if outcome == Outcome::Victim as u8 => Outcome::Victim,
            outcome if outcome == Outcome::TimedOut as u8 => Outcome::TimedOut,
            _ => Outcome::Settled,
        }
    }

    /// Returns the number of calls that have written.
    pub(crate) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    fn into_inner(self) -> DbTxn {
        self.txn.into_inner().past_poison()
    }

    /// Returns `tree` as the transaction reads and writes it. The handle is cheap, and a
    /// transaction may have several at once.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let by_id = db.tree::<u64, String>("by id")?;
    /// let by_name = db.tree::<String, u64>("by name")?;
    /// let tx = db.begin()?;
    /// tx.tree(&by_id).put(&7, "Ada")?;
    /// tx.tree(&by_name).put("Ada", &7)?;
    /// tx.commit()?;
    /// # Ok(()) }
    /// ```
    pub fn tree<'t, K: Key, V: Value>(&'t self, tree: &'t Tree<K, V>) -> Tree<K, V, &'t Txn> {
        Tree::new(tree.handle(), self)
    }

    /// Returns `index` as the transaction reads and writes it.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<String, u64>("sessions")?;
    /// let tx = db.begin()?;
    /// tx.hash_index(&sessions).put("4f1c", &17)?;
    /// tx.abort()?;
    /// assert_eq!(sessions.get("4f1c")?, None);
    /// # Ok(()) }
    /// ```
    pub fn hash_index<'t, K: Key, V: Value>(
        &'t self,
        index: &'t HashIndex<K, V>,
    ) -> HashIndex<K, V, &'t Txn> {
        HashIndex::new(index.handle(), self)
    }

    /// Returns `heap` as the transaction reads and writes it.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let people = db.heap::<String>("people")?;
    /// let by_name = db.tree::<String, u64>("people by name")?;
    /// let tx = db.begin()?;
    /// let ada = tx.heap(&people).append("Ada Lovelace, mathematician")?;
    /// tx.tree(&by_name).put("Ada", &ada.0)?;
    /// tx.commit()?;
    /// assert!(people.get(ada)?.is_some());
    /// # Ok(()) }
    /// ```
    pub fn heap<'t, V: Value>(&'t self, heap: &'t Heap<V>) -> Heap<V, &'t Txn> {
        Heap::new(heap.handle(), self)
    }

    /// Returns the transaction's id.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let (first, second) = (db.begin()?, db.begin()?);
    /// assert!(first.id() < second.id());
    /// # Ok(()) }
    /// ```
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns a savepoint, to which the transaction can roll back.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.tree::<String, u32>("ponds")?;
    /// let mut tx = db.begin()?;
    /// tx.tree(&ponds).put("mill", &7)?;
    /// let before = tx.savepoint()?;
    /// tx.tree(&ponds).put("weir", &8)?;
    /// tx.rollback_to(&before)?;
    /// tx.commit()?;
    /// assert_eq!(ponds.len()?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`TxnError::Nested`]: called by the closure of an update in place.
    pub fn savepoint(&self) -> Result<Savepoint, Error> {
        Ok(self.enter()?.txn.savepoint())
    }

    /// Undoes all changes since `savepoint`, which remains valid. Locks are kept.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.tree::<String, u32>("ponds")?;
    /// let mut tx = db.begin()?;
    /// let before = tx.savepoint()?;
    /// tx.tree(&ponds).put("mill", &7)?;
    /// tx.rollback_to(&before)?;
    /// assert_eq!(tx.tree(&ponds).get("mill")?, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The savepoint belongs to another transaction, or was removed with an earlier one; or the
    /// store failed.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<(), Error> {
        self.writing(|txn| txn.rollback_to(savepoint))
    }

    /// Commits the transaction: its changes stay, with the durability that its options ask for.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.tree::<String, u32>("ponds")?;
    /// let tx = db.begin()?;
    /// tx.tree(&ponds).put("mill", &7)?;
    /// tx.commit()?;
    /// assert_eq!(ponds.get("mill")?, Some(7));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The log failed: the next opening of the store shows if the transaction is durable. Until
    /// then this process reads its changes as committed.
    pub fn commit(self) -> Result<(), Error> {
        self.into_inner().commit()
    }

    /// Commits the transaction and returns before that is durable: nothing waits for the disk until
    /// the [`PendingCommit`] is waited for. Other transactions read the changes from now on. The
    /// commit becomes durable soon, whatever durability the transaction's options ask for.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.tree::<String, u32>("ponds")?;
    /// let tx = db.begin()?;
    /// tx.tree(&ponds).put("mill", &7)?;
    /// let commit = tx.commit_async()?;
    /// assert_eq!(ponds.get("mill")?, Some(7));
    /// commit.wait()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The transaction is not committed. Errors of the disk are those of the [`PendingCommit`].
    pub fn commit_async(self) -> Result<PendingCommit, Error> {
        let (commit, ended) = PendingCommit::new();
        self.into_inner().commit_async(ended)?;
        Ok(commit)
    }

    /// Aborts the transaction: its changes are undone.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.tree::<String, u32>("ponds")?;
    /// let tx = db.begin()?;
    /// tx.tree(&ponds).put("mill", &7)?;
    /// tx.abort()?;
    /// assert_eq!(ponds.get("mill")?, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The store failed. Opening it again undoes the transaction.
    pub fn abort(self) -> Result<(), Error> {
        self.into_inner().abort()
    }
}
