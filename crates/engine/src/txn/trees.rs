//! Access of a store's versions and undo lists to its structures.

use crate::btree::Detached;
use crate::pool::PoolError;
use crate::txn::before_image::Found;
use crate::txn::error::TxnError;
use crate::txn::structure::{LargeValues, Structure};

/// Returns a key's entry; a large value as a whole if the argument is `true`.
pub type Look<'l, 't> = dyn FnMut(bool) -> Result<Option<Found<'t>>, PoolError> + 'l;

/// Takes keys, each with a closure that reads its entry.
pub type Each<'e> = dyn FnMut(&[u8], &mut Look<'_, '_>) -> Result<(), PoolError> + 'e;

/// The structures of a store, for readers of an undo list.
pub trait Trees {
    /// Returns the present value of `key` in the structure whose pages carry the id `owner`.
    ///
    /// # Errors
    /// There is no such structure, or it cannot be read.
    fn value(&mut self, owner: u32, key: &[u8]) -> Result<Option<Vec<u8>>, TxnError>;

    /// Reads a large value that was detached from such a tree.
    ///
    /// # Errors
    /// Same as [`Trees::value`].
    fn large(&mut self, owner: u32, value: &Detached) -> Result<Vec<u8>, TxnError>;

    /// Reads up to `max` bytes of such a value from `offset`, at least one, into `out`.
    ///
    /// # Errors
    /// Same as [`Trees::value`].
    fn large_from(
        &mut self,
        owner: u32,
        value: &Detached,
        offset: u64,
        max: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), TxnError>;
}

/// The structures that a transaction changed, found by a function of their owner id.
pub(super) struct TreesBy<'f, 't>(pub(super) &'f StructureOf<'f, 't>);

/// Returns the structure whose pages carry an owner id.
pub type StructureOf<'f, 't> = dyn Fn(u32) -> Option<&'t dyn Structure> + 'f;

impl<'t> TreesBy<'_, 't> {
    fn structure(&self, owner: u32) -> Result<&'t dyn Structure, TxnError> {
        (self.0)(owner).ok_or(TxnError::NoTree { tx: 0, owner })
    }

    fn tree(&self, owner: u32) -> Result<&'t dyn LargeValues, TxnError> {
        self.structure(owner)?.large_values().ok_or(TxnError::NoTree { tx: 0, owner })
    }
}

impl Trees for TreesBy<'_, '_> {
    fn value(&mut self, owner: u32, key: &[u8]) -> Result<Option<Vec<u8>>, TxnError> {
        Ok(self.structure(owner)?.value(key)?)
    }

    fn large(&mut self, owner: u32, value: &Detached) -> Result<Vec<u8>, TxnError> {
        Ok(self.tree(owner)?.read_detached(value)?)
    }

    fn large_from(
        &mut self,
        owner: u32,
        value: &Detached,
        offset: u64,
        max: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), TxnError> {
        Ok(self.tree(owner)?.read_detached_from(value, offset, max, out)?)
    }
}
