//! Transactions as users see them.

use std::ops::RangeBounds;

use crate::api::db::Db;
use crate::api::place::Place;
use crate::api::place::at::InTxn;
use crate::api::place::range::RawEntry;
use crate::api::place::txn_cell::TxnCell;
use crate::api::raw::hash_index::RawHashIndex;
use crate::api::raw::heap::RawHeap;
use crate::api::raw::tree::RawTree;
use crate::api::raw::tree_in::RawTxnTree;
use crate::api::typed::hash_index::HashIndex;
use crate::api::typed::heap::Heap;
use crate::api::typed::tree::Tree;
use crate::api::typed::tree_in::TxnTree;
use crate::encoding::key::Key;
use crate::encoding::value::Value;
use crate::store::error::Error;
use crate::store::store_txn::StoreTxn;
use crate::txn::{Savepoint, TxnOptions};

/// A transaction: it sees the store as if it were alone, and its changes appear all at once, when
/// it commits, or not at all. It locks what it reads and writes; a lock that another transaction
/// holds is waited for. [`Txn::tree`] gives its trees, which have the methods of a
/// [`Tree`](crate::Tree).
///
/// A transaction that is dropped is aborted. It belongs to one thread at a time: the one that used
/// it last. A call of that thread that needs one of its locks and is not made through it, a plain
/// [`RawTree::put`](crate::RawTree::put) or another transaction's, fails at once, because it would
/// wait for itself ([`LockError::OwnTransaction`]). A thread that hands a transaction to another
/// thread, and goes on with the same keys, calls [`Txn::leave_thread`] first.
///
/// [`LockError::OwnTransaction`]: crate::LockError::OwnTransaction
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
    cell: TxnCell,
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
    /// As [`Db::begin`].
    pub fn begin_with(&self, options: TxnOptions) -> Result<Txn, Error> {
        let txn = StoreTxn::begin(self.store(), options)?;
        let id = txn.id();
        Ok(Txn { id, cell: TxnCell::new(txn) })
    }
}

impl Txn {
    /// What its trees share.
    pub(crate) fn cell(&self) -> &TxnCell {
        &self.cell
    }

    /// Returns `tree` as the transaction reads and writes it. The handle is cheap, and several of
    /// one transaction are used side by side.
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
    pub fn tree<'t, K: Key, V: Value>(&'t self, tree: &'t Tree<K, V>) -> TxnTree<'t, K, V> {
        TxnTree::new(self.raw_tree(tree.raw()))
    }

    /// Returns a tree of byte strings as the transaction reads and writes it.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.raw_tree("ponds")?;
    /// let tx = db.begin()?;
    /// tx.raw_tree(&ponds).put(b"mill", b"deep")?;
    /// tx.commit()?;
    /// # Ok(()) }
    /// ```
    pub fn raw_tree<'t>(&'t self, tree: &'t RawTree) -> RawTxnTree<'t> {
        RawTxnTree::new(Place::Txn(&self.cell, tree.handle()))
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
        index: &HashIndex<K, V>,
    ) -> HashIndex<K, V, InTxn<'t>> {
        HashIndex::new(self.raw_hash_index(index.raw()))
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
    pub fn heap<'t, V: Value>(&'t self, heap: &Heap<V>) -> Heap<V, InTxn<'t>> {
        Heap::new(self.raw_heap(heap.raw()))
    }

    /// Returns a hash index of byte strings as the transaction reads and writes it.
    #[doc(hidden)]
    pub fn raw_hash_index<'t>(&'t self, index: &RawHashIndex) -> RawHashIndex<InTxn<'t>> {
        index.at(InTxn(&self.cell))
    }

    /// Returns a heap of byte strings as the transaction reads and writes it.
    #[doc(hidden)]
    pub fn raw_heap<'t>(&'t self, heap: &RawHeap) -> RawHeap<InTxn<'t>> {
        heap.at(InTxn(&self.cell))
    }

    /// Its id.
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

    /// Lets another thread go on with the transaction. Until it does, this thread waits for the
    /// transaction's locks as for anybody's.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.tree::<String, u32>("ponds")?;
    /// let mut tx = db.begin()?;
    /// tx.tree(&ponds).put("mill", &7)?;
    /// tx.leave_thread();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| tx.commit());
    ///     // Waits for the other thread's commit.
    ///     ponds.put("mill", &8)
    /// })?;
    /// # Ok(()) }
    /// ```
    pub fn leave_thread(&mut self) {
        self.cell.get_mut().leave_thread();
    }

    /// Releases the transaction from its thread while ranges that read in it exist. A call from
    /// within one of the transaction's own calls does nothing.
    #[doc(hidden)]
    pub fn release_thread(&self) {
        self.cell.release_thread();
    }

    /// Returns a moment that the transaction can go back to.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.tree::<String, u32>("ponds")?;
    /// let mut tx = db.begin()?;
    /// tx.tree(&ponds).put("mill", &7)?;
    /// let before = tx.savepoint();
    /// tx.tree(&ponds).put("weir", &8)?;
    /// tx.rollback_to(&before)?;
    /// tx.commit()?;
    /// assert_eq!(ponds.len()?, 1);
    /// # Ok(()) }
    /// ```
    pub fn savepoint(&self) -> Savepoint {
        self.cell.savepoint()
    }

    /// Undoes what was changed since `savepoint`, which remains. Locks are kept.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.tree::<String, u32>("ponds")?;
    /// let mut tx = db.begin()?;
    /// let before = tx.savepoint();
    /// tx.tree(&ponds).put("mill", &7)?;
    /// tx.rollback_to(&before)?;
    /// assert_eq!(tx.tree(&ponds).get("mill")?, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The savepoint is another transaction's, or gone with an earlier one; or the store failed.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<(), Error> {
        self.cell.rollback_to(savepoint)
    }

    /// Commits the transaction: its changes stay, as durable as its options ask for.
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
    /// The log failed: whether the transaction is durable shows when the store is opened again.
    /// Until then this process reads its changes, as those of all that was committed.
    pub fn commit(self) -> Result<(), Error> {
        self.cell.into_inner().commit()
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
    /// The store failed. It must be opened again, and undoes the transaction then.
    pub fn abort(self) -> Result<(), Error> {
        self.cell.into_inner().abort()
    }
}

/// The same calls without the handle of a tree in between, for tests and measurements.
#[doc(hidden)]
#[allow(missing_docs, clippy::missing_errors_doc, reason = "RawTxnTree documents them")]
impl Txn {
    pub fn get(&mut self, tree: &RawTree, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.raw_tree(tree).get(key)
    }

    pub fn get_with<R>(
        &mut self,
        tree: &RawTree,
        key: &[u8],
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        self.raw_tree(tree).look_with(key, f)
    }

    pub fn get_for_update(&mut self, tree: &RawTree, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.raw_tree(tree).get_for_update(key)
    }

    pub fn put(&mut self, tree: &RawTree, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        self.raw_tree(tree).put(key, value)
    }

    pub fn delete(&mut self, tree: &RawTree, key: &[u8]) -> Result<bool, Error> {
        self.raw_tree(tree).delete(key)
    }

    /// Hands the entries of a range of keys to `f`, in order, until it returns `false`. The whole
    /// range is locked before it is read.
    pub fn scan<'k>(
        &mut self,
        tree: &RawTree,
        range: impl RangeBounds<&'k [u8]>,
        mut f: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        let bounds = (range.start_bound().map(|key| *key), range.end_bound().map(|key| *key));
        self.cell.scan(tree.handle(), bounds, true, &mut f)
    }

    /// Calls the closure with the entries of a range, from the last key to the first.
    pub fn scan_back<'k>(
        &mut self,
        tree: &RawTree,
        range: impl RangeBounds<&'k [u8]>,
        mut f: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        let bounds = (range.start_bound().map(|key| *key), range.end_bound().map(|key| *key));
        self.cell.scan(tree.handle(), bounds, false, &mut f)
    }

    /// The entries of a range, which is locked as a whole.
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
}
