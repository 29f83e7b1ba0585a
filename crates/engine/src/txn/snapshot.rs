//! Snapshots: what was committed at one moment, read without locks.

use std::ops::Bound;
use std::panic::Location;
use std::sync::Arc;

use crate::btree::BTree;
use crate::page::Scratch;
use crate::pool::Pages;
use crate::txn::before_image::{BeforeImage, Unread};
use crate::txn::error::TxnError;
use crate::txn::manager::{TransactionManager, Trees};
use crate::txn::snapshot_range::SnapshotRange;
use crate::txn::versions::{Before, Counts, Reader, Window};

/// What was committed when it was begun. It waits for nobody and keeps nobody waiting; what others
/// change meanwhile is kept for it (`versions.rs`).
pub struct Snapshot {
    manager: Arc<TransactionManager>,
    reader: Arc<Reader>,
}

impl Snapshot {
    /// Begins one, on behalf of `caller`, whom warnings name.
    ///
    /// # Errors
    /// There are no locks, so that no moment is known at which everything is committed; or what
    /// writers under way have changed cannot be read, or needs too much memory.
    pub fn begin(
        manager: &Arc<TransactionManager>,
        caller: &'static Location<'static>,
        trees: &mut dyn Trees,
    ) -> Result<Arc<Snapshot>, TxnError> {
        if manager.locks().is_none() {
            return Err(TxnError::NoSnapshots);
        }
        let reader = manager
            .versions()
            .begin(caller, |snapshot_epoch| manager.capture_versions(snapshot_epoch, trees))?;
        Ok(Arc::new(Snapshot { manager: manager.clone(), reader }))
    }

    /// What `f` makes of the value of `key`; `None` if there was no such key.
    ///
    /// # Errors
    /// The memory behind the tree failed, or the snapshot is lost.
    pub fn get<P: Pages, R>(
        &self,
        tree: &BTree<P>,
        key: &[u8],
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, TxnError> {
        let mut scratch = Scratch::default();
        // The page first, the versions afterwards.
        let found = tree.get_scratch(key, &mut scratch)?;
        if let Some(before) = self.seen(tree.owner(), key)? {
            let value = before.map(|before| self.whole(&before)).transpose()?;
            return Ok(value.map(|value| f(&value)));
        }
        Ok(found.map(|large| match &large {
            None => f(scratch.bytes()),
            Some(large) => f(large),
        }))
    }

    /// Whether `key` was changed since the snapshot began, or may have been.
    ///
    /// # Errors
    /// The snapshot is lost.
    pub fn is_changed<P: Pages>(&self, tree: &BTree<P>, key: &[u8]) -> Result<bool, TxnError> {
        Ok(self.seen(tree.owner(), key)?.is_some())
    }

    /// All of a value that there was.
    pub(super) fn whole(&self, before_image: &BeforeImage) -> Result<Arc<[u8]>, TxnError> {
        before_image.whole().map_err(|error| match error {
            Unread::Spill(error) => self.reader.unreadable(&error),
            Unread::Pages(error) => TxnError::VersionUnreadable(error),
        })
    }

    /// What of a tree counts.
    fn counts(&self, tree: u32) -> Result<Counts, TxnError> {
        self.manager.versions().is_steady(&self.reader, tree).map_err(|error| match error {
            // Only here is it known what users call it.
            TxnError::TreeBulkModified { tree } => {
                let named = self.manager.locks().map(|locks| locks.tree_name(tree.id));
                TxnError::TreeBulkModified { tree: named.unwrap_or(tree) }
            }
            other => other,
        })
    }

    /// What there was of `key` in a tree; `None`: what its page said just now.
    pub(super) fn seen(&self, tree: u32, key: &[u8]) -> Result<Option<Before>, TxnError> {
        let versions = self.manager.versions();
        let seen = versions.seen(&self.reader, tree, key)?;
        let counts = self.counts(tree)?;
        versions.is_whole(&self.reader)?;
        Ok(match (seen, counts) {
            (Some((_, ended)), Counts::VersionsTo(last)) if ended > last => Some(None),
            (Some((before, _)), _) => Some(before),
            (None, Counts::VersionsTo(_)) => Some(None),
            (None, Counts::All) => None,
        })
    }

    /// Appends the same of the keys between two bounds; answers whether there may be more, and
    /// whether what pages said counts at all.
    pub(super) fn window(
        &self,
        tree: u32,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        how: (bool, usize),
        out: &mut Window,
    ) -> Result<(bool, bool), TxnError> {
        let versions = self.manager.versions();
        let more = versions.window(&self.reader, tree, bounds, how, out)?;
        let counts = self.counts(tree)?;
        versions.is_whole(&self.reader)?;
        if let Counts::VersionsTo(last) = counts {
            for (_, (before, ended)) in out.iter_mut() {
                if *ended > last {
                    *before = None;
                }
            }
        }
        Ok((more, counts == Counts::All))
    }

    /// The entries between two bounds.
    pub fn range<'t, P: Pages>(
        self: &Arc<Self>,
        tree: &'t BTree<P>,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> SnapshotRange<'t, P> {
        SnapshotRange::new(self.clone(), tree, lower, upper)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.manager.versions().end(&self.reader);
    }
}
