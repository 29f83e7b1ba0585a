//! Scans of a whole range in a transaction, and locks of ranges and of the ends of a tree.

use std::ops::Bound;

use crate::btree::BTree;
use crate::lock::LockMode;
use crate::pool::{Pages, PoolError};
use crate::txn::bounds::Bounds;
use crate::txn::error::TxnError;
use crate::txn::options::Isolation;

use crate::txn::transaction::Transaction;

impl Transaction {
    /// Calls `f` with the entries between the bounds, in order, until it returns `false`.
    ///
    /// # Errors
    /// [`TxnError`].
    pub fn scan<P: Pages>(
        &mut self,
        tree: &BTree<P>,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        f: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), TxnError> {
        self.lock_range(tree, lower, upper)?;
        let scanned = tree.scan(lower, upper, f);
        self.end_statement();
        Ok(scanned?)
    }

    /// Like [`Transaction::scan`], from the last key to the first.
    ///
    /// # Errors
    /// [`TxnError`].
    pub fn scan_back<P: Pages>(
        &mut self,
        tree: &BTree<P>,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        mut f: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), TxnError> {
        self.lock_range(tree, lower, upper)?;
        let mut cursor = tree.cursor_in(lower, upper);
        let mut scan = || {
            let mut more = cursor.last()?;
            while more && f(cursor.key(), cursor.value()) {
                more = cursor.prev()?;
            }
            Ok::<(), PoolError>(())
        };
        let scanned = scan();
        self.end_statement();
        Ok(scanned?)
    }

    /// Returns the number of entries of a tree, and locks all of them; `None` if the number needs a
    /// walk.
    ///
    /// # Errors
    /// [`TxnError`].
    pub fn count<P: Pages>(&mut self, tree: &BTree<P>) -> Result<Option<u64>, TxnError> {
        self.lock_range(tree, Bound::Unbounded, Bound::Unbounded)?;
        // Uncommitted changes are the transaction's own.
        let counted = self.manager.rows().of(tree.owner()).map(|(count, _)| count.all);
        self.end_statement();
        Ok(counted)
    }

    /// Locks all keys between the bounds in S, including absent ones.
    ///
    /// # Errors
    /// [`TxnError`].
    pub fn lock_range<P: Pages>(
        &mut self,
        tree: &BTree<P>,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> Result<(), TxnError> {
        self.lock_keys(tree.owner(), Bounds { lower, upper })
    }

    /// Like [`Transaction::lock_range`], in the structure with this owner id.
    pub(in crate::txn) fn lock_keys(
        &mut self,
        owner_id: u32,
        bounds: Bounds<'_>,
    ) -> Result<(), TxnError> {
        self.running()?;
        match &mut self.scratch.owner {
            Some(owner) => Ok(owner.lock_range(owner_id, bounds.lower, bounds.upper)?),
            None => Ok(()),
        }
    }

    /// Returns `true` if no other transaction can change the keys between the bounds before this
    /// one ends: it has locked all of them, and keeps the locks.
    ///
    /// # Errors
    /// [`TxnError::Failed`].
    pub fn has_locked(&self, owner_id: u32, bounds: Bounds<'_>) -> Result<bool, TxnError> {
        self.running()?;
        Ok(self.scratch.owner.as_ref().is_some_and(|owner| match self.isolation() {
            // The end of any statement releases its shared locks.
            Isolation::ReadCommitted => owner.covers(owner_id, LockMode::X),
            _ => owner.covers_range(owner_id, bounds.lower, bounds.upper),
        }))
    }

    /// Locks the first or the last end of the tree; see
    /// [`LockOwner::lock_end`](crate::lock::LockOwner::lock_end).
    ///
    /// # Errors
    /// [`TxnError`].
    pub fn lock_end<P: Pages>(&mut self, tree: &BTree<P>, first: bool) -> Result<(), TxnError> {
        self.running()?;
        match &mut self.scratch.owner {
            Some(owner) => Ok(owner.lock_end(tree.owner(), first)?),
            None => Ok(()),
        }
    }
}
