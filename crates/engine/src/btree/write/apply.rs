//! Applies one write request.
//!
//! A write is one attempt: the leaf is latched and the key's entry is read. Then either everything
//! is done under that one latch, or nothing is, and the attempt returns its need. That is a split,
//! an anchor for overflow pages to free, or a comparison with a value in overflow pages.
//!
//! Overflow pages are written before their entry exists, below an anchor of their own; the entry
//! takes over their root's swip. Likewise, the pages of a value that is replaced or removed are
//! moved below an anchor, and freed from there afterwards.

use millpond_base::{Lsn, PageId};

use crate::btree::descend::held_anchor;
use crate::btree::node::edit::{Edit, Payload, Reference, put_swip, reference_at};
use crate::btree::node::layout::{Node, Span, Value};
use crate::btree::tree::{BTree, corrupt};
use crate::btree::value::large::{Detached, LargeValue};
use crate::btree::value::layout::{orphan_value, set_word};
use crate::btree::write::pending::{Need, Pending, Step, done_anyway};
use crate::btree::write::redo_note;
use crate::btree::write::request::{
    NewValue, RootFate, WriteCondition, WriteOutcome, WriteRequest,
};
use crate::btree::write::spill::no_room;
use crate::btree::write::undo::{Before, Undo};
use crate::pool::{Actor, Anchor, Jump, MiniTransaction, Pages, PoolError, Swip, Try, Write};

/// An entry's new value in overflow pages: the latched anchor that holds its root's swip, and its
/// name.
struct Attaching<'o, 'a, P: Pages> {
    anchor: Write<'o, P>,
    /// Byte offset of the swip in the anchor's page.
    at: usize,
    value: &'a Detached,
}

/// The old value of an entry, in overflow pages, and the latched anchor for them.
struct Detaching<'o, P: Pages> {
    trash: Write<'o, P>,
    /// Byte offset of the anchor in its page.
    place: Anchor,
    reference: Reference,
}

impl<P: Pages> BTree<P> {
    /// Applies a write, and splits and merges leaves for it as needed. Copies the old value to
    /// `old` if the write has no actor. The caller frees the outcome's `gone`.
    #[inline(always)]
    pub(crate) fn apply(
        &self,
        request: &mut WriteRequest<'_>,
        mut old: Option<&mut Vec<u8>>,
    ) -> Result<WriteOutcome, PoolError> {
        let mut pending = Pending::new(request);
        match self.apply_pending(&mut pending, old.as_deref_mut()) {
            Ok(()) if pending.spills => self.apply_spilled(request, old),
            Ok(()) => {
                let Pending { existed, applied, rows, at, detached, .. } = pending;
                match detached {
                    None => Ok(WriteOutcome { existed, applied, rows, at, gone: None }),
                    gone => Ok(WriteOutcome { existed, applied, rows, at, gone }),
                }
            }
            Err(error) => Err(error),
        }
    }

    fn apply_pending(
        &self,
        pending: &mut Pending<'_, '_>,
        mut old: Option<&mut Vec<u8>>,
    ) -> Result<(), PoolError> {
        let request = &*pending.request;
        debug_assert!(request.key.len() <= self.limits.key_max || request.value.is_removal());
        let actor = request.context.actor;
        let result = loop {
            match self.apply_once(pending, old.as_deref_mut()) {
                Ok(true) => break Ok(()),
                Ok(false) => {}
                Err(error) => break Err(error),
            }
        };
        let Some(trash) = pending.trash else { return result };
        let gone = pending.gone.take().map(|value| Detached::below(trash, value));
        if let Err(error) = result {
            gone.map_or_else(|| self.free_any_below(trash), |gone| self.free_below(&gone))?;
            return Err(error);
        }
        debug_assert!(gone.is_none() || pending.existed);
        debug_assert!(gone.is_none() || pending.applied);
        let Some(gone) = gone else { return done_anyway(actor, self.free_any_below(trash)) };
        if let Some(old) = old
            && actor == Actor::Itself
        {
            self.read_below(&gone, old)?;
        }
        pending.detached = Some(gone);
        Ok(())
    }

    /// Makes one attempt, and records its needs. Returns `false` if the attempt must be repeated.
    fn apply_once(
        &self,
        pending: &mut Pending<'_, '_>,
        mut old: Option<&mut Vec<u8>>,
    ) -> Result<bool, PoolError> {
        let key = pending.request.key;
        let (step, at) =
            self.pages.run_logged(|mtr| self.attempt(mtr, pending, old.as_deref_mut()))?;
        match step {
            Step::Done => {
                pending.at = at;
                if pending.thin {
                    done_anyway(pending.request.context.actor, self.merge(key))?;
                }
                Ok(true)
            }
            Step::Split => {
                let Need { bytes, is_new } = pending.need;
                self.split(key, bytes, is_new)?;
                Ok(false)
            }
            Step::Spill => {
                pending.spills = true;
                Ok(true)
            }
            Step::Trash => {
                // A transaction keeps replaced values to its end.
                let kept = matches!(pending.request.context.actor, Actor::Transaction { .. });
                pending.trash = Some(self.pages.anchor_empty(self.owner, kept)?);
                Ok(false)
            }
            Step::Compare => {
                let condition = pending.request.condition;
                let (WriteCondition::Equals(expected), Some(reference)) =
                    (condition, pending.compare)
                else {
                    return Ok(false);
                };
                match self.read_whole(key, reference)? {
                    Some(value) if value == expected => {
                        pending.request.condition = WriteCondition::Stamp(reference.stamp);
                        let done = self.apply_once(pending, old)?;
                        // A value that has changed in the meantime is compared again.
                        pending.request.condition = condition;
                        Ok(done && (pending.applied || pending.spills))
                    }
                    Some(_) => {
                        pending.refused(true);
                        pending.at = Lsn(0);
                        Ok(true)
                    }
                    None => Ok(false),
                }
            }
        }
    }

    #[inline]
    fn attempt<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        pending: &mut Pending<'_, '_>,
        old: Option<&mut Vec<u8>>,
    ) -> Try<Step> {
        let key = pending.request.key;
        let finger = pending.request.context.finger.as_deref();
        let (leaf, (i, existed)) = self.place_to_write(mtr, key, finger)?;
        let node = Node::leaf(leaf.view());
        debug_assert!(i <= node.count());
        if !existed {
            let wanted = matches!(
                pending.request.condition,
                WriteCondition::Always | WriteCondition::Absent
            ) && !pending.request.value.is_removal();
            if !wanted {
                return Ok(pending.refused(existed));
            }
            return self.attempt_insert(mtr, leaf, i, pending);
        }
        match (pending.request.condition, node.value(i)) {
            (WriteCondition::Always | WriteCondition::Present, _) => {}
            (WriteCondition::Absent, _) => return Ok(pending.refused(existed)),
            (WriteCondition::Stamp(stamp), Value::Overflow(at)) => {
                if reference_at(node.view, at).stamp != stamp {
                    return Ok(pending.refused(existed));
                }
            }
            (WriteCondition::Stamp(_), Value::Inline(_)) => return Ok(pending.refused(existed)),
            (WriteCondition::Equals(expected), Value::Inline(span)) => {
                if leaf.page().get(span.at..span.end()) != Some(expected) {
                    return Ok(pending.refused(existed));
                }
            }
            (WriteCondition::Equals(expected), Value::Overflow(at)) => {
                let reference = reference_at(node.view, at);
                if reference.len != expected.len() as u64 {
                    return Ok(pending.refused(existed));
                }
                pending.compare = Some(reference);
                return Ok(Step::Compare);
            }
        }
        self.attempt_replace(mtr, leaf, i, pending, old)
    }

    #[inline]
    fn attempt_insert<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        mut leaf: Write<'o, P>,
        i: usize,
        pending: &mut Pending<'_, '_>,
    ) -> Try<Step> {
        let (key, value) = (pending.request.key, pending.request.value);
        let attaching = attaching(mtr, value)?;
        let payload = payload_for(&attaching, value);
        let bytes = Node::leaf(leaf.view()).need(key.len(), &payload);
        if Node::leaf(leaf.view()).free() < bytes {
            return no_room(&leaf, pending, bytes, None);
        }
        let root = root_of(mtr, &payload);
        let insertion = redo_note::Insertion { at: i, counts: true };
        let page =
            leaf.page_mut_with_redo(|out| redo_note::insert(out, insertion, key, &payload, root));
        let mut edit = Edit::leaf(page);
        if !edit.insert(i, key, &payload) {
            return Err(corrupt(leaf.id(), "its free room cannot be used"));
        }
        edit.count_insert(i);
        self.log_undo(mtr, pending.request, Before::Absent);
        pending.rows = 1;
        self.rows_changed(mtr, 1, pending.request.context.actor);
        attach(mtr, attaching, &leaf);
        pending.request.context.wrote(self.owner, &leaf, i);
        Ok(pending.applied(false))
    }

    #[inline]
    fn attempt_replace<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        mut leaf: Write<'o, P>,
        i: usize,
        pending: &mut Pending<'_, '_>,
        old: Option<&mut Vec<u8>>,
    ) -> Try<Step> {
        let node = Node::leaf(leaf.view());
        let reference = match node.value(i) {
            Value::Overflow(at) => reference_at(node.view, at),
            Value::Inline(span) => {
                if let Some(old) = old.or(pending.request.context.old.as_deref_mut()) {
                    old.clear();
                    node.append(span, old);
                }
                if let NewValue::Bytes(value) = pending.request.value
                    && value.len() == span.len
                {
                    self.overwrite(mtr, &mut leaf, i, span, pending.request, value);
                    pending.request.context.wrote(self.owner, &leaf, i);
                    return Ok(pending.applied(true));
                }
                return self.swap_entry(mtr, leaf, i, pending, None);
            }
        };
        let Some(trash) = pending.trash else { return Ok(Step::Trash) };
        let place = trash;
        let trash = held_anchor(mtr, place)?;
        self.swap_entry(mtr, leaf, i, pending, Some(Detaching { trash, place, reference }))
    }

    /// Overwrites the inline value of entry `i`, in `span`, with one of the same length.
    #[inline(always)]
    pub(crate) fn overwrite<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        leaf: &mut Write<'o, P>,
        i: usize,
        span: Span,
        request: &mut WriteRequest<'_>,
        value: &[u8],
    ) {
        debug_assert_eq!(span.len, value.len());
        if !mtr.is_logged() && request.context.actor == Actor::Itself {
            if let Some(place) = leaf.page_mut().get_mut(span.at..span.end()) {
                place.copy_from_slice(value);
            }
            return;
        }
        let Some(old) = leaf.page().get(span.at..span.end()) else { return };
        let (from, to) = redo_note::differing(old, value);
        let (Some(old), Some(new)) = (old.get(from..to), value.get(from..to)) else { return };
        if new.is_empty() {
            return;
        }
        self.log_undo(mtr, request, Before::Part { offset: from, bytes: old });
        let page = leaf.page_mut_with_redo(|out| redo_note::overwrite(out, i, from, new));
        if let Some(place) = page.get_mut(span.at + from..span.at + to) {
            place.copy_from_slice(new);
        }
    }

    /// Writes the undo of a write that is certain to be applied, to the log and to the caller's
    /// undo buffer; logs the fate of the root that its entry names.
    #[inline(always)]
    fn log_undo(
        &self,
        mtr: &MiniTransaction<'_, P>,
        request: &mut WriteRequest<'_>,
        before: Before<'_>,
    ) {
        let context = &mut request.context;
        let removes = request.value.is_removal();
        context.log_undo(mtr, &Undo { owner: self.owner, key: request.key, before, removes });
        match context.root {
            RootFate::None => {}
            RootFate::Attached(page) => mtr.attached(page),
            RootFate::Orphaned(page, root) => mtr.orphaned(page, root),
        }
    }

    /// Counts the room that the removal of entry `i` makes. A count is a write to memory that all
    /// threads share, so every eighth removal from a leaf counts for eight.
    #[inline(always)]
    fn count_removal(&self, leaf: Node<'_>, i: usize) {
        debug_assert!(i < leaf.count());
        if leaf.count() % 8 == 1 {
            self.tally.loosened(8 * leaf.entry_len_under(i, leaf.prefix_len()) as u64);
        }
    }

    /// Logs the undo of the removal of entry `i`, which is still in the leaf. Its value becomes an
    /// orphan if it is `large`.
    fn log_undo_of_swap(
        &self,
        mtr: &MiniTransaction<'_, P>,
        leaf: &Write<'_, P>,
        i: usize,
        request: &mut WriteRequest<'_>,
        large: Option<LargeValue>,
    ) {
        if !mtr.is_logged() && request.context.actor == Actor::Itself {
            return;
        }
        match (large, Node::leaf(leaf.view()).value(i)) {
            (Some(large), _) => {
                mtr.orphaned(large.root, orphan_value(large.stamp));
                self.log_undo(mtr, request, Before::Large(large));
            }
            (None, Value::Inline(span)) => {
                let value = leaf.page().get(span.at..span.end()).unwrap_or(&[]);
                self.log_undo(mtr, request, Before::Value(value));
            }
            (None, Value::Overflow(_)) => debug_assert!(false, "the caller has detached it"),
        }
    }

    /// Removes entry `i` and inserts the new one in its place; all latches are held.
    fn swap_entry<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        mut leaf: Write<'o, P>,
        i: usize,
        pending: &mut Pending<'_, '_>,
        detaching: Option<Detaching<'o, P>>,
    ) -> Try<Step> {
        let (key, value) = (pending.request.key, pending.request.value);
        let attaching = attaching(mtr, value)?;
        let node = Node::leaf(leaf.view());
        if value.is_removal() {
            self.count_removal(node, i);
        } else {
            let gained = node.entry_len_under(i, node.prefix_len());
            let need = node.need(key.len(), &payload_for(&attaching, value));
            if node.free() + gained < need {
                return no_room(&leaf, pending, need, Some(gained));
            }
        }
        let large = detaching.as_ref().map(|Detaching { reference, .. }| LargeValue {
            root: mtr.pages().page_of(reference.swip),
            len: reference.len,
            stamp: reference.stamp,
        });
        if let Some(large) = large
            && mtr.is_unreferenced(large.root)
        {
            // Its pages, which may have other contents by now, would be freed a second time.
            return Err(unreferenced(large.root, leaf.id()));
        }
        self.log_undo_of_swap(mtr, &leaf, i, pending.request, large);
        let page = leaf.page_mut_with_redo(|out| redo_note::remove(out, i));
        Edit::leaf(page).remove(i);
        if !value.is_removal() {
            let payload = payload_for(&attaching, value);
            let root = root_of(mtr, &payload);
            let insertion = redo_note::Insertion { at: i, counts: false };
            let page = leaf
                .page_mut_with_redo(|out| redo_note::insert(out, insertion, key, &payload, root));
            Edit::leaf(page).insert(i, key, &payload);
        }
        attach(mtr, attaching, &leaf);
        if let Some(Detaching { mut trash, place, reference }) = detaching {
            put_swip(trash.page_mut(), place.swip(), reference.swip);
            set_word(trash.page_mut(), place.stamp(), reference.stamp);
            mtr.adopt(reference.swip, &trash);
            pending.gone = large;
        }
        if value.is_removal() {
            pending.rows = -1;
            self.rows_changed(mtr, -1, pending.request.context.actor);
        }
        pending.request.context.wrote(self.owner, &leaf, i);
        let node = Node::leaf(leaf.view());
        // Not at every removal: a leaf whose neighbours are full would try each time, without
        // success.
        let thin = node.is_thin() && node.count().is_multiple_of(4);
        Ok(pending.done(true, true, thin))
    }
}

/// Ends the attempt: according to the log, nothing refers to `root`, but an entry of `leaf` does.
#[cold]
fn unreferenced(root: PageId, leaf: PageId) -> Jump {
    let what = "it is free, or the root of a value that was replaced".to_string();
    Jump::failed(PoolError::Misfit { page: root, parent: Some(leaf), what })
}

/// Latches the anchor of a new value whose overflow pages are already written.
#[inline(always)]
fn attaching<'o, 'a, P: Pages>(
    mtr: &'o MiniTransaction<'o, P>,
    value: NewValue<'a>,
) -> Try<Option<Attaching<'o, 'a, P>>> {
    match value {
        NewValue::Detached(value) => {
            let (anchor, at) = (held_anchor(mtr, value.anchor)?, value.anchor.swip());
            Ok(Some(Attaching { anchor, at, value }))
        }
        NewValue::Bytes(_) | NewValue::Removed => Ok(None),
    }
}

#[inline(always)]
fn payload_for<'a, P: Pages>(
    attaching: &Option<Attaching<'_, 'a, P>>,
    value: NewValue<'a>,
) -> Payload<'a> {
    match (attaching, value) {
        (Some(Attaching { anchor, at, value }), _) => {
            let swip = Swip(anchor.view().u64(*at));
            Payload::Overflow(Reference { swip, len: value.len, stamp: value.stamp })
        }
        (None, NewValue::Bytes(value)) => Payload::Inline(value),
        (None, _) => Payload::Inline(&[]),
    }
}

/// Returns the page of the root of a value in overflow pages.
#[inline(always)]
fn root_of<P: Pages>(mtr: &MiniTransaction<'_, P>, payload: &Payload<'_>) -> PageId {
    match payload {
        Payload::Overflow(reference) => mtr.pages().page_of(reference.swip),
        Payload::Inline(_) | Payload::Child(_) => PageId::default(),
    }
}

/// Clears the anchor of a value whose root's swip is now in the leaf.
#[inline(always)]
fn attach<P: Pages>(
    mtr: &MiniTransaction<'_, P>,
    attaching: Option<Attaching<'_, '_, P>>,
    leaf: &Write<'_, P>,
) {
    if let Some(Attaching { mut anchor, at, .. }) = attaching {
        let swip = Swip(anchor.view().u64(at));
        put_swip(anchor.page_mut(), at, Swip::NULL);
        mtr.adopt(swip, leaf);
        mtr.attached(mtr.pages().page_of(swip));
    }
}
