//! Undo of one change, as a rollback and a recovery do it: logically, by key, through the operation
//! that restores the before image.
//!
//! The tree may have been split or merged since the change, so undo does not go back to the page.
//! The operation runs as [`Actor::Undo`]: its log record is a CLR, which is never undone and names
//! the record that is to be undone next.

use crate::btree::{
    BTree, Before, Detached, NewValue, Undo, WriteCondition, WriteContext, WriteError,
    WriteOutcome, WriteRequest,
};
use crate::pool::{Actor, Pages};

/// Restores the entry that `undo` describes and logs that as a CLR for `actor`.
///
/// `large` is the large value that was replaced, if the caller still has its handle; otherwise the
/// handle is read from the undo record. What the result calls `gone` is a large value that the undo
/// detached: the caller frees it.
///
/// # Errors
/// The tree could not be read or written. Nothing was undone, and the call may be repeated.
pub fn undo_one<P: Pages>(
    tree: &BTree<P>,
    actor: Actor,
    undo: &Undo<'_>,
    large: Option<&Detached>,
) -> Result<WriteOutcome, WriteError> {
    debug_assert!(matches!(actor, Actor::Undo { .. }), "an undo is logged as a CLR");
    debug_assert_eq!(tree.owner(), undo.owner, "the undo record is of another tree");
    let key = undo.key;
    let set = |value| {
        let request = WriteRequest::new(key, value, WriteCondition::Always);
        tree.write(request.within(WriteContext::of(actor)))
    };
    match (undo.before, large) {
        (_, Some(large)) => Ok(tree.attach(actor, key, large)?),
        (Before::Absent, _) => set(NewValue::Removed),
        (Before::Value(value), _) => set(NewValue::Bytes(value)),
        (Before::Part { offset, bytes }, _) => Ok(tree.overwrite_part(actor, key, offset, bytes)?),
        (Before::Large(value), None) => Ok(tree.attach(actor, key, &tree.detached(value)?)?),
    }
}
