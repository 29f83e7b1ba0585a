//! Undo of one change, for rollback and recovery: logically, by key, through the operation that
//! restores the before image.
//!
//! The structure may have been split or merged since the change, so undo does not go back to the
//! page. The operation runs as [`Actor::Undo`]: its log record is a CLR, which is never undone and
//! names the next record to be undone.

use crate::btree::{
    Before, Detached, NewValue, Undo, UpdateOutcome, Updated, WriteCondition, WriteContext,
    WriteOutcome, WriteRequest,
};
use crate::pool::Actor;
use crate::txn::error::TxnError;
use crate::txn::structure::Structure;

/// Restores the entry that `undo` describes and logs that as a CLR for `actor`.
///
/// `large` is the replaced large value, if the caller still has its handle. Otherwise the handle is
/// read from the undo record. `gone` of the result is a large value that the undo detached: the
/// caller frees it.
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

impl dyn Structure + '_ {
    /// Restores the entry that `undo` describes, and logs that as a CLR for `actor`.
    fn undo(
        &self,
        actor: Actor,
        undo: &Undo<'_>,
        large: Option<&Detached>,
    ) -> Result<WriteOutcome, TxnError> {
        let key = undo.key;
        let set = |value| {
            let request = WriteRequest::new(key, value, WriteCondition::Always);
            self.write(request.within(WriteContext::of(actor)))
        };
        if let Some(trees) = self.large_values() {
            match (large, undo.before) {
                (Some(large), _) => return Ok(trees.attach(actor, key, large)?),
                (None, Before::Large(value)) => {
                    return Ok(trees.attach(actor, key, &trees.detached(value)?)?);
                }
                (None, _) => {}
            }
        }
        match undo.before {
            Before::Absent => set(NewValue::Removed),
            Before::Value(value) => set(NewValue::Bytes(value)),
            Before::Part { offset, bytes } => self.overwrite_part(actor, key, offset, bytes),
            Before::Large(_) => Err(TxnError::NoTree { tx: 0, owner: self.owner() }),
        }
    }

    /// Overwrites a part of the value of `key`; not applied if there is no such part.
    fn overwrite_part(
        &self,
        actor: Actor,
        key: &[u8],
        offset: usize,
        bytes: &[u8],
    ) -> Result<WriteOutcome, TxnError> {
        let (mut scratch, mut fits) = (Vec::new(), false);
        let mut overwrite = |value: &mut [u8]| {
            if let Some(place) = value.get_mut(offset..offset.saturating_add(bytes.len())) {
                place.copy_from_slice(bytes);
                fits = true;
            }
        };
        let context = WriteContext::of(actor);
        let UpdateOutcome { updated, at } =
            self.update(key, context, &mut scratch, &mut overwrite)?;
        if updated == Updated::Large {
            // It was in its leaf when the part was changed. An earlier undo has put it back where
            // fences no longer leave it room.
            let mut value = self.value(key)?.unwrap_or_default();
            let len = value.len() as u64;
            let was_inline = self.large_values().is_some_and(|all| all.fits_inline(key, len));
            if was_inline {
                overwrite(&mut value);
            }
            if fits {
                let set = WriteRequest::new(key, NewValue::Bytes(&value), WriteCondition::Present);
                return self.write(set.within(WriteContext::of(actor)));
            }
        }
        let existed = updated != Updated::Absent;
        Ok(WriteOutcome { existed, applied: fits, at, ..WriteOutcome::default() })
    }
}
