//! Bulk-modified trees: trees that a call empties or loads as a whole, without a version per entry.
//!
//! A snapshot that began before the end of such a call does not find its state in the pages. There
//! are three cases. If the tree was empty, the snapshot sees an empty tree, apart from versions. If
//! the call put versions of all entries first, in the snapshot's epoch, the snapshot sees those.
//! Otherwise the snapshot cannot read the tree.

use std::collections::HashMap;
use std::sync::RwLockWriteGuard;
use std::sync::atomic::{AtomicUsize, Ordering};

use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::RwLock;

use crate::lock::TreeName;
use crate::txn::error::TxnError;
use crate::txn::versions::reader::Reader;

/// End of a bulk modification in progress.
const RUNNING: u64 = u64::MAX;

/// A bulk modification of a tree.
struct BulkModified {
    /// Commit timestamp of its end: earlier snapshots cannot see the tree's former state in its
    /// pages.
    until: u64,
    /// The snapshot epoch in which versions of all entries were put first; 0 if in none.
    snapshot_epoch: u64,
    /// Set if the tree was empty.
    was_empty: bool,
}

/// The part of a tree that is visible to a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::txn) enum Visible {
    /// The tree's pages, with versions instead of the entries that changed since.
    All,
    /// Versions up to this commit timestamp. The tree was empty then, and a bulk modification
    /// filled it: nothing in its pages, and no later version, is visible.
    VersionsTo(u64),
}

/// The bulk modifications that a snapshot may need to know.
#[derive(Default)]
pub(in crate::txn) struct BulkModifiedTrees {
    by_tree: RwLock<HashMap<u32, Vec<BulkModified>>>,
    /// Number of trees with a bulk modification, read without the latch.
    trees: AtomicUsize,
}

impl BulkModifiedTrees {
    fn write(&self) -> RwLockWriteGuard<'_, HashMap<u32, Vec<BulkModified>>> {
        self.by_tree.write().past_poison()
    }

    /// Begins a bulk modification of `tree`, which is locked as a whole.
    pub(in crate::txn) fn begin(&self, tree: u32, snapshot_epoch: u64, was_empty: bool) {
        let mut by_tree = self.write();
        let all = by_tree.entry(tree).or_default();
        assert!(all.iter().all(|each| each.until != RUNNING), "the tree is locked as a whole");
        all.push(BulkModified { until: RUNNING, snapshot_epoch, was_empty });
        self.trees.store(by_tree.len(), Ordering::SeqCst);
    }

    /// Ends the bulk modification of `tree` at `timestamp`. It is forgotten if there are no
    /// snapshots.
    pub(in crate::txn) fn end(&self, tree: u32, timestamp: u64, has_snapshots: bool) {
        debug_assert!(timestamp < RUNNING, "a commit timestamp");
        let mut by_tree = self.write();
        let all = by_tree.entry(tree).or_default();
        // The tree is locked as a whole, so at most one is in progress.
        if let Some(running) = all.iter_mut().find(|each| each.until == RUNNING) {
            running.until = timestamp;
        }
        if !has_snapshots {
            all.retain(|each| each.until == RUNNING);
        }
        by_tree.retain(|_, all| !all.is_empty());
        self.trees.store(by_tree.len(), Ordering::SeqCst);
    }

    /// Returns the visible part of `tree` for `reader`, which has read pages and versions already.
    ///
    /// # Errors
    /// [`TxnError::TreeBulkModified`].
    pub(in crate::txn) fn visible(&self, reader: &Reader, tree: u32) -> Result<Visible, TxnError> {
        let mut visible = Visible::All;
        if self.trees.load(Ordering::SeqCst) == 0 {
            return Ok(visible);
        }
        let by_tree = self.by_tree.read().past_poison();
        for each in by_tree.get(&tree).into_iter().flatten() {
            if reader.timestamp >= each.until {
                continue;
            }
            if each.was_empty {
                visible = match visible {
                    Visible::VersionsTo(earlier) if earlier < each.until => visible,
                    _ => Visible::VersionsTo(each.until),
                };
            } else if each.snapshot_epoch != reader.snapshot_epoch {
                return Err(TxnError::TreeBulkModified { tree: TreeName { id: tree, name: None } });
            }
        }
        Ok(visible)
    }

    /// Forgets modifications that concern only snapshots before `oldest`.
    pub(in crate::txn) fn forget_before(&self, oldest: u64) {
        let mut by_tree = self.write();
        by_tree.retain(|_, all| {
            all.retain(|each| each.until > oldest);
            !all.is_empty()
        });
        self.trees.store(by_tree.len(), Ordering::SeqCst);
    }
}
