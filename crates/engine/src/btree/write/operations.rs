//! Writes of single keys outside transactions: insert, upsert, replace, compare-and-swap, remove.

use crate::btree::error::WriteError;
use crate::btree::tree::BTree;
use crate::btree::value::large::Detached;
use crate::btree::write::finger::Finger;
use crate::btree::write::request::{
    NewValue, WriteCondition, WriteContext, WriteOutcome, WriteRequest,
};
use crate::pool::{Pages, PoolError};

impl<P: Pages> BTree<P> {
    /// Inserts an entry. Returns `false`, and changes nothing, if the key exists.
    ///
    /// # Errors
    /// The key or value is too long, or the memory behind the tree failed.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, WriteError> {
        Ok(self.put(key, value, WriteCondition::Absent, None)?.applied)
    }

    /// Inserts an entry, or replaces its value; returns whether the key existed.
    ///
    /// # Errors
    /// See [`BTree::insert`].
    pub fn upsert(&self, key: &[u8], value: &[u8]) -> Result<bool, WriteError> {
        Ok(self.put(key, value, WriteCondition::Always, None)?.existed)
    }

    /// Inserts an entry, or replaces its value; returns the value that was replaced.
    ///
    /// # Errors
    /// See [`BTree::insert`].
    pub fn upsert_returning(
        &self,
        key: &[u8],
        value: &[u8],
    ) -> Result<Option<Vec<u8>>, WriteError> {
        let mut old = Vec::new();
        let outcome = self.put(key, value, WriteCondition::Always, Some(&mut old))?;
        Ok(outcome.existed.then_some(old))
    }

    /// Replaces the value of a key. Returns `false`, and changes nothing, if the key does not
    /// exist.
    ///
    /// # Errors
    /// See [`BTree::insert`].
    pub fn replace(&self, key: &[u8], value: &[u8]) -> Result<bool, WriteError> {
        Ok(self.put(key, value, WriteCondition::Present, None)?.applied)
    }

    /// Sets the value of `key` to `new` if it is `expected`, where `None` means no entry. Returns
    /// whether it was. Other threads see this as one step.
    ///
    /// # Errors
    /// See [`BTree::insert`].
    pub fn compare_and_swap(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, WriteError> {
        match (expected, new) {
            (None, None) => Ok(!self.contains(key)?),
            (None, Some(new)) => self.insert(key, new),
            (Some(old), Some(new)) => {
                Ok(self.put(key, new, WriteCondition::Equals(old), None)?.applied)
            }
            (Some(old), None) => Ok(self.take(key, WriteCondition::Equals(old), None)?.applied),
        }
    }

    /// Removes the entry of a key; returns `false` if the key is missing.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn remove(&self, key: &[u8]) -> Result<bool, PoolError> {
        Ok(self.take(key, WriteCondition::Present, None)?.applied)
    }

    /// Removes the entry of `key` if its value is `value`; returns whether it was. Uses a finger,
    /// for entries that are removed one after the other.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn remove_if(
        &self,
        key: &[u8],
        value: &[u8],
        finger: &mut Finger,
    ) -> Result<bool, PoolError> {
        let context = WriteContext::default().by(finger);
        let condition = WriteCondition::Equals(value);
        let mut request = WriteRequest::new(key, NewValue::Removed, condition).within(context);
        Ok(self.apply_and_free(&mut request, None)?.applied)
    }

    /// Removes an entry; returns its value.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn remove_returning(&self, key: &[u8]) -> Result<Option<Vec<u8>>, PoolError> {
        let mut old = Vec::new();
        let outcome = self.take(key, WriteCondition::Present, Some(&mut old))?;
        Ok(outcome.applied.then_some(old))
    }

    /// Sets the value of `key`, or removes it, if `condition` holds. Copies the old value to `old`.
    ///
    /// # Errors
    /// See [`BTree::insert`].
    pub fn set(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        condition: WriteCondition<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Result<WriteOutcome, WriteError> {
        match value {
            Some(value) => self.put(key, value, condition, old),
            None => Ok(self.take(key, condition, old)?),
        }
    }

    #[inline]
    fn put(
        &self,
        key: &[u8],
        value: &[u8],
        condition: WriteCondition<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Result<WriteOutcome, WriteError> {
        self.check_sizes(key, value.len() as u64)?;
        if self.fits_inline(key, value.len() as u64) {
            let mut request = WriteRequest::new(key, NewValue::Bytes(value), condition);
            return Ok(self.apply_and_free(&mut request, old)?);
        }
        let value = self.build(value)?;
        Ok(self.put_detached(key, &value, condition, old)?)
    }

    #[inline]
    fn take(
        &self,
        key: &[u8],
        condition: WriteCondition<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Result<WriteOutcome, PoolError> {
        self.apply_and_free(&mut WriteRequest::new(key, NewValue::Removed, condition), old)
    }

    /// Writes a value whose pages are built, and frees them unless the entry has taken them over.
    pub(crate) fn put_detached(
        &self,
        key: &[u8],
        value: &Detached,
        condition: WriteCondition<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Result<WriteOutcome, PoolError> {
        let mut request = WriteRequest::new(key, NewValue::Detached(value), condition);
        let result = self.apply_and_free(&mut request, old);
        self.free_below(value)?;
        result
    }

    /// Applies a write, and frees the overflow pages that it leaves without an entry.
    #[inline]
    fn apply_and_free(
        &self,
        request: &mut WriteRequest<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Result<WriteOutcome, PoolError> {
        let mut outcome = self.apply(request, old)?;
        if let Some(gone) = outcome.gone.take() {
            self.free_below(&gone)?;
        }
        Ok(outcome)
    }
}
