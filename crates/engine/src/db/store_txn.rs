//! A transaction in one compiled combination: the trees that it changed, and what it did.

use std::ops::Bound;
use std::sync::Arc;

use super::error::Error;
use super::store::Store;
use super::store_handle::StoreTree;
use crate::btree::{BTree, Condition};
use crate::pool::{Mode, Pool};
use crate::txn::{Savepoint, Transaction, TxnOptions};

/// A transaction of a store; aborted when it is dropped.
pub struct StoreTxn<M: Mode> {
    /// Those that it changed. First, so that they go first.
    trees: Vec<StoreTree<M>>,
    tx: Transaction,
    store: Arc<Store<M>>,
}

impl<M: Mode> StoreTxn<M> {
    /// A new transaction.
    ///
    /// # Errors
    /// The store is open for reading only, or is used by another thread than its own.
    pub fn begin(store: &Arc<Store<M>>, options: TxnOptions) -> Result<StoreTxn<M>, Error> {
        if M::TREES_ONLY {
            return Err(Error::NoTransactions);
        }
        store.may_write()?;
        let tx = Transaction::begin(store.transactions(), options);
        Ok(StoreTxn { trees: Vec::new(), tx, store: store.clone() })
    }

    /// The transaction's id.
    pub fn id(&self) -> u64 {
        self.tx.id()
    }

    fn check(&self, tree: &StoreTree<M>) -> Result<(), Error> {
        self.store.may_write()?;
        if Arc::ptr_eq(tree.store(), &self.store) {
            return Ok(());
        }
        Err(Error::OtherStore { name: tree.name().to_string() })
    }

    /// As [`Transaction::get`].
    ///
    /// # Errors
    /// [`Error`].
    pub fn get<R>(
        &mut self,
        tree: &StoreTree<M>,
        key: &[u8],
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        self.check(tree)?;
        Ok(self.tx.get(tree.btree(), key, f)?)
    }

    /// As [`Transaction::lock`].
    ///
    /// # Errors
    /// [`Error`].
    pub fn lock(&mut self, tree: &StoreTree<M>, key: &[u8]) -> Result<(), Error> {
        self.check(tree)?;
        Ok(self.tx.lock(tree.btree(), key)?)
    }

    /// As [`Transaction::write`].
    ///
    /// # Errors
    /// [`Error`].
    pub fn write(
        &mut self,
        tree: &StoreTree<M>,
        key: &[u8],
        value: Option<&[u8]>,
        condition: Condition,
    ) -> Result<(bool, bool), Error> {
        self.check(tree)?;
        self.know(tree);
        Ok(self.tx.write(tree.btree(), key, value, condition)?)
    }

    /// As [`Transaction::update`].
    ///
    /// # Errors
    /// [`Error`].
    pub fn update<R>(
        &mut self,
        tree: &StoreTree<M>,
        key: &[u8],
        f: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<Option<R>, Error> {
        self.check(tree)?;
        self.know(tree);
        Ok(self.tx.update(tree.btree(), key, f)?)
    }

    /// Keeps a tree that is about to be changed.
    #[inline]
    fn know(&mut self, tree: &StoreTree<M>) {
        let owner = tree.btree().owner();
        if self.trees.iter().all(|known| known.btree().owner() != owner) {
            self.trees.push(tree.clone());
        }
    }

    /// As [`Transaction::scan`].
    ///
    /// # Errors
    /// [`Error`].
    pub fn scan(
        &mut self,
        tree: &StoreTree<M>,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        f: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        self.check(tree)?;
        Ok(self.tx.scan(tree.btree(), lower, upper, f)?)
    }

    /// As [`Transaction::scan`], from the last key to the first.
    ///
    /// # Errors
    /// [`Error`].
    pub fn scan_back(
        &mut self,
        tree: &StoreTree<M>,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        f: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        self.check(tree)?;
        Ok(self.tx.scan_back(tree.btree(), lower, upper, f)?)
    }

    /// As [`Transaction::savepoint`].
    pub fn savepoint(&self) -> Savepoint {
        self.tx.savepoint()
    }

    /// As [`Transaction::rollback_to`].
    ///
    /// # Errors
    /// [`Error`].
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<(), Error> {
        let trees = &self.trees;
        Ok(self.tx.rollback_to(savepoint, |owner| find(trees, owner))?)
    }

    /// As [`Transaction::commit`].
    ///
    /// # Errors
    /// [`Error`].
    pub fn commit(mut self) -> Result<(), Error> {
        let trees = std::mem::take(&mut self.trees);
        let done = self.tx.commit(|owner| find(&trees, owner));
        if !self.tx.is_over() {
            self.trees = trees;
        }
        Ok(done?)
    }

    /// As [`Transaction::abort`].
    ///
    /// # Errors
    /// [`Error`].
    pub fn abort(mut self) -> Result<(), Error> {
        self.undo()
    }

    fn undo(&mut self) -> Result<(), Error> {
        let trees = &self.trees;
        Ok(self.tx.abort(|owner| find(trees, owner))?)
    }
}

fn find<M: Mode>(trees: &[StoreTree<M>], owner: u32) -> Option<&BTree<Pool<M>>> {
    trees.iter().map(StoreTree::btree).find(|tree| tree.owner() == owner)
}

impl<M: Mode> Drop for StoreTxn<M> {
    fn drop(&mut self) {
        if !self.tx.is_over()
            && let Err(error) = self.undo()
        {
            self.tx.strand();
            let tx = self.tx.id();
            tracing::error!(%error, "transaction {tx} could not be undone: open the store again");
        }
    }
}
