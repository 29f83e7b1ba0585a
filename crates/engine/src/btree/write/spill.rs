//! Entries of more than a third of a leaf. Their values go to overflow pages if the fences of their
//! leaf leave no room for them.
//!
//! A write learns that only in the leaf, and fences change. So it is tried with the value in the
//! leaf first, and each attempt decides for itself. [`Limits`](crate::btree::Limits) shows why
//! splits make room for everything else that a leaf may lack room for.

use crate::btree::node::layout::Node;
use crate::btree::tree::{BTree, corrupt};
use crate::btree::write::pending::{Pending, Step, done_anyway};
use crate::btree::write::request::{NewValue, WriteOutcome, WriteRequest};
use crate::pool::{Pages, PoolError, Try, Write};

/// Chooses the next step of a write whose entry, of `need` bytes, has no room in its leaf.
/// `replaced` is the size of the entry to replace, if there is one.
#[cold]
#[inline(never)]
pub(super) fn no_room<P: Pages>(
    leaf: &Write<'_, P>,
    pending: &mut Pending<'_, '_>,
    need: usize,
    replaced: Option<usize>,
) -> Try<Step> {
    let node = Node::leaf(leaf.view());
    let fences = node.lower().len + node.upper().map_or(0, |upper| upper.len);
    if need + fences <= node.view.len() - node.slots() {
        let others = node.count() - usize::from(replaced.is_some());
        if others == 0 {
            return Err(corrupt(leaf.id(), "its free room cannot be used"));
        }
        return Ok(pending.split(need - replaced.unwrap_or(0), replaced.is_none()));
    }
    match pending.request.value {
        NewValue::Bytes(_) => Ok(Step::Spill),
        NewValue::Detached(_) | NewValue::Removed => {
            Err(corrupt(leaf.id(), "its fences leave no room for a reference to overflow pages"))
        }
    }
}

impl<P: Pages> BTree<P> {
    /// Applies a write whose value has no room in its leaf, with the value in overflow pages.
    /// Consumes the request.
    #[cold]
    #[inline(never)]
    pub(super) fn apply_spilled(
        &self,
        request: &mut WriteRequest<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Result<WriteOutcome, PoolError> {
        let context = std::mem::take(&mut request.context);
        let actor = context.actor;
        let bytes = match request.value {
            NewValue::Bytes(bytes) => bytes,
            NewValue::Detached(_) | NewValue::Removed => &[],
        };
        debug_assert!(!bytes.is_empty(), "what does not fit has bytes");
        let value = self.build(bytes)?;
        let (key, condition) = (request.key, request.condition);
        let detached = NewValue::Detached(&value);
        let mut request = WriteRequest::new(key, detached, condition).within(context);
        let result = self.apply(&mut request, old);
        done_anyway(actor, self.free_below(&value))?;
        result
    }
}
