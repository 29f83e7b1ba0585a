//! A named structure of a store in one combination: a tree, a hash index or a heap.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::btree::BTree;
use crate::hash_index::HashIndex;
use crate::heap::Heap;
use crate::lock::is_interrupted;
use crate::pool::{Pool, PoolError, PoolStrategy};
use crate::stats::counters::Counter;
use crate::store::counted::{GET, Meters};
use crate::store::error::Error;
use crate::store::opened::{Holds, Open, OpenTree, Rest, Shared};
use crate::store::store::Store;
use crate::txn::{Bounds, Each, Found, Structure, find};

/// A handle of a named structure; see [`StoreTree`], [`StoreHashIndex`] and [`StoreHeap`].
pub struct StoreHandle<M: PoolStrategy, S> {
    // First, so that it is dropped first: a store that closes has no structures in use.
    open: Shared<S>,
    store: Arc<Store<M>>,
}

/// A handle of a named tree.
pub type StoreTree<M> = StoreHandle<M, BTree<Pool<M>>>;
/// A handle of a named hash index.
pub type StoreHashIndex<M> = StoreHandle<M, HashIndex<Pool<M>>>;
/// A handle of a named heap.
pub type StoreHeap<M> = StoreHandle<M, Heap<Pool<M>>>;

impl<M: PoolStrategy, S> Clone for StoreHandle<M, S> {
    fn clone(&self) -> Self {
        StoreHandle { open: self.open.clone(), store: self.store.clone() }
    }
}

impl<M: PoolStrategy> StoreTree<M> {
    /// Returns the guard that holds the tree open.
    #[inline(always)]
    pub(crate) fn held(&self) -> &OpenTree<M> {
        &self.open
    }

    /// Returns the tree itself, for code that is compiled for a combination. Its operations are not
    /// counted as lookups or writes. A store that is open for reading must not be written to.
    #[inline(always)]
    pub fn btree(&self) -> &BTree<Pool<M>> {
        &self.open.structure
    }
}

#[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
impl<M: PoolStrategy> StoreTree<M> {
    /// Writes `key` outside a transaction.
    #[inline(always)]
    pub(crate) fn write_key<R, E: Into<Error>>(
        &self,
        meters: Meters,
        key: &[u8],
        work: impl FnOnce(&BTree<Pool<M>>) -> Result<R, E>,
    ) -> Result<R, Error> {
        if M::TREES_ONLY {
            return self.write(meters, work);
        }
        let owner = self.btree().owner();
        let look = |is_whole| find(self.btree(), key, is_whole);
        self.store.transactions().alone(owner, key, look, || self.write(meters, work))
    }

    /// Writes `key` with a value from `source`, which may be anything, including this store's own
    /// ranges: it is read before anything is locked.
    pub(crate) fn write_key_from(
        &self,
        meters: Meters,
        key: &[u8],
        len: u64,
        source: &mut impl std::io::Read,
    ) -> Result<bool, Error> {
        self.store.may_write()?;
        let mut value = Some(self.btree().read_streamed(key, len, source)?);
        let done = self.write_key(meters, key, |tree| match value.take() {
            Some(value) => tree.upsert_streamed(key, value),
            None => Ok(false),
        });
        match value {
            Some(unwanted) => {
                self.btree().discard_streamed(unwanted).map_err(Error::from).and(done)
            }
            None => done,
        }
    }

    /// Reads the committed value of `key` with a closure.
    #[inline(always)]
    pub(crate) fn read_key<'t, R, E: Into<Error>>(
        &'t self,
        meters: Meters,
        key: &[u8],
        mut work: impl FnMut(&'t BTree<Pool<M>>) -> Result<R, E>,
    ) -> Result<R, Error> {
        if M::TREES_ONLY {
            return self.read(meters, work);
        }
        let owner = self.btree().owner();
        self.store.transactions().committed(owner, key, || self.read(meters, &mut work))
    }

    /// Puts the committed value of each of `keys` into its place in `values`.
    pub(crate) fn read_keys(
        &self,
        keys: &[&[u8]],
        values: &mut [Option<Vec<u8>>],
    ) -> Result<(), Error> {
        let mut read = || {
            self.store.may_read()?;
            Ok(self.btree().get_many(keys, values)?)
        };
        if M::TREES_ONLY {
            self.store.pool().counters().add(Counter::Gets, keys.len() as u64);
            return read();
        }
        if let Some(done) = self.store.transactions().quietly(&mut read) {
            self.store.pool().counters().add(Counter::Gets, keys.len() as u64);
            return done;
        }
        // There are uncommitted changes, perhaps of one of these keys. The pages are in memory by
        // now.
        for (key, value) in keys.iter().zip(values) {
            *value = self.read_key(GET, key, |tree| tree.get_owned(key))?;
        }
        Ok(())
    }

    /// Removes all keys between two bounds; no other owner may have one of them locked.
    pub(crate) fn write_all<R, E: Into<Error>>(
        &self,
        meters: Meters,
        bounds: Bounds<'_>,
        work: impl FnOnce(&BTree<Pool<M>>) -> Result<R, E>,
    ) -> Result<R, Error> {
        if M::TREES_ONLY {
            return self.write(meters, work);
        }
        let owner = self.btree().owner();
        let each = |put: &mut Each<'_>| {
            let tree = self.btree();
            // Large values are read piece by piece, not by the cursor.
            let mut cursor = tree.cursor_in(bounds.lower, bounds.upper).without_large();
            let mut more = cursor.first()?;
            while more {
                let key = cursor.key();
                put(key, &mut |is_whole| match cursor.is_large() {
                    true => find(tree, key, is_whole),
                    false => Ok(Some(Found::Whole(cursor.value().to_vec()))),
                })?;
                more = cursor.next()?;
            }
            Ok(())
        };
        let work = || self.write(meters, work);
        self.store.transactions().alone_in(owner, || Ok(false), each, work)
    }

    /// Returns the number of committed entries, or `None` if it is unknown while others write. The
    /// caller then counts them with a walk over the tree, and the count is kept if nobody writes
    /// during the walk.
    pub(crate) fn len(&self) -> Result<Option<u64>, Error> {
        if M::TREES_ONLY {
            return self.look(BTree::count).map(Some);
        }
        self.store.may_read()?;
        let (owner, rows) = (self.btree().owner(), self.store.transactions().rows());
        if let Some((count, _)) = rows.of(owner) {
            let has_locks = self.store.transactions().locks().is_some();
            return Ok(Some(if has_locks { count.committed } else { count.all }));
        }
        let state = rows.state(owner);
        let counted = self.count_quietly(|tree| tree.count_until(is_interrupted))?;
        if let Some(counted) = counted {
            rows.learn(owner, counted, state);
        }
        Ok(counted)
    }

    /// Fills the tree, which must be empty, while nobody else writes to it.
    pub(crate) fn fill<R, E: Into<Error>>(
        &self,
        work: impl FnOnce(&BTree<Pool<M>>) -> Result<R, E>,
    ) -> Result<R, Error> {
        if M::TREES_ONLY {
            return self.alter_at_rest(work);
        }
        let is_empty = || Ok(!self.btree().cursor().first()?);
        let work = || self.alter_at_rest(work);
        let (owner, transactions) = (self.btree().owner(), self.store.transactions());
        // `work` fails if the tree is not empty.
        transactions.alone_in(owner, is_empty, |_| Ok(()), work)
    }
}

#[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
impl<M: PoolStrategy, S> StoreHandle<M, S> {
    pub(crate) fn new(store: Arc<Store<M>>, open: Arc<Open<S>>) -> StoreHandle<M, S> {
        StoreHandle { open, store }
    }

    /// Returns the guard that holds the structure open.
    pub(crate) fn holds(&self) -> Arc<dyn Holds>
    where
        S: Structure + 'static,
    {
        self.open.clone()
    }

    /// Returns the name of the structure.
    pub fn name(&self) -> &str {
        &self.open.name
    }

    /// Returns the store that it is in.
    pub fn store(&self) -> &Arc<Store<M>> {
        &self.store
    }

    /// Returns the structure itself, for code that is compiled for a combination. Its operations
    /// are not counted as lookups or writes. A store that is open for reading must not be written
    /// to.
    #[inline(always)]
    pub fn structure(&self) -> &S {
        &self.open.structure
    }

    /// Runs a counted, occasionally timed read.
    #[inline(always)]
    pub(crate) fn read<'t, R, E: Into<Error>>(
        &'t self,
        meters: Meters,
        work: impl FnOnce(&'t S) -> Result<R, E>,
    ) -> Result<R, Error> {
        self.store.may_read()?;
        self.work(meters, work)
    }

    /// Runs a counted, occasionally timed write.
    #[inline(always)]
    pub(crate) fn write<R, E: Into<Error>>(
        &self,
        meters: Meters,
        work: impl FnOnce(&S) -> Result<R, E>,
    ) -> Result<R, Error> {
        self.store.may_write()?;
        self.work(meters, work)
    }

    #[inline(always)]
    fn work<'t, R, E: Into<Error>>(
        &'t self,
        meters: Meters,
        work: impl FnOnce(&'t S) -> Result<R, E>,
    ) -> Result<R, Error> {
        self.store.counted(meters, || work(&self.open.structure)).map_err(Into::into)
    }

    /// Runs work that is neither counted nor timed.
    pub(crate) fn look<R, E: Into<Error>>(
        &self,
        work: impl FnOnce(&S) -> Result<R, E>,
    ) -> Result<R, Error> {
        self.store.may_read()?;
        work(&self.open.structure).map_err(Into::into)
    }

    /// Returns the number of committed entries by `count`; `None` if another thread wrote in the
    /// meantime, because its writes may not be committed.
    pub(crate) fn count_quietly<E: Into<Error>>(
        &self,
        mut count: impl FnMut(&S) -> Result<u64, E>,
    ) -> Result<Option<u64>, Error> {
        if M::TREES_ONLY {
            return self.look(count).map(Some);
        }
        self.store.transactions().quietly(&mut || self.look(&mut count)).transpose()
    }

    /// Keeps the background merge away from the structure. It holds no lock, so the caller may call
    /// anything.
    fn rest(&self) -> Result<Rest<'_>, PoolError> {
        self.open.resting.fetch_add(1, Ordering::AcqRel);
        let rest = Rest(&self.open.resting);
        // A step that began before has ended once its gate can be passed; the next one sees the
        // count.
        drop(self.store.keep_from_merging()?);
        Ok(rest)
    }

    /// Like [`StoreHandle::look`], with the background merge kept away.
    pub(crate) fn look_at_rest<R, E: Into<Error>>(
        &self,
        work: impl FnOnce(&S) -> Result<R, E>,
    ) -> Result<R, Error> {
        let _rest = self.rest()?;
        self.look(work)
    }

    /// Like [`StoreHandle::alter`], with the background merge kept away.
    pub fn alter_at_rest<R, E: Into<Error>>(
        &self,
        work: impl FnOnce(&S) -> Result<R, E>,
    ) -> Result<R, Error> {
        let _rest = self.rest()?;
        self.alter(work)
    }

    /// Like [`StoreHandle::look`], for work that changes the structure.
    pub(crate) fn alter<R, E: Into<Error>>(
        &self,
        work: impl FnOnce(&S) -> Result<R, E>,
    ) -> Result<R, Error> {
        self.store.may_write()?;
        work(&self.open.structure).map_err(Into::into)
    }
}
