//! Changes a part of a value together with other pages, in one mini-transaction: the log has both
//! changes, or neither.

use crate::btree::node::layout::{Node, Value};
use crate::btree::tree::BTree;
use crate::pool::{MiniTransaction, Pages, PoolError, Try};

/// The result of a patch, with the bytes to write.
pub(crate) struct Patch<T> {
    /// Bytes to write to the value; `None` leaves it unchanged.
    pub(crate) bytes: Option<[u8; 8]>,
    /// Result to return to the caller.
    pub(crate) result: T,
}

impl<P: Pages> BTree<P> {
    /// Latches the leaf of `key`, calls `make`, and writes the returned bytes to `offset` of the
    /// value of `key`, which must be inline; all in one attempt. Returns the patch's result.
    /// Returns `None`, without calling `make`, if there is no such value or it is shorter.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub(crate) fn patch<T>(
        &self,
        key: &[u8],
        offset: usize,
        mut make: impl FnMut(&MiniTransaction<'_, P>) -> Try<Patch<T>>,
    ) -> Result<Option<T>, PoolError> {
        self.pages.run(|mtr| {
            let mut leaf = self.leaf_to_write(mtr, key)?;
            let node = Node::leaf(leaf.view());
            let (i, exists) = node.lower_bound(key);
            let at = match node.value(i) {
                Value::Inline(span) if exists && offset + 8 <= span.len => span.at + offset,
                _ => return Ok(None),
            };
            let Patch { bytes, result } = make(mtr)?;
            if let Some(bytes) = bytes
                && let Some(place) = leaf.page_mut().get_mut(at..at + 8)
            {
                place.copy_from_slice(&bytes);
            }
            Ok(Some(result))
        })
    }
}
