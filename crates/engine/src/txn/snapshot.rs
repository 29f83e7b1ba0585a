//! Snapshots: the committed state of one moment, read without locks.

use std::borrow::Cow;
use std::ops::Bound;
use std::panic::Location;
use std::sync::Arc;

use crate::btree::BTree;
use crate::page::Scratch;
use crate::pool::Pages;
use crate::txn::before_image::Unread;

use crate::txn::bounds::Bounds;
use crate::txn::error::TxnError;
use crate::txn::manager::TransactionManager;

use crate::txn::trees::Trees;
use crate::txn::versions::{Image, Reader, Visible, Window};

/// Maximum changed keys counted at a time.
const CHANGED: usize = 1024;

/// A consistent view of the state that was committed when it began. It takes no locks; versions of
/// entries that others change are kept for it (`versions/version_store.rs`).
pub struct Snapshot {
    manager: Arc<TransactionManager>,
    reader: Arc<Reader>,
}

impl Snapshot {
    /// Begins a snapshot on behalf of `caller`, which warnings name.
    ///
    /// # Errors
    /// The store has no locks, so that at no moment all changes are known to be committed; or the
    /// versions of active writers cannot be read, or need too much memory.
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

    /// Calls `f` with the value of `key`; `None` if the snapshot has no such key.
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
        // The page first, the versions afterwards (rule 1 of versions).
        let found = tree.get_scratch(key, &mut scratch)?;
        if let Some(seen) = self.seen(tree.owner(), key)? {
            let value = seen.before(0).map(|before| self.whole(before)).transpose()?;
            return Ok(value.map(|value| f(&value)));
        }
        Ok(found.map(&scratch, f))
    }

    /// Returns the number of entries that a tree had; `None` if that needs a walk over all its
    /// keys.
    ///
    /// Corrects the present number by the changes since: as long as nobody adds or removes an entry
    /// in the meantime, each key with a version is looked up in the pages.
    ///
    /// # Errors
    /// Same as [`Snapshot::get`].
    pub fn count<P: Pages>(&self, tree: &BTree<P>) -> Result<Option<u64>, TxnError> {
        let (owner, rows) = (tree.owner(), self.manager.rows());
        // The count first, the versions afterwards, as with pages.
        let Some((now, state)) = rows.of(owner) else { return Ok(None) };
        let (mut count, mut changed) = (now.all as i64, Window::default());
        let mut from: Bound<Vec<u8>> = Bound::Unbounded;
        loop {
            changed.clear();
            let lower = from.as_ref().map(Vec::as_slice);
            let bounds = Bounds { lower, upper: Bound::Unbounded };
            let (more, is_visible) = self.window(owner, bounds, true, CHANGED, &mut changed)?;
            if !is_visible {
                return Ok(None);
            }
            for (key, before) in changed.iter() {
                count += i64::from(before.is_some()) - i64::from(tree.contains(key)?);
            }
            match changed.last() {
                Some(last) if more => from = Bound::Excluded(last.to_vec()),
                Some(_) => break,
                None if more => return Ok(None),
                // Nothing was changed before the count was taken.
                None if from == Bound::Unbounded => return Ok(Some(now.all)),
                None => break,
            }
        }
        Ok(u64::try_from(count).ok().filter(|_| rows.state(owner) == state))
    }

    /// Returns `true` if `key` was changed since the snapshot began, or may have been.
    ///
    /// # Errors
    /// The snapshot is lost.
    pub fn is_changed<P: Pages>(&self, tree: &BTree<P>, key: &[u8]) -> Result<bool, TxnError> {
        Ok(self.seen(tree.owner(), key)?.is_some())
    }

    /// Reads a before image.
    pub(super) fn whole<'i>(&self, image: Image<'i>) -> Result<Cow<'i, [u8]>, TxnError> {
        match image {
            Image::Bytes(value) => Ok(Cow::Borrowed(value)),
            Image::Apart(before_image) => before_image.whole().map_err(|error| match error {
                Unread::Spill(error) => self.reader.unreadable(error),
                Unread::Pages(error) => TxnError::VersionUnreadable(error),
            }),
        }
    }

    /// Returns the visible part of a tree.
    fn visible(&self, tree: u32) -> Result<Visible, TxnError> {
        self.manager.versions().visible(&self.reader, tree).map_err(|error| match error {
            // The tree's name is only known here.
            TxnError::TreeBulkModified { tree } => {
                let named = self.manager.locks().map(|locks| locks.tree_name(tree.id));
                TxnError::TreeBulkModified { tree: named.unwrap_or(tree) }
            }
            other => other,
        })
    }

    /// Returns the snapshot's value of `key`, as the first before image of a window, or `None` if
    /// the value in the page is the right one.
    pub(super) fn seen(&self, tree: u32, key: &[u8]) -> Result<Option<Window>, TxnError> {
        let versions = self.manager.versions();
        let mut seen = Window::default();
        versions.seen(&self.reader, tree, key, &mut seen)?;
        let visible = self.visible(tree)?;
        versions.check_lost(&self.reader)?;
        if let Visible::VersionsTo(last) = visible {
            seen.hide_after(last);
        }
        let is_changed = seen.len() > 0 || visible != Visible::All;
        Ok(is_changed.then_some(seen))
    }

    /// Appends the versions of the snapshot between two bounds. Returns whether there may be more,
    /// and whether the pages are visible at all.
    pub(super) fn window(
        &self,
        tree: u32,
        bounds: Bounds<'_>,
        forward: bool,
        limit: usize,
        out: &mut Window,
    ) -> Result<(bool, bool), TxnError> {
        let versions = self.manager.versions();
        let more = versions.window(&self.reader, tree, bounds, forward, limit, out)?;
        let visible = self.visible(tree)?;
        versions.check_lost(&self.reader)?;
        if let Visible::VersionsTo(last) = visible {
            out.hide_after(last);
        }
        Ok((more, visible == Visible::All))
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if self.manager.is_here() {
            self.manager.versions().end(&self.reader);
        }
    }
}
