//! Changing entries on behalf of a transaction: the same changes, whose records say how they are
//! taken back, and whose large values that went are kept until the transaction is over.

use std::sync::Arc;

use millpond_base::{Lsn, PageId};

use crate::btree::change::{New, RootFate, TxnContext, Updated, When, done_anyway, held_anchor};
use crate::btree::error::WriteError;
use crate::btree::note::LargeValue;
use crate::btree::overflow::{Built, set_word};
use crate::btree::tree::BTree;
use crate::page::record_body::OrphanRoot;
use crate::pool::{ANCHOR_STAMP, Actor, Pages, PoolError};

/// What must hold for a change to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Condition {
    /// Nothing.
    #[default]
    Always,
    /// The key is not there.
    Absent,
    /// The key is there.
    Present,
}

/// A value in pages of its own that no entry refers to: to be put back, or to be freed.
pub struct Detached(pub(crate) Built);

impl Detached {
    /// Its stamp, which no other value has.
    pub fn stamp(&self) -> u64 {
        self.0.stamp
    }

    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        self.0.len
    }

    /// Whether it is empty, which it never is.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }
}

/// How a change went.
pub struct Applied {
    /// Whether the key was there.
    pub existed: bool,
    /// Whether the change was made.
    pub applied: bool,
    /// Where its record begins in the log; 0 if there is none.
    pub at: Lsn,
    /// The large value that the entry had.
    pub gone: Option<Detached>,
}

impl Condition {
    fn when(self) -> When<'static> {
        match self {
            Condition::Always => When::Always,
            Condition::Absent => When::Absent,
            Condition::Present => When::Present,
        }
    }
}

impl<P: Pages> BTree<P> {
    /// Sets the entry of `key` to `value`, or removes it, if `condition` holds. How that is taken
    /// back is appended to `undo` ([`Undo`](super::Undo)): nothing if nothing was changed.
    ///
    /// # Errors
    /// Key or value too long, or the memory behind the tree failed.
    #[inline]
    pub fn write_as(
        &self,
        actor: Actor,
        key: &[u8],
        value: Option<&[u8]>,
        condition: Condition,
        undo: Option<&mut Vec<u8>>,
    ) -> Result<Applied, WriteError> {
        let (when, context) = (condition.when(), TxnContext { actor, undo, root: RootFate::None });
        let Some(value) = value else {
            let made = self.change_by(context, key, New::Nothing, When::Present, None);
            return made.map_err(failed);
        };
        self.check_sizes(key, value.len() as u64)?;
        if self.fits_inline(key, value.len() as u64) {
            return self.change_by(context, key, New::Inline(value), when, None).map_err(failed);
        }
        let built = Detached(self.build(value)?);
        Ok(self.place_as(actor, key, built, condition, context.undo)?)
    }

    /// Writes the pages of `value` if it cannot be inline: [`BTree::place_as`] makes it an entry.
    ///
    /// # Errors
    /// Key or value too long, or the memory behind the tree failed.
    #[inline]
    pub fn build_large(&self, key: &[u8], value: &[u8]) -> Result<Option<Detached>, WriteError> {
        self.check_sizes(key, value.len() as u64)?;
        if self.fits_inline(key, value.len() as u64) {
            return Ok(None);
        }
        Ok(Some(Detached(self.build(value)?)))
    }

    /// As [`BTree::write_as`] with a value whose pages are written already. They are freed if the
    /// condition does not hold.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn place_as(
        &self,
        actor: Actor,
        key: &[u8],
        built: Detached,
        condition: Condition,
        undo: Option<&mut Vec<u8>>,
    ) -> Result<Applied, PoolError> {
        let context = TxnContext { actor, undo, root: RootFate::None };
        let made = self.change_by(context, key, New::Built(&built.0), condition.when(), None);
        done_anyway(actor, self.free_below(&built.0))?;
        made
    }

    /// Gives `key` the large value `detached`, which is not detached any more.
    ///
    /// # Errors
    /// The memory behind the tree failed; the value is detached as before, with all its pages.
    pub fn attach_as(
        &self,
        actor: Actor,
        key: &[u8],
        detached: &Detached,
    ) -> Result<Applied, PoolError> {
        let new = New::Built(&detached.0);
        let made = self.change_by(TxnContext::of(actor), key, new, When::Always, None)?;
        done_anyway(actor, self.free_below(&detached.0))?;
        Ok(made)
    }

    /// Overwrites a part of the inline value of `key`; not applied if there is no such part.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn patch_as(
        &self,
        actor: Actor,
        key: &[u8],
        offset: usize,
        bytes: &[u8],
    ) -> Result<Applied, PoolError> {
        let (mut room, mut fits) = (Vec::new(), false);
        let (updated, at) = self.update_as(actor, key, (None, &mut room), &mut |value| {
            if let Some(place) = value.get_mut(offset..offset.saturating_add(bytes.len())) {
                place.copy_from_slice(bytes);
                fits = true;
            }
        })?;
        Ok(Applied { existed: updated != Updated::Absent, applied: fits, at, gone: None })
    }

    /// The large value that the log tells of, whose pages hang.
    ///
    /// # Errors
    /// No memory.
    pub fn detached(&self, value: LargeValue) -> Result<Detached, PoolError> {
        let anchor = self.pages.anchor_of(self.owner, value.root)?;
        self.pages.run(|mtr| {
            set_word(held_anchor(mtr, anchor)?.page_mut(), ANCHOR_STAMP, value.stamp);
            Ok(())
        })?;
        Ok(Detached(Built::of(anchor, value)))
    }

    /// A large value that no entry refers to.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn read_detached(&self, detached: &Detached) -> Result<Vec<u8>, PoolError> {
        let mut value = Vec::new();
        self.read_below(&detached.0, &mut value)?;
        Ok(value)
    }

    /// Up to `max` bytes of such a value from `offset`, at least one, into `out`.
    ///
    /// # Errors
    /// As [`BTree::read_detached`].
    pub fn read_detached_from(
        &self,
        detached: &Detached,
        offset: u64,
        max: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), PoolError> {
        out.clear();
        self.read_some_below(&detached.0, offset, max, out)
    }

    /// Frees the pages of a large value for good.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn free_detached(&self, detached: Detached) -> Result<(), PoolError> {
        self.free_below(&detached.0)
    }

    /// Inserts an entry that tells of the structure whose root is `root` and hung until now;
    /// `false` if the key is there already.
    ///
    /// # Errors
    /// Key or value too long, or the memory behind the tree failed.
    pub fn insert_attaching(
        &self,
        key: &[u8],
        value: &[u8],
        root: PageId,
    ) -> Result<bool, WriteError> {
        self.check_sizes(key, value.len() as u64)?;
        let context = TxnContext::root(RootFate::Attached(root));
        Ok(self.change_by(context, key, New::Inline(value), When::Absent, None)?.applied)
    }

    /// Removes the entry that tells of the structure whose root is `root`, which hangs from then
    /// on; `kind` says what it is the root of. `false` if there is no such entry.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn remove_orphaning(&self, key: &[u8], root: PageId, kind: u8) -> Result<bool, PoolError> {
        let context = TxnContext::root(RootFate::Orphaned(root, OrphanRoot { kind, stamp: 0 }));
        Ok(self.change_by(context, key, New::Nothing, When::Present, None)?.applied)
    }

    /// Frees the pages of the large value of that stamp whose root hangs below nothing.
    ///
    /// # Errors
    /// The memory behind the tree failed; [`PoolError::Misfit`] if the root is another value's.
    pub fn free_orphan(
        pages: Arc<P>,
        owner: u32,
        root: PageId,
        stamp: u64,
    ) -> Result<(), PoolError> {
        let tree = BTree::open(pages, owner, root)?;
        tree.free_stamped_below(tree.anchor, stamp)
    }
}

/// Apart from the path of what succeeds.
#[cold]
#[inline(never)]
fn failed(error: PoolError) -> WriteError {
    error.into()
}
