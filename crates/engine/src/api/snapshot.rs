//! Snapshots as users see them.

use std::ops::RangeBounds;
use std::panic::Location;
use std::sync::Arc;

use crate::api::any::*;
use crate::api::db::Db;
use crate::api::raw_tree::{RawRange, RawTree, bounds};
use crate::api::tree::{Range, Tree};
use crate::encoding::key::{Key, KeyLike, PrefixOf};
use crate::encoding::key_range::KeyRange;
use crate::encoding::value::Value;
use crate::pool::PoolStrategy;
use crate::store::error::Error;
use crate::store::range::StoreRange;
use crate::store::store::Store;

/// What was committed at the moment when it was begun, for reading: all its reads agree, whatever
/// others write meanwhile. It waits for no writer, and no writer waits for it. Threads may share
/// it.
///
/// What is changed while a snapshot is open is kept for it: in memory, a 32nd of the store's, and
/// beyond that in a file beside the store
/// ([`Options::spill_max`](crate::Options#structfield.spill_max)). If that is full,
/// the oldest snapshot is lost, and its next read fails with
/// [`TxnError::SnapshotLost`](crate::txn::TxnError::SnapshotLost), which says where in the program
/// it was begun. So drop it when it is no longer needed.
///
/// It shows trees only. Entries that [`RawTree::bulk_load`] adds, and [`RawTree::clear`] and
/// [`RawTree::remove_range`] remove, are not seen to come or go either; but a snapshot that begins
/// while one of these is under way cannot read that tree.
///
/// ```
/// use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let ponds = db.raw_tree("ponds")?;
/// ponds.put(b"mill", b"deep")?;
/// let snapshot = db.snapshot()?;
/// ponds.put(b"mill", b"dry")?;
/// ponds.put(b"weir", b"wide")?;
/// assert_eq!(snapshot.get(&ponds, b"mill")?.as_deref(), Some(&b"deep"[..]));
/// assert_eq!(snapshot.iter(&ponds)?.count(), 1);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Snapshot {
    inner: Arc<crate::txn::Snapshot>,
    store: AnyStore,
    caller: &'static Location<'static>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("begun_at", &self.caller.to_string()).finish()
    }
}

impl Db {
    /// Begins a snapshot of what is committed now. It waits for the single calls that others are
    /// in, not for transactions.
    ///
    /// # Errors
    /// The store runs without locks or with strategies without transactions; or what transactions
    /// under way have changed does not fit the memory for snapshots.
    #[track_caller]
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        let caller = Location::caller();
        let inner = each!(AnyStore, self.any(), store => store.begin_snapshot(caller))?;
        Ok(Snapshot { inner, store: self.any().clone(), caller })
    }
}

impl Snapshot {
    /// Fails if `tree` is another store's.
    fn check(&self, tree: &RawTree) -> Result<(), Error> {
        fn is_same<M: PoolStrategy>(store: &Arc<Store<M>>, other: &Arc<Store<M>>) -> bool {
            Arc::ptr_eq(store, other)
        }
        let same = both!(
            (AnyStore, &self.store, store), (AnyTree, tree.any(), tree) =>
                is_same(store, tree.store()),
            else false
        );
        if same { Ok(()) } else { Err(Error::OtherStore { name: tree.name().to_string() }) }
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// The snapshot is lost, the tree is another store's, or the store failed; so for everything
    /// that reads.
    pub fn get(&self, tree: &RawTree, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.get_with(tree, key, <[u8]>::to_vec)
    }

    /// Hands a copy of the value of `key` to `f`, and answers with what comes out.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn get_with<R>(
        &self,
        tree: &RawTree,
        key: &[u8],
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        let (mut f, mut result) = (Some(f), None);
        self.look(tree, key, &mut |value| {
            if let Some(f) = f.take() {
                result = Some(f(value));
            }
        })?;
        Ok(result)
    }

    /// Not generic, so that it is compiled here, once per combination.
    fn look(&self, tree: &RawTree, key: &[u8], f: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        self.check(tree)?;
        Ok(each!(AnyTree, tree.any(), tree => self.inner.get(tree.btree(), key, f))?.is_some())
    }

    /// Whether there is such a key.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn contains(&self, tree: &RawTree, key: &[u8]) -> Result<bool, Error> {
        self.look(tree, key, &mut |_| ())
    }

    /// The entries of a range of keys, from both ends.
    ///
    /// # Errors
    /// The tree is another store's. What reading fails with, the entries say.
    pub fn range<'t, 'k>(
        &self,
        tree: &'t RawTree,
        range: impl RangeBounds<&'k [u8]>,
    ) -> Result<RawRange<'t>, Error> {
        self.key_range(tree, &KeyRange::of_bytes(range))
    }

    /// The entries whose keys begin with `prefix`.
    ///
    /// # Errors
    /// As [`Snapshot::range`].
    pub fn prefix<'t>(&self, tree: &'t RawTree, prefix: &[u8]) -> Result<RawRange<'t>, Error> {
        self.key_range(tree, &KeyRange::of_prefix::<Vec<u8>>(prefix))
    }

    /// All entries.
    ///
    /// # Errors
    /// As [`Snapshot::range`].
    pub fn iter<'t>(&self, tree: &'t RawTree) -> Result<RawRange<'t>, Error> {
        self.key_range(tree, &KeyRange::ALL)
    }

    /// The entries of a range of encoded keys.
    ///
    /// # Errors
    /// As [`Snapshot::range`].
    pub fn key_range<'t>(
        &self,
        tree: &'t RawTree,
        range: &KeyRange,
    ) -> Result<RawRange<'t>, Error> {
        self.check(tree)?;
        let any = turn!(AnyTree => AnyRange, tree.any(), tree => {
            StoreRange::of_snapshot(&self.inner, tree, bounds(range))
        });
        Ok(RawRange::new(tree, any, range))
    }

    /// The value of `key` in a tree with types.
    ///
    /// # Errors
    /// As [`Snapshot::get`], or [`Error::Decode`].
    pub fn get_typed<K: Key, V: Value>(
        &self,
        tree: &Tree<K, V>,
        key: &K,
    ) -> Result<Option<V>, Error> {
        let decode = |bytes: &[u8]| V::decode(bytes);
        let found = self.get_with(tree.raw(), &key.to_key_bytes(), decode)?.transpose();
        found.map_err(|error| Error::Decode { tree: tree.raw().name().to_string(), error })
    }

    /// The entries of a range of keys in a tree with types.
    ///
    /// # Errors
    /// As [`Snapshot::range`].
    pub fn range_typed<'t, K: Key, V: Value, Q: KeyLike<K>>(
        &self,
        tree: &'t Tree<K, V>,
        range: impl RangeBounds<Q>,
    ) -> Result<Range<'t, K, V>, Error> {
        Ok(Range::new(self.key_range(tree.raw(), &KeyRange::of::<K, Q>(range))?))
    }

    /// The entries of a tree with types whose keys begin with `prefix`.
    ///
    /// # Errors
    /// As [`Snapshot::range`].
    pub fn prefix_typed<'t, K: Key, V: Value>(
        &self,
        tree: &'t Tree<K, V>,
        prefix: &(impl PrefixOf<K> + ?Sized),
    ) -> Result<Range<'t, K, V>, Error> {
        Ok(Range::new(self.key_range(tree.raw(), &KeyRange::of_prefix::<K>(prefix))?))
    }
}
