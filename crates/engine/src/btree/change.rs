//! Writing one key: insert, upsert, replace, compare-and-swap, delete, update in place.
//!
//! All of them are one attempt that differs in its conditions: the leaf is latched, the key's
//! entry is looked at, and either everything is done under that one latch, or nothing is and the
//! attempt says what is missing: a split, or a place for overflow pages that are to be freed.
//!
//! Overflow pages are written before their entry exists, below an anchor of their own; the entry
//! takes over their swip. In the same way the pages of a value that goes are moved below an
//! anchor, and freed from there afterwards.

use std::cell::Cell;

use millpond_base::{Lsn, PageId};

use crate::btree::error::WriteError;
use crate::btree::node::edit::{Edit, Payload, Reference, put_swip, reference_at};
use crate::btree::node::layout::{Node, Span, Value};
use crate::btree::note::{self, LargeValue};
use crate::btree::overflow::{Built, orphan_value, set_word};
use crate::btree::tree::{BTree, corrupt};
use crate::btree::undo::{Before, Undo};
use crate::btree::write_as::{Applied, Detached};
use crate::page::record_body::OrphanRoot;
use crate::pool::{
    ANCHOR_STAMP, ANCHOR_SWIP, Actor, Anchor, MiniTransaction, Pages, PoolError, Read, Swip, Try,
    Write,
};

/// What the entry shall be.
#[derive(Clone, Copy)]
pub(crate) enum New<'a> {
    Nothing,
    Inline(&'a [u8]),
    Built(&'a Built),
}

/// What must hold for the change to be made.
#[derive(Clone, Copy)]
pub(crate) enum When<'a> {
    Always,
    Absent,
    Present,
    Equals(&'a [u8]),
    /// The value is the overflow value with this stamp.
    Stamp(u64),
}

/// How a change went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Outcome {
    pub(crate) existed: bool,
    pub(crate) applied: bool,
}

enum Step {
    Done(Outcome, Leaf),
    /// No room: so many more bytes are needed, for a key that is there already or is new.
    Split(usize, bool),
    /// The old value's pages need a place.
    Trash,
    /// Whether this value equals the expected one must be found out first.
    Compare(Reference),
}

/// What became of the leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Leaf {
    Fine,
    Thin,
}

/// A change, prepared.
struct Change<'a> {
    key: &'a [u8],
    new: New<'a>,
    when: When<'a>,
    trash: Option<Anchor>,
    /// The value that went there.
    gone: Cell<Option<LargeValue>>,
    actor: Actor,
    /// A root that the entry tells of: what becomes of it by this change.
    root: RootFate,
    /// How the change is taken back is appended here, too.
    undo: Cell<Option<&'a mut Vec<u8>>>,
}

/// On whose behalf an entry is changed, and what follows from it.
#[derive(Default)]
pub(crate) struct TxnContext<'a> {
    pub(crate) actor: Actor,
    pub(crate) root: RootFate,
    /// Where how the change is taken back is appended, if it is made and `actor` is not itself.
    pub(crate) undo: Option<&'a mut Vec<u8>>,
}

impl TxnContext<'_> {
    /// Of `actor`, with nothing more to it.
    pub(crate) fn of(actor: Actor) -> TxnContext<'static> {
        TxnContext { actor, ..TxnContext::default() }
    }

    /// Of nobody: the entry tells of a root that this becomes of.
    pub(crate) fn root(root: RootFate) -> TxnContext<'static> {
        TxnContext { root, ..TxnContext::default() }
    }
}

/// What becomes of a root that an entry's value names, when the entry is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum RootFate {
    /// There is no such root.
    #[default]
    None,
    /// It hung, and does not any more.
    Attached(PageId),
    /// It hangs from now on.
    Orphaned(PageId, OrphanRoot),
}

/// How an update in place on behalf of somebody went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Updated {
    /// The value was handed out, and is what it was made.
    Done,
    /// There is no such key.
    Absent,
    /// The value is in pages of its own: it has to be read and written. It was not handed out.
    Large,
}

impl<'a> Change<'a> {
    fn of(key: &'a [u8], new: New<'a>, when: When<'a>) -> Change<'a> {
        Change::actor(TxnContext::default(), key, new, when)
    }

    fn actor(context: TxnContext<'a>, key: &'a [u8], new: New<'a>, when: When<'a>) -> Change<'a> {
        let (trash, gone, TxnContext { actor, root, undo }) = (None, Cell::new(None), context);
        Change { key, new, when, trash, gone, actor, root, undo: Cell::new(undo) }
    }
}

/// A leaf with less than this share of its bytes in use looks for a neighbour to merge with.
pub(crate) fn is_thin(node: Node<'_>) -> bool {
    node.count() == 0 || node.used() * 10 < (node.view.len() - node.slots()) * 3
}

impl<P: Pages> BTree<P> {
    /// Inserts an entry; `false`, and nothing changed, if the key is there already.
    ///
    /// # Errors
    /// Key or value too long, or the memory behind the tree failed.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, WriteError> {
        Ok(self.put(key, value, When::Absent, None)?.applied)
    }

    /// Inserts an entry, or replaces the value of one; answers whether there was one.
    ///
    /// # Errors
    /// As [`BTree::insert`].
    pub fn upsert(&self, key: &[u8], value: &[u8]) -> Result<bool, WriteError> {
        Ok(self.put(key, value, When::Always, None)?.existed)
    }

    /// The same, answering with the value that was replaced.
    ///
    /// # Errors
    /// As [`BTree::insert`].
    pub fn upsert_returning(
        &self,
        key: &[u8],
        value: &[u8],
    ) -> Result<Option<Vec<u8>>, WriteError> {
        let mut old = Vec::new();
        let outcome = self.put(key, value, When::Always, Some(&mut old))?;
        Ok(outcome.existed.then_some(old))
    }

    /// Replaces the value of a key; `false`, and nothing changed, if the key is not there.
    ///
    /// # Errors
    /// As [`BTree::insert`].
    pub fn replace(&self, key: &[u8], value: &[u8]) -> Result<bool, WriteError> {
        Ok(self.put(key, value, When::Present, None)?.applied)
    }

    /// Sets the entry of `key` to `new` if it is `expected`, where `None` is no entry. Answers
    /// whether it was, in one step as seen by all other threads.
    ///
    /// # Errors
    /// As [`BTree::insert`].
    pub fn compare_and_swap(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, WriteError> {
        match (expected, new) {
            (None, None) => Ok(!self.contains(key)?),
            (None, Some(new)) => self.insert(key, new),
            (Some(old), Some(new)) => Ok(self.put(key, new, When::Equals(old), None)?.applied),
            (Some(old), None) => {
                Ok(self.change(key, New::Nothing, When::Equals(old), None)?.applied)
            }
        }
    }

    /// Removes an entry; `false` if there is none.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn remove(&self, key: &[u8]) -> Result<bool, PoolError> {
        Ok(self.change(key, New::Nothing, When::Present, None)?.applied)
    }

    /// The same, answering with the value that was removed.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn remove_returning(&self, key: &[u8]) -> Result<Option<Vec<u8>>, PoolError> {
        let mut old = Vec::new();
        let outcome = self.change(key, New::Nothing, When::Present, Some(&mut old))?;
        Ok(outcome.applied.then_some(old))
    }

    /// Lets `f` change the bytes of a value, but not how many they are; `None` if the key is not
    /// there. `f` runs once, under the leaf's exclusive latch, so it must be short and must not
    /// use the store. If it panics, the latch is released, and the value is what `f` left. A value
    /// in overflow pages is handed out as a copy and written back, if it did not change meanwhile.
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

    /// The same; answers whether a value was changed. Not generic: it is the whole descent, and
    /// callers bring many closures.
    #[inline(never)]
    fn update(&self, key: &[u8], f: &mut dyn FnMut(&mut [u8])) -> Result<bool, WriteError> {
        let (changed, large) = self.pages.run(|mtr| {
            let mut leaf = self.leaf_to_write(mtr, key)?;
            let node = Node::leaf(leaf.view());
            let (i, equal) = node.lower_bound(key);
            if !equal {
                return Ok((false, None));
            }
            if let Value::Overflow(at) = node.value(i) {
                return Ok((false, Some(reference_at(node.view, at))));
            }
            let Value::Inline(span) = node.value(i) else { return Ok((false, None)) };
            if leaf.page().get(span.at..span.end()).is_none() {
                return Err(corrupt(leaf.id(), "a value reaches beyond its page"));
            }
            if mtr.pages().logs() {
                // What `f` changes is known only afterwards.
                let mut value = leaf.page()[span.at..span.end()].to_vec();
                f(&mut value);
                let change = Change::of(key, New::Inline(&value), When::Present);
                self.overwrite(mtr, &mut leaf, span, i, &change, &value);
            } else {
                f(&mut leaf.page_mut()[span.at..span.end()]);
            }
            Ok((true, None))
        })?;
        match large {
            None => Ok(changed),
            Some(reference) => self.update_large(key, reference, f),
        }
    }

    /// [`BTree::update_in_place`] of an inline value on behalf of `actor`. How the change is taken
    /// back is appended to `undo` ([`Undo`]: the bytes that differ), nothing if nothing differs;
    /// `room` is for the value. Answers also where the change's record begins in the log, 0 if
    /// there is none.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    #[inline(never)]
    pub fn update_as(
        &self,
        actor: Actor,
        key: &[u8],
        (mut undo, room): (Option<&mut Vec<u8>>, &mut Vec<u8>),
        f: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(Updated, Lsn), PoolError> {
        self.pages.run_logged(|mtr| {
            let mut leaf = self.leaf_to_write(mtr, key)?;
            let node = Node::leaf(leaf.view());
            let (i, equal) = node.lower_bound(key);
            if !equal {
                return Ok(Updated::Absent);
            }
            let Value::Inline(span) = node.value(i) else { return Ok(Updated::Large) };
            let Some(value) = leaf.page().get(span.at..span.end()) else {
                return Err(corrupt(leaf.id(), "a value reaches beyond its page"));
            };
            room.clear();
            room.extend_from_slice(value);
            // Nothing behind this begins the attempt anew.
            f(room);
            let context = TxnContext { actor, undo: undo.as_deref_mut(), ..TxnContext::default() };
            let change = Change::actor(context, key, New::Inline(room), When::Present);
            self.overwrite(mtr, &mut leaf, span, i, &change, room);
            Ok(Updated::Done)
        })
    }

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
        let built = self.build(&value)?;
        let when = When::Stamp(reference.stamp);
        let outcome = self.change_built(key, &built, when, None)?;
        Ok(outcome.applied)
    }

    /// Whether an entry of this size stays in a leaf.
    pub(crate) fn fits_inline(&self, key: &[u8], value: u64) -> bool {
        (key.len() as u64).saturating_add(value) <= self.limits.inline_max as u64
    }

    pub(crate) fn check_sizes(&self, key: &[u8], value: u64) -> Result<(), WriteError> {
        if key.len() > self.limits.key_max {
            return Err(WriteError::KeyTooLong { len: key.len(), max: self.limits.key_max });
        }
        if value > self.limits.value_max {
            return Err(WriteError::ValueTooLong { len: value, max: self.limits.value_max });
        }
        Ok(())
    }

    #[inline]
    fn put(
        &self,
        key: &[u8],
        value: &[u8],
        when: When<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Result<Outcome, WriteError> {
        self.check_sizes(key, value.len() as u64)?;
        if self.fits_inline(key, value.len() as u64) {
            return Ok(self.change(key, New::Inline(value), when, old)?);
        }
        let built = self.build(value)?;
        Ok(self.change_built(key, &built, when, old)?)
    }

    /// Makes the value that was built the entry's, or frees it if it was not wanted.
    pub(crate) fn change_built(
        &self,
        key: &[u8],
        built: &Built,
        when: When<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Result<Outcome, PoolError> {
        let result = self.change(key, New::Built(built), when, old);
        self.free_below(built)?;
        result
    }

    /// One change, with all that has to be done around it.
    #[inline]
    pub(crate) fn change(
        &self,
        key: &[u8],
        new: New<'_>,
        when: When<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Result<Outcome, PoolError> {
        let made = self.change_by(TxnContext::default(), key, new, when, old)?;
        if let Some(gone) = made.gone {
            self.free_below(&gone.0)?;
        }
        Ok(Outcome { existed: made.existed, applied: made.applied })
    }

    /// The same on behalf of somebody; what was in pages of its own is the caller's.
    pub(crate) fn change_by<'a>(
        &self,
        context: TxnContext<'a>,
        key: &'a [u8],
        new: New<'a>,
        when: When<'a>,
        mut old: Option<&mut Vec<u8>>,
    ) -> Result<Applied, PoolError> {
        let actor = context.actor;
        let mut change = Change::actor(context, key, new, when);
        let result = loop {
            match self.change_once(&mut change, old.as_deref_mut()) {
                Ok(Some(done)) => break Ok(done),
                Ok(None) => {}
                Err(error) => break Err(error),
            }
        };
        let gone = change.gone.get().zip(change.trash);
        let gone = gone.map(|(value, anchor)| Built::of(anchor, value));
        let (outcome, at) = match (result, change.trash) {
            (Ok(done), _) => done,
            (Err(error), None) => return Err(error),
            (Err(error), Some(trash)) => {
                gone.map_or_else(|| self.free_any_below(trash), |gone| self.free_below(&gone))?;
                return Err(error);
            }
        };
        if let (Some(gone), Some(old)) = (&gone, old)
            && actor == Actor::Itself
        {
            self.read_below(gone, old)?;
        }
        if let (None, Some(trash)) = (&gone, change.trash) {
            done_anyway(actor, self.free_any_below(trash))?;
        }
        let Outcome { existed, applied } = outcome;
        Ok(Applied { existed, applied, at, gone: gone.map(Detached) })
    }

    /// One round: an attempt, and what it asks for.
    fn change_once(
        &self,
        change: &mut Change<'_>,
        mut old: Option<&mut Vec<u8>>,
    ) -> Result<Option<(Outcome, Lsn)>, PoolError> {
        let (step, at) =
            self.pages.run_logged(|mtr| self.attempt(mtr, change, old.as_deref_mut()))?;
        match step {
            Step::Done(outcome, leaf) => {
                if leaf == Leaf::Thin {
                    done_anyway(change.actor, self.merge(change.key))?;
                }
                Ok(Some((outcome, at)))
            }
            Step::Split(bytes, is_new) => {
                self.split(change.key, bytes, is_new)?;
                Ok(None)
            }
            Step::Trash => {
                change.trash = Some(self.empty_anchor()?);
                Ok(None)
            }
            Step::Compare(reference) => {
                let When::Equals(expected) = change.when else { return Ok(None) };
                match self.read_whole(change.key, reference)? {
                    Some(value) if value == expected => {
                        change.when = When::Stamp(reference.stamp);
                        let done = self.change_once(change, old)?;
                        // A value that changed meanwhile is compared again.
                        change.when = When::Equals(expected);
                        Ok(done.filter(|(outcome, _)| outcome.applied))
                    }
                    Some(_) => Ok(Some((Outcome { existed: true, applied: false }, Lsn(0)))),
                    None => Ok(None),
                }
            }
        }
    }

    #[inline]
    fn attempt<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        change: &Change<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Try<Step> {
        let leaf = self.leaf_to_write(mtr, change.key)?;
        let node = Node::leaf(leaf.view());
        let (i, existed) = node.lower_bound(change.key);
        if !existed {
            let wanted = matches!(change.when, When::Always | When::Absent)
                && !matches!(change.new, New::Nothing);
            if !wanted {
                return Ok(Step::Done(Outcome { existed, applied: false }, Leaf::Fine));
            }
            return self.attempt_insert(mtr, leaf, i, change);
        }
        let refused = Step::Done(Outcome { existed, applied: false }, Leaf::Fine);
        match (change.when, node.value(i)) {
            (When::Always | When::Present, _) => {}
            (When::Absent, _) => return Ok(refused),
            (When::Stamp(stamp), Value::Overflow(at)) => {
                if reference_at(node.view, at).stamp != stamp {
                    return Ok(refused);
                }
            }
            (When::Stamp(_), Value::Inline(_)) => return Ok(refused),
            (When::Equals(expected), Value::Inline(span)) => {
                if leaf.page().get(span.at..span.end()) != Some(expected) {
                    return Ok(refused);
                }
            }
            (When::Equals(expected), Value::Overflow(at)) => {
                let reference = reference_at(node.view, at);
                if reference.len != expected.len() as u64 {
                    return Ok(refused);
                }
                return Ok(Step::Compare(reference));
            }
        }
        self.attempt_replace(mtr, leaf, i, change, old)
    }

    #[inline]
    fn attempt_insert<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        mut leaf: Write<'o, P>,
        i: usize,
        change: &Change<'_>,
    ) -> Try<Step> {
        let built = match change.new {
            New::Built(built) => Some((held_anchor(mtr, built.anchor)?, built)),
            _ => None,
        };
        let payload = payload_for(&built, change.new);
        let need = Node::leaf(leaf.view()).need(change.key.len(), &payload);
        if Node::leaf(leaf.view()).free() < need {
            return Ok(Step::Split(need, true));
        }
        let root = root_of(mtr, &payload);
        let page =
            leaf.page_mut_noted(|out| note::insert(out, (i, true), change.key, &payload, root));
        let mut edit = Edit::leaf(page);
        if !edit.insert(i, change.key, &payload) {
            return Err(corrupt(leaf.id(), "its free room cannot be used"));
        }
        edit.note_insert(i);
        self.tell(mtr, change, Before::Absent);
        take_over(mtr, built, &leaf);
        Ok(Step::Done(Outcome { existed: false, applied: true }, Leaf::Fine))
    }

    #[inline]
    fn attempt_replace<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        mut leaf: Write<'o, P>,
        i: usize,
        change: &Change<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Try<Step> {
        let done = Outcome { existed: true, applied: true };
        let node = Node::leaf(leaf.view());
        let gone = match node.value(i) {
            Value::Overflow(at) => Some(reference_at(node.view, at)),
            Value::Inline(span) => {
                if let Some(old) = old {
                    old.clear();
                    node.append(span, old);
                }
                if let New::Inline(value) = change.new
                    && value.len() == span.len
                {
                    self.overwrite(mtr, &mut leaf, span, i, change, value);
                    return Ok(Step::Done(done, Leaf::Fine));
                }
                None
            }
        };
        let Some(trash) = gone.map(|_| change.trash.map(|t| held_anchor(mtr, t))) else {
            return self.swap_entry(mtr, leaf, i, change, None);
        };
        match (trash, gone) {
            (Some(trash), Some(gone)) => {
                self.swap_entry(mtr, leaf, i, change, Some((trash?, gone)))
            }
            _ => Ok(Step::Trash),
        }
    }

    /// Puts `value` into the place of the inline value of entry `i`, which lies in `span` and is as
    /// long.
    #[inline(always)]
    fn overwrite<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        leaf: &mut Write<'o, P>,
        span: Span,
        i: usize,
        change: &Change<'_>,
        value: &[u8],
    ) {
        if !mtr.pages().logs() && change.actor == Actor::Itself {
            if let Some(place) = leaf.page_mut().get_mut(span.at..span.end()) {
                place.copy_from_slice(value);
            }
            return;
        }
        let Some(old) = leaf.page().get(span.at..span.end()) else { return };
        let (from, to) = note::differing(old, value);
        let (Some(old), Some(new)) = (old.get(from..to), value.get(from..to)) else { return };
        if new.is_empty() {
            return;
        }
        self.tell(mtr, change, Before::Part { offset: from, bytes: old });
        let page = leaf.page_mut_noted(|out| note::overwrite(out, i, from, new));
        if let Some(place) = page.get_mut(span.at + from..span.at + to) {
            place.copy_from_slice(new);
        }
    }

    /// Tells the log, and whoever asked, how a change, which is about to be made or was just made,
    /// is taken back, and what becomes of the root that its entry names.
    #[inline(always)]
    fn tell(&self, mtr: &MiniTransaction<'_, P>, change: &Change<'_>, before: Before<'_>) {
        if change.actor != Actor::Itself {
            let undo = Undo { owner: self.owner, key: change.key, before };
            match change.undo.take() {
                None => mtr.undo(change.actor, |out| undo.put(out)),
                Some(kept) => {
                    let start = kept.len();
                    undo.put(kept);
                    mtr.undo(change.actor, |out| out.extend_from_slice(&kept[start..]));
                }
            }
        }
        match change.root {
            RootFate::None => {}
            RootFate::Attached(page) => mtr.attached(page),
            RootFate::Orphaned(page, root) => mtr.orphaned(page, root),
        }
    }

    /// Counts the room that the removal of entry `i` makes. A count is a write to memory that all
    /// threads share, so every eighth removal of a leaf stands for eight.
    #[inline(always)]
    fn note_removal(&self, leaf: Node<'_>, i: usize) {
        if leaf.count() % 8 == 1 {
            self.tally.loosened(8 * leaf.entry_len_under(i, leaf.prefix_len()) as u64);
        }
    }

    /// Tells the log how the change of entry `i`, as it is still, is taken back; its value hangs
    /// from now on if it is `large`.
    fn tell_of_swap(
        &self,
        mtr: &MiniTransaction<'_, P>,
        leaf: &Write<'_, P>,
        i: usize,
        change: &Change<'_>,
        large: Option<LargeValue>,
    ) {
        if !mtr.pages().logs() && change.actor == Actor::Itself {
            return;
        }
        match (large, Node::leaf(leaf.view()).value(i)) {
            (Some(large), _) => {
                mtr.orphaned(large.root, orphan_value(large.stamp));
                self.tell(mtr, change, Before::Large(large));
            }
            (None, Value::Inline(span)) => {
                let value = leaf.page().get(span.at..span.end()).unwrap_or(&[]);
                self.tell(mtr, change, Before::Value(value));
            }
            (None, Value::Overflow(_)) => debug_assert!(false, "a large value is the caller's"),
        }
    }

    /// Removes entry `i` and puts the new one in its place, all guards being there.
    fn swap_entry<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        mut leaf: Write<'o, P>,
        i: usize,
        change: &Change<'_>,
        gone: Option<(Write<'o, P>, Reference)>,
    ) -> Try<Step> {
        let done = Outcome { existed: true, applied: true };
        let built = match change.new {
            New::Built(built) => Some((held_anchor(mtr, built.anchor)?, built)),
            _ => None,
        };
        if !matches!(change.new, New::Nothing) {
            let payload = payload_for(&built, change.new);
            let node = Node::leaf(leaf.view());
            let after = node.entry_len_under(i, node.prefix_len());
            let need = node.need(change.key.len(), &payload);
            if Node::leaf(leaf.view()).free() + after < need {
                return Ok(Step::Split(need - after, false));
            }
        }
        if matches!(change.new, New::Nothing) {
            self.note_removal(Node::leaf(leaf.view()), i);
        }
        let large = gone.as_ref().map(|(_, reference)| LargeValue {
            root: mtr.pages().page_of(reference.swip),
            len: reference.len,
            stamp: reference.stamp,
        });
        self.tell_of_swap(mtr, &leaf, i, change, large);
        let page = leaf.page_mut_noted(|out| note::remove(out, i));
        Edit::leaf(page).remove(i);
        if !matches!(change.new, New::Nothing) {
            let payload = payload_for(&built, change.new);
            let root = root_of(mtr, &payload);
            let page = leaf
                .page_mut_noted(|out| note::insert(out, (i, false), change.key, &payload, root));
            Edit::leaf(page).insert(i, change.key, &payload);
        }
        take_over(mtr, built, &leaf);
        if let Some((mut trash, reference)) = gone {
            put_swip(trash.page_mut(), ANCHOR_SWIP, reference.swip);
            set_word(trash.page_mut(), ANCHOR_STAMP, reference.stamp);
            mtr.adopt(reference.swip, &trash);
            change.gone.set(large);
        }
        let node = Node::leaf(leaf.view());
        // Not at every removal: a leaf whose neighbours are full would try in vain each time.
        let thin = is_thin(node) && node.count().is_multiple_of(4);
        Ok(Step::Done(done, if thin { Leaf::Thin } else { Leaf::Fine }))
    }
}

/// The change is made. What went wrong afterwards does not undo it, and a transaction must not
/// believe so.
pub(crate) fn done_anyway(actor: Actor, after: Result<(), PoolError>) -> Result<(), PoolError> {
    match after {
        Err(error) if actor != Actor::Itself => {
            tracing::warn!(%error, "an entry was changed, but not all was tidied up after it");
            Ok(())
        }
        other => other,
    }
}

/// An anchor, latched exclusively.
pub(crate) fn held_anchor<'o, P: Pages>(
    mtr: &'o MiniTransaction<'o, P>,
    anchor: Anchor,
) -> Try<Write<'o, P>> {
    Read::anchor(mtr, anchor)?.upgrade()
}

#[inline(always)]
fn payload_for<'a, P: Pages>(built: &Option<(Write<'_, P>, &Built)>, new: New<'a>) -> Payload<'a> {
    match (built, new) {
        (Some((anchor, built)), _) => {
            let swip = Swip(anchor.view().u64(ANCHOR_SWIP));
            Payload::Overflow(Reference { swip, len: built.len, stamp: built.stamp })
        }
        (None, New::Inline(value)) => Payload::Inline(value),
        (None, _) => Payload::Inline(&[]),
    }
}

/// The page of the root of a value in pages of its own.
#[inline(always)]
fn root_of<P: Pages>(mtr: &MiniTransaction<'_, P>, payload: &Payload<'_>) -> PageId {
    match payload {
        Payload::Overflow(reference) => mtr.pages().page_of(reference.swip),
        Payload::Inline(_) | Payload::Child(_) => PageId::default(),
    }
}

/// The built pages' swip lies in the leaf now.
#[inline(always)]
fn take_over<P: Pages>(
    mtr: &MiniTransaction<'_, P>,
    built: Option<(Write<'_, P>, &Built)>,
    leaf: &Write<'_, P>,
) {
    if let Some((mut anchor, _)) = built {
        let swip = Swip(anchor.view().u64(ANCHOR_SWIP));
        put_swip(anchor.page_mut(), ANCHOR_SWIP, Swip::NULL);
        mtr.adopt(swip, leaf);
        mtr.attached(mtr.pages().page_of(swip));
    }
}
