//! Pops of entries at the ends of a tree.
//!
//! The key at the end is looked up, locked, and looked up again. Then its entry is removed, and the
//! removal returns the value. If the transaction has locked the whole tree, as it has after
//! thousands of entries, one look-up suffices. Look-ups and removals share a finger, so that
//! successive pops need no descent.

use std::ops::Bound;

use crate::btree::{BTree, EndEntry, WriteCondition};
use crate::lock::LockMode;
use crate::pool::Pages;
use crate::txn::bounds::Bounds;
use crate::txn::error::TxnError;
use crate::txn::scan::OwnedEntry;
use crate::txn::scratch::Sequence;
use crate::txn::transaction::{EntryWrite, Transaction};

impl Transaction {
    /// Removes the first entry, or the last, and returns it. Returns `None`, with nothing removed,
    /// if there is none, or if its value is in overflow pages; a scan can tell which.
    ///
    /// # Errors
    /// [`TxnError`].
    pub fn pop_inline<P: Pages>(
        &mut self,
        tree: &BTree<P>,
        first: bool,
    ) -> Result<Option<OwnedEntry>, TxnError> {
        self.running()?;
        let mut key = Vec::new();
        // A transaction that finds the tree empty removes nothing, and lets others find that, too.
        if self.look_at_end(tree, first, &mut key)? != EndEntry::Inline {
            return Ok(None);
        }
        if !self.has_locked_all(tree.owner()) {
            self.lock_end(tree, first)?;
            if !self.lock_end_entry(tree, first, &mut key)? {
                return Ok(None);
            }
        }
        loop {
            let mut value = Vec::new();
            let (condition, sequence) = (WriteCondition::Present, Sequence::of_end(first));
            let removal = EntryWrite { key: &key, value: None, built: None, condition };
            if self.write_locked(tree, removal, sequence, Some(&mut value))?.applied {
                return Ok(Some((key, value)));
            }
            // Without locks, others may have removed it.
            if self.look_at_end(tree, first, &mut key)? != EndEntry::Inline {
                return Ok(None);
            }
        }
    }

    /// Locks the entry at an end for writing, and the range in front of it against insertions.
    /// Returns `true` if there is one with its value in its leaf; `key` then has its key.
    fn lock_end_entry<P: Pages>(
        &mut self,
        tree: &BTree<P>,
        first: bool,
        key: &mut Vec<u8>,
    ) -> Result<bool, TxnError> {
        let mut again = Vec::new();
        let mut seen = self.look_at_end(tree, first, key)?;
        while seen == EndEntry::Inline {
            let here = Bound::Included(key.as_slice());
            let up_to_here = Bounds { upper: here, ..Bounds::ALL };
            let from_here = Bounds { lower: here, ..Bounds::ALL };
            let bounds = if first { up_to_here } else { from_here };
            self.lock_keys(tree.owner(), bounds)?;
            self.lock(tree, key)?;
            let looked = self.look_at_end(tree, first, &mut again);
            self.end_statement();
            seen = looked?;
            // Before it was locked, others may have changed the end.
            if *key == again {
                break;
            }
            std::mem::swap(key, &mut again);
        }
        Ok(seen == EndEntry::Inline)
    }

    fn look_at_end<P: Pages>(
        &mut self,
        tree: &BTree<P>,
        first: bool,
        key: &mut Vec<u8>,
    ) -> Result<EndEntry, TxnError> {
        let finger = &mut self.scratch.fingers[Sequence::of_end(first) as usize];
        Ok(tree.end_entry(first, finger, key)?)
    }

    /// Returns `true` if the transaction may write every key of a tree.
    fn has_locked_all(&self, owner_id: u32) -> bool {
        let locks = &self.scratch.owner;
        locks.as_ref().is_none_or(|locks| locks.covers(owner_id, LockMode::X))
    }
}
