//! Changing a part of a value together with something else, in one attempt: both are in the log, or
//! neither is.

use crate::btree::node::layout::{Node, Value};
use crate::btree::tree::BTree;
use crate::pool::{MiniTransaction, Pages, PoolError, Try};

impl<P: Pages> BTree<P> {
    /// Does what `make` does and, if that answers bytes, writes them to `offset` of the value of
    /// `key`, which must lie in its leaf; in one attempt, with the leaf latched before. Answers
    /// what `make` says besides; `missing` if there is no such value or it is shorter.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub(crate) fn patch<T: Clone>(
        &self,
        key: &[u8],
        offset: usize,
        missing: &T,
        mut make: impl FnMut(&MiniTransaction<'_, P>) -> Try<(Option<[u8; 8]>, T)>,
    ) -> Result<T, PoolError> {
        self.pages.run(|mtr| {
            let mut leaf = self.leaf_to_write(mtr, key)?;
            let node = Node::leaf(leaf.view());
            let (i, exists) = node.lower_bound(key);
            let at = match node.value(i) {
                Value::Inline(span) if exists && offset + 8 <= span.len => span.at + offset,
                _ => return Ok(missing.clone()),
            };
            let (bytes, answer) = make(mtr)?;
            if let Some(bytes) = bytes
                && let Some(place) = leaf.page_mut().get_mut(at..at + 8)
            {
                place.copy_from_slice(&bytes);
            }
            Ok(answer)
        })
    }
}
