//! Writes values that are read from a source.

use std::io;

use crate::btree::error::{StreamError, WriteError};
use crate::btree::tree::BTree;
use crate::btree::value::stream::Streamed;
use crate::btree::write::request::WriteCondition;
use crate::pool::Pages;

impl<P: Pages> BTree<P> {
    /// Inserts or replaces a value of `len` bytes that is read from `source`, page by page; returns
    /// whether the key existed. No reader sees the value before it is complete.
    ///
    /// # Errors
    /// The source failed or ended early, key or value are too long, or the memory behind the tree
    /// failed. Nothing is changed then.
    pub fn upsert_from(
        &self,
        key: &[u8],
        len: u64,
        source: &mut impl io::Read,
    ) -> Result<bool, StreamError> {
        let value = self.read_streamed(key, len, source)?;
        Ok(self.upsert_streamed(key, value)?)
    }

    /// Sets the value of `key` to one that was read from a source; returns whether there was an
    /// entry.
    ///
    /// # Errors
    /// See [`BTree::insert`].
    pub(crate) fn upsert_streamed(&self, key: &[u8], value: Streamed) -> Result<bool, WriteError> {
        match value {
            Streamed::Inline(value) => self.upsert(key, &value),
            Streamed::Detached(value) => {
                Ok(self.put_detached(key, &value, WriteCondition::Always, None)?.existed)
            }
        }
    }
}
