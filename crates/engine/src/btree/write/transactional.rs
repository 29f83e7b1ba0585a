//! Writes on behalf of a transaction. Their log records include undo information, and the overflow
//! pages of the values that they replace are kept until the transaction has ended.

use std::sync::Arc;

use millpond_base::PageId;

use crate::btree::descend::held_anchor;
use crate::btree::error::WriteError;
use crate::btree::tree::BTree;
use crate::btree::value::large::{Detached, LargeValue};
use crate::btree::value::layout::set_word;
use crate::btree::write::pending::done_anyway;
use crate::btree::write::request::{
    NewValue, RootFate, UpdateOutcome, Updated, WriteCondition, WriteContext, WriteOutcome,
    WriteRequest,
};
use crate::page::record_body::OrphanRoot;
use crate::pool::{Actor, Pages, PoolError};

impl<P: Pages> BTree<P> {
    /// Sets or removes an entry if the request's condition holds. The overflow pages of the old
    /// value go to the caller. With [`NewValue::Detached`], the value stays detached if the write
    /// fails. If it succeeds, the entry takes the value over, or the value is freed if the
    /// condition does not hold.
    ///
    /// # Errors
    /// The key or value is too long, or the memory behind the tree failed.
    #[inline]
    pub fn write(&self, mut request: WriteRequest<'_>) -> Result<WriteOutcome, WriteError> {
        match request.value {
            NewValue::Removed => self.apply(&mut request, None).map_err(failed),
            NewValue::Bytes(value) => {
                self.check_sizes(request.key, value.len() as u64)?;
                if self.fits_inline(request.key, value.len() as u64) {
                    return self.apply(&mut request, None).map_err(failed);
                }
                let built = self.build(value)?;
                Ok(self.write_detached(request, built)?)
            }
            NewValue::Detached(value) => {
                let actor = request.context.actor;
                let outcome = self.apply(&mut request, None).map_err(failed)?;
                done_anyway(actor, self.free_below(value)).map_err(failed)?;
                Ok(outcome)
            }
        }
    }

    /// Like [`BTree::write`], but with a value whose pages are already written instead of the
    /// request's own value. The pages are freed if the condition does not hold or the write fails.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn write_detached(
        &self,
        request: WriteRequest<'_>,
        value: Detached,
    ) -> Result<WriteOutcome, PoolError> {
        let actor = request.context.actor;
        let mut request = WriteRequest { value: NewValue::Detached(&value), ..request };
        let result = self.apply(&mut request, None);
        done_anyway(actor, self.free_below(&value))?;
        result
    }

    /// Writes the pages of `value` if it cannot be inline; [`BTree::write_detached`] then attaches
    /// it to an entry.
    ///
    /// # Errors
    /// The key or value is too long, or the memory behind the tree failed.
    #[inline]
    pub fn build_large(&self, key: &[u8], value: &[u8]) -> Result<Option<Detached>, WriteError> {
        self.check_sizes(key, value.len() as u64)?;
        if self.fits_inline(key, value.len() as u64) {
            return Ok(None);
        }
        Ok(Some(self.build(value)?))
    }

    /// Attaches `value` to the entry of `key`.
    ///
    /// # Errors
    /// The memory behind the tree failed. The value is still detached, with all its pages.
    pub fn attach(
        &self,
        actor: Actor,
        key: &[u8],
        value: &Detached,
    ) -> Result<WriteOutcome, PoolError> {
        let request = WriteRequest::new(key, NewValue::Detached(value), WriteCondition::Always);
        let outcome = self.apply(&mut request.within(WriteContext::of(actor)), None)?;
        done_anyway(actor, self.free_below(value))?;
        Ok(outcome)
    }

    /// Overwrites a part of the inline value of `key`. Not applied if there is no such part.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn overwrite_part(
        &self,
        actor: Actor,
        key: &[u8],
        offset: usize,
        bytes: &[u8],
    ) -> Result<WriteOutcome, PoolError> {
        let (mut scratch, mut fits) = (Vec::new(), false);
        let context = WriteContext::of(actor);
        let UpdateOutcome { updated, at } =
            self.update_inline(key, context, &mut scratch, &mut |value| {
                if let Some(place) = value.get_mut(offset..offset.saturating_add(bytes.len())) {
                    place.copy_from_slice(bytes);
                    fits = true;
                }
            })?;
        debug_assert!(!fits || updated == Updated::Done);
        let existed = updated != Updated::Absent;
        Ok(WriteOutcome { existed, applied: fits, at, ..WriteOutcome::default() })
    }

    /// Opens an orphan that the log names.
    ///
    /// # Errors
    /// There is no memory.
    pub fn detached(&self, value: LargeValue) -> Result<Detached, PoolError> {
        let anchor = self.pages.anchor_of(self.owner, value.root)?;
        self.pages.run(|mtr| {
            set_word(held_anchor(mtr, anchor)?.page_mut(), anchor.stamp(), value.stamp);
            Ok(())
        })?;
        Ok(Detached::below(anchor, value))
    }

    /// Reads a detached value.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn read_detached(&self, value: &Detached) -> Result<Vec<u8>, PoolError> {
        let mut bytes = Vec::new();
        self.read_below(value, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads up to `max` bytes of a detached value from `offset` on, at least one, into `out`.
    ///
    /// # Errors
    /// See [`BTree::read_detached`].
    pub fn read_detached_from(
        &self,
        value: &Detached,
        offset: u64,
        max: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), PoolError> {
        out.clear();
        self.read_some_below(value, offset, max, out)
    }

    /// Frees the pages of a detached value.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn free_detached(&self, value: Detached) -> Result<(), PoolError> {
        self.free_below(&value)
    }

    /// Inserts an entry that names the structure whose root, an orphan until now, is `root`.
    /// Returns `false` if the key exists.
    ///
    /// # Errors
    /// The key or value is too long, or the memory behind the tree failed.
    pub fn insert_attaching(
        &self,
        key: &[u8],
        value: &[u8],
        root: PageId,
    ) -> Result<bool, WriteError> {
        self.check_sizes(key, value.len() as u64)?;
        let request = WriteRequest::new(key, NewValue::Bytes(value), WriteCondition::Absent);
        let context = WriteContext::root(RootFate::Attached(root));
        Ok(self.apply(&mut request.within(context), None)?.applied)
    }

    /// Removes the entry that names the structure whose root is `root`, which becomes an orphan of
    /// page type `kind`. Returns `false` if there is no such entry.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn remove_orphaning(&self, key: &[u8], root: PageId, kind: u8) -> Result<bool, PoolError> {
        let request = WriteRequest::new(key, NewValue::Removed, WriteCondition::Present);
        let fate = RootFate::Orphaned(root, OrphanRoot { kind, stamp: 0 });
        Ok(self.apply(&mut request.within(WriteContext::root(fate)), None)?.applied)
    }

    /// Frees the pages of the value with the given stamp, whose root is an orphan.
    ///
    /// # Errors
    /// The memory behind the tree failed; [`PoolError::Misfit`] if the root belongs to another
    /// value.
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

/// Converts an error, out of line.
#[cold]
#[inline(never)]
fn failed(error: PoolError) -> WriteError {
    error.into()
}
