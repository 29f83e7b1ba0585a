//! Changes the bytes of a value in its page.

use crate::btree::error::WriteError;
use crate::btree::lookup::Lookup;
use crate::btree::node::edit::{Reference, reference_at};
use crate::btree::node::layout::{Node, Span, Value};
use crate::btree::tree::{BTree, corrupt};
use crate::btree::write::request::{
    NewValue, UpdateOutcome, Updated, WriteCondition, WriteContext, WriteRequest,
};
use crate::pool::{Pages, PoolError, Try, Write};

impl<P: Pages> BTree<P> {
    /// Calls `f` to change the bytes of a value, but not their number. Returns `None` if the key
    /// does not exist. `f` runs once, under the leaf's exclusive latch, so it must be short and
    /// must not use the store. If it panics, the latch is released, and the value stays as `f` left
    /// it. A value in overflow pages is shown as a copy, and written back if it has not changed in
    /// the meantime.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn update_in_place<R>(
        &self,
        key: &[u8],
        f: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<Option<R>, WriteError> {
        let (mut f, mut result) = (Some(f), None);
        let changed = self.update(key, &mut |value| {
            if let Some(f) = f.take() {
                result = Some(f(value));
            }
        })?;
        Ok(result.filter(|_| changed))
    }

    /// Updates a value in place; returns whether there was one. Not generic: this is the whole
    /// descent, and many callers have closures.
    #[inline(never)]
    fn update(&self, key: &[u8], f: &mut dyn FnMut(&mut [u8])) -> Result<bool, WriteError> {
        let found = self.pages.run(|mtr| {
            let mut leaf = self.leaf_to_write(mtr, key)?;
            let node = Node::leaf(leaf.view());
            let (i, equal) = node.lower_bound(key);
            if !equal {
                return Ok(Lookup::Missing);
            }
            let span = match node.value(i) {
                Value::Overflow(at) => return Ok(Lookup::Overflow(reference_at(node.view, at))),
                Value::Inline(span) => span,
            };
            inline_value(&leaf, span)?;
            if mtr.is_logged() {
                // The bytes that `f` changes are known only afterwards.
                let mut value = leaf.page()[span.at..span.end()].to_vec();
                f(&mut value);
                let (new, present) = (NewValue::Bytes(&value), WriteCondition::Present);
                let mut request = WriteRequest::new(key, new, present);
                self.overwrite(mtr, &mut leaf, i, span, &mut request, &value);
            } else {
                f(&mut leaf.page_mut()[span.at..span.end()]);
            }
            Ok(Lookup::Inline)
        })?;
        match found {
            Lookup::Missing => Ok(false),
            Lookup::Inline => Ok(true),
            Lookup::Overflow(reference) => self.update_large(key, reference, f),
        }
    }

    /// Updates an inline value in place, in `context`. Appends the undo, the bytes that differ, to
    /// the context's buffer; appends nothing if no byte differs. `scratch` is for a copy of the
    /// value.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    #[inline(never)]
    pub fn update_inline(
        &self,
        key: &[u8],
        mut context: WriteContext<'_>,
        scratch: &mut Vec<u8>,
        f: &mut dyn FnMut(&mut [u8]),
    ) -> Result<UpdateOutcome, PoolError> {
        let (updated, at) = self.pages.run_logged(|mtr| {
            let mut leaf = self.leaf_to_write(mtr, key)?;
            let node = Node::leaf(leaf.view());
            let (i, equal) = node.lower_bound(key);
            if !equal {
                return Ok(Updated::Absent);
            }
            let Value::Inline(span) = node.value(i) else { return Ok(Updated::Large) };
            let value = inline_value(&leaf, span)?;
            scratch.clear();
            scratch.extend_from_slice(value);
            // Nothing after this restarts the attempt.
            f(scratch);
            debug_assert_eq!(scratch.len(), span.len, "a slice keeps its length");
            let WriteContext { actor, root, .. } = context;
            let undo = context.undo.as_deref_mut();
            let context = WriteContext { actor, root, undo, ..WriteContext::default() };
            let (new, present) = (NewValue::Bytes(scratch), WriteCondition::Present);
            let mut request = WriteRequest::new(key, new, present).within(context);
            self.overwrite(mtr, &mut leaf, i, span, &mut request, scratch);
            Ok(Updated::Done)
        })?;
        Ok(UpdateOutcome { updated, at })
    }

    /// Updates a value in overflow pages: reads it, and replaces it unless it has changed in the
    /// meantime.
    fn update_large(
        &self,
        key: &[u8],
        first: Reference,
        f: &mut dyn FnMut(&mut [u8]),
    ) -> Result<bool, WriteError> {
        let mut value = None;
        let mut reference = Some(first);
        // A value that is replaced while it is read is read again.
        while let Some(wanted) = reference {
            value = self.read_whole(key, wanted)?;
            if value.is_some() {
                break;
            }
            reference = self.find_reference(key)?;
        }
        let (Some(mut value), Some(reference)) = (value, reference) else { return Ok(false) };
        f(&mut value);
        let new = self.build(&value)?;
        let condition = WriteCondition::Stamp(reference.stamp);
        Ok(self.put_detached(key, &new, condition, None)?.applied)
    }
}

/// Returns the bytes of an inline value, which must be inside its page.
#[inline(always)]
fn inline_value<'w, P: Pages>(leaf: &'w Write<'_, P>, span: Span) -> Try<&'w [u8]> {
    match leaf.page().get(span.at..span.end()) {
        Some(value) => Ok(value),
        None => Err(corrupt(leaf.id(), "a value reaches beyond its page")),
    }
}
