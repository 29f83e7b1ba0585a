//! Transactions as users see them.

use std::ops::{Bound, RangeBounds};
use std::time::{Duration, Instant};

use crate::api::any::*;
use crate::api::db::Db;
use crate::api::raw_tree::{RawEntry, RawTree};
use crate::api::tree::Tree;
use crate::btree::{WriteCondition, WriteOutcome};
use crate::encoding::key::Key;
use crate::encoding::value::Value;
use crate::store::error::Error;
use crate::store::store_txn::StoreTxn;
use crate::txn::{Savepoint, TxnOptions};

/// How long [`Db::transact`] begins a transaction anew, unless told.
const RETRY_TIME: Duration = Duration::from_secs(10);

/// How [`Db::transact_with`] runs a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TransactOptions {
    /// How each of its transactions shall be; `None`: as [`Db::begin`] begins them.
    pub txn: Option<TxnOptions>,
    /// How long a transaction that gave way to others is begun anew: none is begun later than this
    /// after the call; 10 s unless told. Zero: there is one try.
    pub retry_time: Duration,
    /// Whether a transaction is begun anew, too, if it waited for a lock for as long as it may;
    /// not unless told: whoever keeps a lock for that long is likely to keep it for longer.
    pub retry_timeouts: bool,
}

impl Default for TransactOptions {
    fn default() -> TransactOptions {
        TransactOptions { txn: None, retry_time: RETRY_TIME, retry_timeouts: false }
    }
}

impl TransactOptions {
    /// With transactions that are as these options say.
    #[must_use]
    pub fn txn(self, txn: TxnOptions) -> TransactOptions {
        TransactOptions { txn: Some(txn), ..self }
    }

    /// Beginning anew for so long.
    #[must_use]
    pub fn retry_time(self, retry_time: Duration) -> TransactOptions {
        TransactOptions { retry_time, ..self }
    }

    /// Beginning anew, or not, after a lock was waited for too long.
    #[must_use]
    pub fn retry_timeouts(self, retry_timeouts: bool) -> TransactOptions {
        TransactOptions { retry_timeouts, ..self }
    }
}

/// A transaction: it sees the store as if it were alone, and its changes appear all at once, when
/// it commits, or not at all. It locks what it reads and writes; a lock that somebody else holds is
/// waited for.
///
/// A transaction that is dropped is aborted. It belongs to one thread at a time: the one that used
/// it last. A call of that thread that needs one of its locks and is not made through it, a plain
/// [`RawTree::put`](crate::RawTree::put) or another transaction's, fails at once,
/// because it would wait for itself ([`LockError::OwnTransaction`]). Whoever gives a transaction to
/// another thread, and goes on with the same keys, says so with [`Txn::leave_thread`].
///
/// [`LockError::OwnTransaction`]: crate::lock::LockError::OwnTransaction
///
/// ```
/// use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let accounts = db.raw_tree("accounts")?;
/// accounts.put(b"heron", b"100")?;
/// let mut tx = db.begin()?;
/// tx.put(&accounts, b"heron", b"70")?;
/// tx.put(&accounts, b"otter", b"30")?;
/// tx.commit()?;
/// assert_eq!(accounts.get(b"otter")?.as_deref(), Some(&b"30"[..]));
/// # Ok(()) }
/// ```
pub struct Txn {
    any: AnyTxn,
}

impl std::fmt::Debug for Txn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Txn").field("id", &self.id()).finish_non_exhaustive()
    }
}

/// Evaluates `$body` for a transaction and a tree of the same combination.
macro_rules! of_tree {
    ($txn:expr, $tree:expr, $tx:ident, $held:ident => $body:expr) => {
        both!(
            (AnyTxn, &mut $txn.any, $tx), (AnyTree, $tree.any(), $held) => $body,
            else Err(Error::OtherStore { name: $tree.name().to_string() })
        )
    };
}

impl Db {
    /// Begins a transaction, with the durability of the store's options.
    ///
    /// # Errors
    /// The store is open for reading only, or runs with strategies without transactions.
    pub fn begin(&self) -> Result<Txn, Error> {
        self.begin_with(TxnOptions::default().durability(self.durability()))
    }

    /// Begins a transaction that is as `options` say.
    ///
    /// # Errors
    /// As [`Db::begin`].
    pub fn begin_with(&self, options: TxnOptions) -> Result<Txn, Error> {
        let any = turn!(AnyStore => AnyTxn, self.any(), store => StoreTxn::begin(store, options)?);
        Ok(Txn { any })
    }

    /// Runs `work` in a transaction, and commits it; if it had to give way to others, in another
    /// one, for 10 s. If `work` fails, the transaction is aborted, and its error is the answer.
    ///
    /// `work` reads and writes through the transaction that it is given. What it does to the same
    /// keys by plain calls is no part of the transaction, and fails at once.
    ///
    /// ```
    /// use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let counts = db.tree::<u32, u64>("counts")?;
    /// let count = db.transact(|tx| {
    ///     let count = tx.get_typed(&counts, &7)?.unwrap_or(0) + 1;
    ///     tx.put_typed(&counts, &7, &count)?;
    ///     Ok::<_, Error>(count)
    /// })?;
    /// assert_eq!(count, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What `work` failed with, or the commit.
    pub fn transact<R>(&self, work: impl FnMut(&mut Txn) -> Result<R, Error>) -> Result<R, Error> {
        self.transact_with(TransactOptions::default(), work)
    }

    /// As [`Db::transact`], in the way that `options` say.
    ///
    /// # Errors
    /// As [`Db::transact`].
    pub fn transact_with<R>(
        &self,
        options: TransactOptions,
        mut work: impl FnMut(&mut Txn) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let begun = Instant::now();
        loop {
            let mut tx = match options.txn {
                Some(txn) => self.begin_with(txn)?,
                None => self.begin()?,
            };
            let done = match work(&mut tx) {
                Ok(done) => tx.commit().map(|()| done),
                Err(error) => tx.abort().and(Err(error)),
            };
            let is_worth_it = |error: &Error| {
                error.is_retriable() && (options.retry_timeouts || !error.is_timeout())
            };
            match done {
                Err(error) if is_worth_it(&error) && begun.elapsed() < options.retry_time => {
                    // The one that it gave way to is to come first.
                    std::thread::yield_now();
                }
                done => return done,
            }
        }
    }
}

impl Txn {
    /// Its id.
    pub fn id(&self) -> u64 {
        each!(AnyTxn, &self.any, tx => tx.id())
    }

    /// Another thread goes on with the transaction. Until it does, this thread waits for the
    /// transaction's locks as for anybody's.
    pub fn leave_thread(&mut self) {
        each!(AnyTxn, &mut self.any, tx => tx.leave_thread());
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// A lock was not to be had ([`Error::is_retriable`]), or the store failed; so for everything
    /// that reads.
    pub fn get(&mut self, tree: &RawTree, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.get_with(tree, key, |value| value.to_vec())
    }

    /// Hands a copy of the value of `key` to `f`, and answers with what comes out.
    ///
    /// # Errors
    /// As [`Txn::get`].
    pub fn get_with<R>(
        &mut self,
        tree: &RawTree,
        key: &[u8],
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        let (mut f, mut result) = (Some(f), None);
        let found = self.look(tree, key, &mut |value| {
            if let Some(f) = f.take() {
                result = Some(f(value));
            }
        })?;
        Ok(result.filter(|_| found))
    }

    fn look(
        &mut self,
        tree: &RawTree,
        key: &[u8],
        f: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        of_tree!(self, tree, tx, tree => Ok(tx.get(tree, key, f)?.is_some()))
    }

    /// Whether there is such a key.
    ///
    /// # Errors
    /// As [`Txn::get`].
    pub fn contains(&mut self, tree: &RawTree, key: &[u8]) -> Result<bool, Error> {
        self.look(tree, key, &mut |_| ())
    }

    /// The value of `key`, which is locked as if it were written: for what is read to be changed.
    /// Two transactions that only read at first, and then both write, end in a deadlock.
    ///
    /// # Errors
    /// As [`Txn::get`].
    pub fn get_for_update(&mut self, tree: &RawTree, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        of_tree!(self, tree, tx, tree => tx.lock(tree, key))?;
        self.get(tree, key)
    }

    fn write(
        &mut self,
        tree: &RawTree,
        key: &[u8],
        value: Option<&[u8]>,
        condition: WriteCondition<'_>,
    ) -> Result<WriteOutcome, Error> {
        of_tree!(self, tree, tx, tree => tx.write(tree, key, value, condition))
    }

    /// Inserts an entry or replaces the value of one; answers whether there was one.
    ///
    /// # Errors
    /// As [`Txn::get`], or a key or value that is too long; so for everything that writes.
    pub fn put(&mut self, tree: &RawTree, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        Ok(self.write(tree, key, Some(value), WriteCondition::Always)?.existed)
    }

    /// Inserts an entry; `false`, and nothing changed, if the key is there already.
    ///
    /// # Errors
    /// As [`Txn::put`].
    pub fn insert_if_absent(
        &mut self,
        tree: &RawTree,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool, Error> {
        Ok(self.write(tree, key, Some(value), WriteCondition::Absent)?.applied)
    }

    /// Replaces the value of a key; `false`, and nothing changed, if the key is not there.
    ///
    /// # Errors
    /// As [`Txn::put`].
    pub fn replace(&mut self, tree: &RawTree, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        Ok(self.write(tree, key, Some(value), WriteCondition::Present)?.applied)
    }

    /// Removes an entry; answers whether there was one.
    ///
    /// # Errors
    /// As [`Txn::put`].
    pub fn delete(&mut self, tree: &RawTree, key: &[u8]) -> Result<bool, Error> {
        Ok(self.write(tree, key, None, WriteCondition::Present)?.applied)
    }

    /// Hands the entries of a range of keys to `f`, in order, until it answers `false`. The whole
    /// range is locked: nobody adds to it or changes it before the transaction's end.
    ///
    /// # Errors
    /// As [`Txn::get`].
    pub fn scan<'k>(
        &mut self,
        tree: &RawTree,
        range: impl RangeBounds<&'k [u8]>,
        mut f: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        let bounds = (range.start_bound().map(|key| *key), range.end_bound().map(|key| *key));
        self.scan_bounds(tree, bounds, &mut f)
    }

    fn scan_bounds(
        &mut self,
        tree: &RawTree,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        f: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        of_tree!(self, tree, tx, tree => tx.scan(tree, bounds, f))
    }

    /// As [`Txn::scan`], from the last key to the first.
    ///
    /// # Errors
    /// As [`Txn::get`].
    pub fn scan_back<'k>(
        &mut self,
        tree: &RawTree,
        range: impl RangeBounds<&'k [u8]>,
        mut f: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        let bounds = (range.start_bound().map(|key| *key), range.end_bound().map(|key| *key));
        self.scan_bounds_back(tree, bounds, &mut f)
    }

    fn scan_bounds_back(
        &mut self,
        tree: &RawTree,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        f: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        of_tree!(self, tree, tx, tree => tx.scan_back(tree, bounds, f))
    }

    /// The entries of a range of keys.
    ///
    /// # Errors
    /// As [`Txn::get`].
    pub fn range<'k>(
        &mut self,
        tree: &RawTree,
        range: impl RangeBounds<&'k [u8]>,
    ) -> Result<Vec<RawEntry>, Error> {
        let mut all = Vec::new();
        self.scan(tree, range, |key, value| {
            all.push((key.to_vec(), value.to_vec()));
            true
        })?;
        Ok(all)
    }

    /// The value of `key` in a tree with types.
    ///
    /// # Errors
    /// As [`Txn::get`], or [`Error::Decode`].
    pub fn get_typed<K: Key, V: Value>(
        &mut self,
        tree: &Tree<K, V>,
        key: &K,
    ) -> Result<Option<V>, Error> {
        let decode = |bytes: &[u8]| V::decode(bytes);
        let found = self.get_with(tree.raw(), &key.to_key_bytes(), decode)?.transpose();
        found.map_err(|error| Error::Decode { tree: tree.raw().name().to_string(), error })
    }

    /// As [`Txn::put`], in a tree with types.
    ///
    /// # Errors
    /// As [`Txn::put`].
    pub fn put_typed<K: Key, V: Value>(
        &mut self,
        tree: &Tree<K, V>,
        key: &K,
        value: &V,
    ) -> Result<bool, Error> {
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        self.put(tree.raw(), &key.to_key_bytes(), &bytes)
    }

    /// As [`Txn::delete`], in a tree with types.
    ///
    /// # Errors
    /// As [`Txn::put`].
    pub fn delete_typed<K: Key, V: Value>(
        &mut self,
        tree: &Tree<K, V>,
        key: &K,
    ) -> Result<bool, Error> {
        self.delete(tree.raw(), &key.to_key_bytes())
    }

    /// A moment that the transaction can go back to.
    pub fn savepoint(&self) -> Savepoint {
        each!(AnyTxn, &self.any, tx => tx.savepoint())
    }

    /// Takes back what was changed since `savepoint`, which remains. Locks are kept.
    ///
    /// # Errors
    /// The savepoint is another transaction's, or gone with an earlier one; or the store failed.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<(), Error> {
        each!(AnyTxn, &mut self.any, tx => tx.rollback_to(savepoint))
    }

    /// Ends the transaction; its changes stay, as durable as was asked for.
    ///
    /// # Errors
    /// The log failed: whether the transaction is durable shows when the store is opened again.
    pub fn commit(self) -> Result<(), Error> {
        each!(AnyTxn, self.any, tx => tx.commit())
    }

    /// Ends the transaction as if it had never been.
    ///
    /// # Errors
    /// The store failed. It must be opened again, and undoes the transaction then.
    pub fn abort(self) -> Result<(), Error> {
        each!(AnyTxn, self.any, tx => tx.abort())
    }
}
