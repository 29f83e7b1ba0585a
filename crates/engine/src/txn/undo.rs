//! Undo of one change, as a rollback and a recovery do it: logically, by key, through the operation
//! that restores the before image.
//!
//! The structure may have been split or merged since the change, so undo does not go back to the
//! page.
//! The operation runs as [`Actor::Undo`]: its log record is a CLR, which is never undone and names
//! the record that is to be undone next.

use crate::btree::{Detached, Undo, WriteOutcome};
use crate::pool::Actor;
use crate::txn::error::TxnError;
use crate::txn::structure::Structure;

/// Restores the entry that `undo` describes and logs that as a CLR for `actor`.
///
/// `large` is the large value that was replaced, if the caller still has its handle; otherwise the
/// handle is read from the undo record. What the result calls `gone` is a large value that the undo
/// detached: the caller frees it.
///
/// # Errors
/// The structure could not be read or written. Nothing was undone, and the call may be repeated.
pub fn undo_one(
    structure: &dyn Structure,
    actor: Actor,
    undo: &Undo<'_>,
    large: Option<&Detached>,
) -> Result<WriteOutcome, TxnError> {
    debug_assert!(matches!(actor, Actor::Undo { .. }), "an undo is logged as a CLR");
    debug_assert_eq!(structure.owner(), undo.owner, "the undo record is of another structure");
    structure.undo(actor, undo, large)
}
