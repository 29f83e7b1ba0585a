//! The interface of structures (trees, hash indexes and heaps) for transactions, undo and versions.
//!
//! Locks, undo records and versions identify an entry by the owner id of its structure and by a
//! key. That is the key itself in a tree, the key behind its hash in a hash index, and the record's
//! id in a heap. A transaction's hot path is compiled for each [`Keyed`]: for trees in each
//! combination, and for all other structures at once through [`Structure`].

use crate::btree::{
    BTree, Detached, UpdateOutcome, WriteContext, WriteError, WriteOutcome, WriteRequest,
};
use crate::hash_index::{HashIndex, split_name};
use crate::heap::{Heap, Placing, RecordId};
use crate::page::Batch;
use crate::pool::{Actor, Pages, PoolError};
use crate::txn::before_image::{Found, find};
use crate::txn::error::TxnError;

/// A structure of any kind, for undo and versions.
pub trait Structure: Send + Sync {
    /// Returns the owner id in the headers of its pages.
    fn owner(&self) -> u32;

    /// Returns the entry of `key`. A large value is not read yet, unless `is_whole` is set.
    ///
    /// # Errors
    /// The memory behind the structure failed.
    fn find(&self, key: &[u8], is_whole: bool) -> Result<Option<Found<'_>>, PoolError> {
        let _ = is_whole;
        Ok(self.value(key)?.map(Found::Whole))
    }

    /// Returns the value of `key`.
    ///
    /// # Errors
    /// Same as [`Structure::find`].
    fn value(&self, key: &[u8]) -> Result<Option<Vec<u8>>, PoolError>;

    /// Sets or removes the entry of a key, if the request's condition holds.
    ///
    /// # Errors
    /// Key or value too long, or the memory behind the structure failed.
    fn write(&self, request: WriteRequest<'_>) -> Result<WriteOutcome, TxnError>;

    /// Lets `f` change the bytes of a value in place.
    ///
    /// # Errors
    /// Same as [`Structure::find`].
    fn update(
        &self,
        key: &[u8],
        context: WriteContext<'_>,
        scratch: &mut Vec<u8>,
        f: &mut dyn FnMut(&mut [u8]),
    ) -> Result<UpdateOutcome, PoolError>;

    /// Frees the remains of an entry that the committed transaction `tx` removed.
    ///
    /// # Errors
    /// Same as [`Structure::find`].
    fn release(&self, key: &[u8], tx: u64) -> Result<(), PoolError> {
        let _ = (key, tx);
        Ok(())
    }

    /// Returns `true` if [`Structure::release`] has work after a removal.
    fn keeps_removed(&self) -> bool {
        false
    }

    /// Returns an id under which `record` can be inserted in a heap, and for which `may` returns
    /// `true`. If a transaction removed the record at that place, `may` receives the transaction.
    /// It is called under a latch.
    ///
    /// # Errors
    /// The record is too long, or the memory behind the structure failed.
    fn place_for(
        &self,
        record: &[u8],
        may: &mut dyn FnMut(RecordId, Option<u64>) -> bool,
    ) -> Result<RecordId, TxnError> {
        let _ = (record, may);
        Err(TxnError::NoTree { tx: 0, owner: self.owner() })
    }

    /// Copies the entries of a batch from position `from` on, or, backwards, before `from`, into
    /// `batch`. Returns the position up to which these are all, or `None` at the end. A position is
    /// the beginning of a key; `u64::MAX` is the end. Not for trees, which have cursors.
    ///
    /// # Errors
    /// Same as [`Structure::find`].
    fn batch(&self, from: u64, forward: bool, batch: &mut Batch) -> Result<Option<u64>, PoolError> {
        let _ = (from, forward, batch);
        Ok(None)
    }

    /// Returns its interface for large values, if it can have any.
    fn large_values(&self) -> Option<&dyn LargeValues> {
        None
    }
}

/// A structure with values in overflow pages.
pub trait LargeValues {
    /// Returns `true` if a value of `len` bytes can be stored in the page of its key's entry.
    fn fits_inline(&self, key: &[u8], len: u64) -> bool;

    /// Makes `value` the value of `key`.
    ///
    /// # Errors
    /// The memory behind the structure failed.
    fn attach(&self, actor: Actor, key: &[u8], value: &Detached)
    -> Result<WriteOutcome, PoolError>;

    /// Opens an orphan that the log names.
    ///
    /// # Errors
    /// Same as [`LargeValues::attach`].
    fn detached(&self, value: crate::btree::LargeValue) -> Result<Detached, PoolError>;

    /// Reads a detached value.
    ///
    /// # Errors
    /// Same as [`LargeValues::attach`].
    fn read_detached(&self, value: &Detached) -> Result<Vec<u8>, PoolError>;

    /// Reads up to `max` bytes of a detached value from `offset`, at least one, into `out`.
    ///
    /// # Errors
    /// Same as [`LargeValues::attach`].
    fn read_detached_from(
        &self,
        value: &Detached,
        offset: u64,
        max: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), PoolError>;

    /// Frees the pages of a detached value.
    ///
    /// # Errors
    /// Same as [`LargeValues::attach`].
    fn free_detached(&self, value: Detached) -> Result<(), PoolError>;
}

/// Frees a large value that is no longer needed. If that fails, the rest of its pages is freed at
/// the next opening of the store.
pub(super) fn free(structure: &dyn Structure, large: Detached) {
    if let Some(trees) = structure.large_values()
        && let Err(error) = trees.free_detached(large)
    {
        tracing::warn!(%error, "the pages of a large value could not be freed");
    }
}

/// A structure that a transaction writes to.
pub trait Keyed {
    /// Error of a write.
    type Error: Into<TxnError>;

    /// Returns the structure.
    fn structure(&self) -> &dyn Structure;

    /// Returns the owner id in the headers of its pages.
    fn owner_id(&self) -> u32;

    /// Returns `true` if the slot of a removed entry is kept until the transaction is over.
    #[inline(always)]
    fn keeps_removed(&self) -> bool {
        false
    }

    /// Calls `f` with the value of `key`; `None` if there is no such key.
    ///
    /// # Errors
    /// The memory behind the structure failed.
    fn look<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, PoolError>;

    /// Writes the pages of `value` if it needs any.
    ///
    /// # Errors
    /// Key or value too long, or the memory behind the structure failed.
    fn large(&self, key: &[u8], value: &[u8]) -> Result<Option<Detached>, Self::Error>;

    /// Sets or removes the entry of a key, if the request's condition holds.
    ///
    /// # Errors
    /// Same as [`Keyed::large`].
    fn put(&self, request: WriteRequest<'_>) -> Result<WriteOutcome, Self::Error>;

    /// Like [`Keyed::put`], for a value whose pages are written already.
    ///
    /// # Errors
    /// Same as [`Keyed::large`].
    fn put_large(
        &self,
        request: WriteRequest<'_>,
        value: Detached,
    ) -> Result<WriteOutcome, Self::Error>;

    /// Lets `f` change the bytes of a value in place.
    ///
    /// # Errors
    /// The memory behind the structure failed.
    fn change(
        &self,
        key: &[u8],
        context: WriteContext<'_>,
        scratch: &mut Vec<u8>,
        f: &mut dyn FnMut(&mut [u8]),
    ) -> Result<UpdateOutcome, PoolError>;
}

impl<P: Pages> Keyed for BTree<P> {
    type Error = WriteError;

    #[inline(always)]
    fn structure(&self) -> &dyn Structure {
        self
    }

    #[inline(always)]
    fn owner_id(&self) -> u32 {
        BTree::owner(self)
    }

    #[inline(always)]
    fn look<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, PoolError> {
        self.get(key, f)
    }

    #[inline(always)]
    fn large(&self, key: &[u8], value: &[u8]) -> Result<Option<Detached>, WriteError> {
        self.build_large(key, value)
    }

    #[inline(always)]
    fn put(&self, request: WriteRequest<'_>) -> Result<WriteOutcome, WriteError> {
        BTree::write(self, request)
    }

    #[inline(always)]
    fn put_large(
        &self,
        request: WriteRequest<'_>,
        value: Detached,
    ) -> Result<WriteOutcome, WriteError> {
        self.write_detached(request, value).map_err(WriteError::from)
    }

    #[inline(always)]
    fn change(
        &self,
        key: &[u8],
        context: WriteContext<'_>,
        scratch: &mut Vec<u8>,
        f: &mut dyn FnMut(&mut [u8]),
    ) -> Result<UpdateOutcome, PoolError> {
        self.update_inline(key, context, scratch, f)
    }
}

impl Keyed for dyn Structure + '_ {
    type Error = TxnError;

    fn structure(&self) -> &dyn Structure {
        self
    }

    fn owner_id(&self) -> u32 {
        self.owner()
    }

    fn keeps_removed(&self) -> bool {
        Structure::keeps_removed(self)
    }

    fn look<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, PoolError> {
        Ok(self.value(key)?.map(|value| f(&value)))
    }

    fn large(&self, _: &[u8], _: &[u8]) -> Result<Option<Detached>, TxnError> {
        Ok(None)
    }

    fn put(&self, request: WriteRequest<'_>) -> Result<WriteOutcome, TxnError> {
        self.write(request)
    }

    fn put_large(&self, _: WriteRequest<'_>, value: Detached) -> Result<WriteOutcome, TxnError> {
        debug_assert!(false, "only trees have large values, and {} bytes are one", value.len());
        Ok(WriteOutcome::default())
    }

    fn change(
        &self,
        key: &[u8],
        context: WriteContext<'_>,
        scratch: &mut Vec<u8>,
        f: &mut dyn FnMut(&mut [u8]),
    ) -> Result<UpdateOutcome, PoolError> {
        self.update(key, context, scratch, f)
    }
}

impl<P: Pages> Structure for BTree<P> {
    fn owner(&self) -> u32 {
        BTree::owner(self)
    }

    fn find(&self, key: &[u8], is_whole: bool) -> Result<Option<Found<'_>>, PoolError> {
        find(self, key, is_whole)
    }

    fn value(&self, key: &[u8]) -> Result<Option<Vec<u8>>, PoolError> {
        self.get_owned(key)
    }

    fn write(&self, request: WriteRequest<'_>) -> Result<WriteOutcome, TxnError> {
        Ok(BTree::write(self, request)?)
    }

    fn update(
        &self,
        key: &[u8],
        context: WriteContext<'_>,
        scratch: &mut Vec<u8>,
        f: &mut dyn FnMut(&mut [u8]),
    ) -> Result<UpdateOutcome, PoolError> {
        self.update_inline(key, context, scratch, f)
    }

    fn large_values(&self) -> Option<&dyn LargeValues> {
        Some(self)
    }
}

impl<P: Pages> LargeValues for BTree<P> {
    fn fits_inline(&self, key: &[u8], len: u64) -> bool {
        self.limits().fits_inline(key.len(), len)
    }

    fn attach(
        &self,
        actor: Actor,
        key: &[u8],
        value: &Detached,
    ) -> Result<WriteOutcome, PoolError> {
        BTree::attach(self, actor, key, value)
    }

    fn detached(&self, value: crate::btree::LargeValue) -> Result<Detached, PoolError> {
        BTree::detached(self, value)
    }

    fn read_detached(&self, value: &Detached) -> Result<Vec<u8>, PoolError> {
        BTree::read_detached(self, value)
    }

    fn read_detached_from(
        &self,
        value: &Detached,
        offset: u64,
        max: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), PoolError> {
        BTree::read_detached_from(self, value, offset, max, out)
    }

    fn free_detached(&self, value: Detached) -> Result<(), PoolError> {
        BTree::free_detached(self, value)
    }
}

impl<P: Pages> Structure for HashIndex<P> {
    fn owner(&self) -> u32 {
        HashIndex::owner(self)
    }

    fn batch(&self, from: u64, _: bool, batch: &mut Batch) -> Result<Option<u64>, PoolError> {
        HashIndex::batch(self, from, batch)
    }

    fn value(&self, key: &[u8]) -> Result<Option<Vec<u8>>, PoolError> {
        split_name(key).map_or(Ok(None), |(_, key)| self.get_owned(key))
    }

    fn write(&self, request: WriteRequest<'_>) -> Result<WriteOutcome, TxnError> {
        Ok(HashIndex::write(self, request)?)
    }

    fn update(
        &self,
        key: &[u8],
        context: WriteContext<'_>,
        scratch: &mut Vec<u8>,
        f: &mut dyn FnMut(&mut [u8]),
    ) -> Result<UpdateOutcome, PoolError> {
        self.update_inline(key, context, scratch, f)
    }
}

impl<P: Pages> Structure for Heap<P> {
    fn owner(&self) -> u32 {
        Heap::owner(self)
    }

    fn place_for(
        &self,
        record: &[u8],
        may: &mut dyn FnMut(RecordId, Option<u64>) -> bool,
    ) -> Result<RecordId, TxnError> {
        let place = |id, removed| match may(id, removed) {
            true => Placing::Choose,
            false => Placing::Refuse,
        };
        Ok(self.place_record(record, &mut { place })?)
    }

    fn batch(&self, from: u64, forward: bool, batch: &mut Batch) -> Result<Option<u64>, PoolError> {
        Heap::batch(self, from, forward, batch)
    }

    fn value(&self, key: &[u8]) -> Result<Option<Vec<u8>>, PoolError> {
        RecordId::of_key(key).map_or(Ok(None), |id| self.get_owned(id))
    }

    fn write(&self, request: WriteRequest<'_>) -> Result<WriteOutcome, TxnError> {
        Ok(Heap::write(self, request)?)
    }

    fn update(
        &self,
        key: &[u8],
        context: WriteContext<'_>,
        scratch: &mut Vec<u8>,
        f: &mut dyn FnMut(&mut [u8]),
    ) -> Result<UpdateOutcome, PoolError> {
        self.update_inline(key, context, scratch, f)
    }

    fn release(&self, key: &[u8], tx: u64) -> Result<(), PoolError> {
        RecordId::of_key(key).map_or(Ok(()), |id| Heap::release(self, id, tx))
    }

    fn keeps_removed(&self) -> bool {
        true
    }
}
