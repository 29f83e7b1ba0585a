//! A named tree of a store in one combination.

use std::sync::Arc;

use super::error::Error;
use super::store::Store;
use crate::btree::BTree;
use crate::pool::counters::{Counter, Timing};
use crate::pool::{Mode, Pool};

/// A tree, shared by all its handles.
pub(super) struct OpenTree<M: Mode> {
    name: String,
    tree: BTree<Pool<M>>,
}

impl<M: Mode> OpenTree<M> {
    pub(super) fn new(name: &str, tree: BTree<Pool<M>>) -> OpenTree<M> {
        OpenTree { name: name.to_string(), tree }
    }

    pub(super) fn tree(&self) -> &BTree<Pool<M>> {
        &self.tree
    }

    pub(super) fn into_tree(self) -> BTree<Pool<M>> {
        self.tree
    }
}

/// A handle of a named tree.
pub struct StoreTree<M: Mode> {
    // First, so that it goes first: a store that closes has no trees in use.
    tree: Arc<OpenTree<M>>,
    store: Arc<Store<M>>,
}

impl<M: Mode> Clone for StoreTree<M> {
    fn clone(&self) -> Self {
        StoreTree { tree: self.tree.clone(), store: self.store.clone() }
    }
}

#[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
impl<M: Mode> StoreTree<M> {
    pub(super) fn new(store: Arc<Store<M>>, tree: Arc<OpenTree<M>>) -> StoreTree<M> {
        StoreTree { tree, store }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.tree.name
    }

    /// The store that it is in.
    pub fn store(&self) -> &Arc<Store<M>> {
        &self.store
    }

    /// The tree itself, for code that is compiled for a combination. Its operations are not
    /// counted as lookups or writes, and a store that is open for reading must not be written to.
    #[inline(always)]
    pub fn btree(&self) -> &BTree<Pool<M>> {
        &self.tree.tree
    }

    /// Reads, counted and, now and then, timed.
    #[inline(always)]
    pub(super) fn read<R, E: Into<Error>>(
        &self,
        (counter, timing): (Counter, Timing),
        work: impl FnOnce(&BTree<Pool<M>>) -> Result<R, E>,
    ) -> Result<R, Error> {
        self.store.may_read()?;
        self.work(counter, timing, work)
    }

    /// Writes, counted and, now and then, timed.
    #[inline(always)]
    pub(super) fn write<R, E: Into<Error>>(
        &self,
        (counter, timing): (Counter, Timing),
        work: impl FnOnce(&BTree<Pool<M>>) -> Result<R, E>,
    ) -> Result<R, Error> {
        self.store.may_write()?;
        self.work(counter, timing, work)
    }

    #[inline(always)]
    fn work<R, E: Into<Error>>(
        &self,
        counter: Counter,
        timing: Timing,
        work: impl FnOnce(&BTree<Pool<M>>) -> Result<R, E>,
    ) -> Result<R, Error> {
        let pool = self.store.pool();
        pool.counters().count(counter);
        let started = pool.latencies().start(timing);
        let result = work(&self.tree.tree);
        pool.latencies().stop(timing, started);
        result.map_err(Into::into)
    }

    /// Does what is neither counted nor timed.
    pub(super) fn look<R, E: Into<Error>>(
        &self,
        work: impl FnOnce(&BTree<Pool<M>>) -> Result<R, E>,
    ) -> Result<R, Error> {
        self.store.may_read()?;
        work(&self.tree.tree).map_err(Into::into)
    }

    /// The same for what changes the tree.
    pub(super) fn alter<R, E: Into<Error>>(
        &self,
        work: impl FnOnce(&BTree<Pool<M>>) -> Result<R, E>,
    ) -> Result<R, Error> {
        self.store.may_write()?;
        work(&self.tree.tree).map_err(Into::into)
    }
}
