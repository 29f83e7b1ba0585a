//! Edits an exclusively latched node, or a draft of one.
//!
//! Every write is checked against the page's length, so that an edit of a damaged page stays inside
//! the page. Callers first check [`Node::is_sound`] and report the damage.

use std::ops::Range;

use crate::btree::node::layout::*;
use crate::btree::node::search::hint_distance;
use crate::page::{PAGE_HEADER, PageBuffer, PageType, View};
use crate::pool::Swip;

/// The reference to a value in overflow pages, as its leaf entry holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reference {
    /// Swip of the root of the value's pages.
    pub(crate) swip: Swip,
    /// Bytes of the value.
    pub(crate) len: u64,
    /// Stamp drawn when the value was written; it distinguishes the value from any other value of
    /// the key.
    pub(crate) stamp: u64,
}

/// The content of an entry besides its key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload<'a> {
    Inline(&'a [u8]),
    Overflow(Reference),
    Child(Swip),
}

impl Payload<'_> {
    /// Returns the number of bytes that the payload occupies in the heap.
    pub(crate) fn heap_len(&self) -> usize {
        match self {
            Payload::Inline(value) => value.len(),
            Payload::Overflow(_) => REFERENCE_ROOM,
            Payload::Child(_) => 0,
        }
    }
}

/// A node under edit.
pub(crate) struct Edit<'a> {
    page: &'a mut [u8],
    leaf: bool,
}

fn put(page: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = at.checked_add(bytes.len()).and_then(|end| page.get_mut(at..end)) {
        place.copy_from_slice(bytes);
    }
}

fn put16(page: &mut [u8], at: usize, value: usize) {
    put(page, at, &(value as u16).to_le_bytes());
}

fn put32(page: &mut [u8], at: usize, value: usize) {
    put(page, at, &(value as u32).to_le_bytes());
}

/// Writes a swip into an exclusively latched page.
pub(crate) fn put_swip(page: &mut [u8], at: usize, swip: Swip) {
    put(page, at, &swip.0.to_le_bytes());
}

/// Returns the reference at `at` of a latched or copied leaf.
pub(crate) fn reference_at(view: View<'_>, at: usize) -> Reference {
    Reference { swip: Swip(view.u64(at)), len: view.u64(at + 8), stamp: view.u64(at + 16) }
}

impl<'a> Edit<'a> {
    pub(crate) fn leaf(page: &'a mut [u8]) -> Edit<'a> {
        Edit { page, leaf: true }
    }

    pub(crate) fn inner(page: &'a mut [u8]) -> Edit<'a> {
        Edit { page, leaf: false }
    }

    /// Edits a leaf or an inner node, by the page's level.
    pub(crate) fn of(page: &'a mut [u8]) -> Edit<'a> {
        let leaf = Node::of(View::of(page)).leaf;
        Edit { page, leaf }
    }

    pub(crate) fn node(&self) -> Node<'_> {
        Node { view: View::of(self.page), leaf: self.leaf }
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.page
    }

    /// Initialises an empty node with the given fences.
    pub(crate) fn init(&mut self, lower: &[u8], upper: Option<&[u8]>) {
        let slots = slots_at(self.page.len(), self.leaf);
        if let Some(header) = self.page.get_mut(PAGE_HEADER..slots) {
            header.fill(0);
        }
        let mut heap = self.page.len();
        let mut fence = |page: &mut [u8], at: usize, bytes: &[u8]| {
            if !bytes.is_empty() {
                heap = heap.saturating_sub(bytes.len());
                put(page, heap, bytes);
                put16(page, at, heap);
                put16(page, at + 2, bytes.len());
            }
        };
        fence(self.page, LOWER, lower);
        if let Some(upper) = upper {
            fence(self.page, UPPER, upper);
            put(self.page, FLAGS, &[HAS_UPPER]);
            put16(self.page, PREFIX, common(lower, upper));
        }
        put32(self.page, HEAP, heap);
    }

    /// Changes the page's level, and thereby the type of node.
    pub(crate) fn set_level(&mut self, level: u8) {
        let kind = if level == 0 { PageType::BTREE_LEAF } else { PageType::BTREE_INNER };
        put(self.page, LEVEL, &[level]);
        put(self.page, KIND, &[kind.0]);
        self.leaf = level == 0;
    }

    /// Returns the number of bytes that an entry occupies in this node, slot included.
    pub(crate) fn entry_len(&self, key_len: usize, payload: &Payload<'_>) -> usize {
        self.node().need(key_len, payload)
    }

    /// Inserts an entry at its slot. Returns `false`, and changes nothing, if there is no room.
    pub(crate) fn insert(&mut self, at: usize, key: &[u8], payload: &Payload<'_>) -> bool {
        let need = self.entry_len(key.len(), payload);
        if self.node().gap() < need {
            if self.node().free() < need {
                return false;
            }
            self.compact();
            if self.node().gap() < need {
                return false;
            }
        }
        let (count, free) = (self.node().count(), self.node().free());
        let at = at.min(count);
        let (slot, end) = (self.node().slot(at), self.node().slot(count));
        self.page.copy_within(slot..end, slot + stride(self.leaf));
        let suffix = key.get(self.node().prefix_len()..).unwrap_or(&[]);
        self.fill(slot, suffix, payload);
        put16(self.page, COUNT, count + 1);
        debug_assert_eq!(self.node().count(), count + 1);
        debug_assert_eq!(self.node().free() + need, free, "an entry occupies what was asked for");
        self.hint(at, count);
        true
    }

    /// Appends an entry without updating the hints; see [`Edit::finish`].
    pub(crate) fn push(&mut self, key: &[u8], payload: &Payload<'_>) -> bool {
        let need = self.entry_len(key.len(), payload);
        if self.node().gap() < need {
            return false;
        }
        let (count, free) = (self.node().count(), self.node().free());
        let slot = self.node().slot(count);
        let suffix = key.get(self.node().prefix_len()..).unwrap_or(&[]);
        self.fill(slot, suffix, payload);
        put16(self.page, COUNT, count + 1);
        debug_assert_eq!(self.node().count(), count + 1);
        debug_assert_eq!(self.node().free() + need, free, "an entry occupies what was asked for");
        true
    }

    /// Writes slot and heap of an entry for which there is room.
    fn fill(&mut self, slot: usize, suffix: &[u8], payload: &Payload<'_>) {
        let rest = suffix.get(HEAD..).unwrap_or(&[]);
        let size = rest.len() + payload.heap_len();
        let heap = self.node().heap().saturating_sub(size);
        put32(self.page, HEAP, heap);
        put(self.page, heap, rest);
        let at = heap + rest.len();
        put(self.page, slot, &head_of(suffix).to_le_bytes());
        put16(self.page, slot + 4, if size == 0 { 0 } else { heap });
        put16(self.page, slot + 6, suffix.len());
        match payload {
            Payload::Inline(value) => {
                put(self.page, at, value);
                put16(self.page, slot + 8, value.len());
            }
            Payload::Overflow(reference) => {
                // The bytes that align the reference are always the same, too: see `Kind::gap`.
                put(self.page, at, &[0; REFERENCE_ROOM]);
                self.put_reference(at.next_multiple_of(8), reference);
                put16(self.page, slot + 8, usize::from(OVERFLOW));
                let overflows = self.node().overflows();
                put16(self.page, OVERFLOWS, overflows + 1);
            }
            Payload::Child(swip) => put_swip(self.page, slot + SLOT_SWIP, *swip),
        }
    }

    fn put_reference(&mut self, at: usize, reference: &Reference) {
        put_swip(self.page, at, reference.swip);
        put(self.page, at + 8, &reference.len.to_le_bytes());
        put(self.page, at + 16, &reference.stamp.to_le_bytes());
    }

    /// Replaces the swip of child `i` of an inner node.
    pub(crate) fn set_child(&mut self, i: usize, swip: Swip) {
        debug_assert!(!self.leaf, "an inner node has children");
        debug_assert!(i <= self.node().count(), "child {i} is one of the node's");
        let at = self.node().child_at(i);
        put_swip(self.page, at, swip);
    }

    /// Removes entry `i`. In an inner node, an entry is a separator and the child left of it.
    pub(crate) fn remove(&mut self, i: usize) {
        let node = self.node();
        let count = node.count();
        if i >= count {
            return;
        }
        let (size, offset, heap, garbage) =
            (node.heap_len(i), node.offset(i), node.heap(), node.garbage());
        let overflow = self.leaf && matches!(node.value(i), Value::Overflow(_));
        let (slot, end, overflows) = (node.slot(i), node.slot(count), node.overflows());
        if size > 0 && offset == heap {
            put32(self.page, HEAP, heap + size);
        } else {
            put32(self.page, GARBAGE, garbage + size);
        }
        self.page.copy_within(slot + stride(self.leaf)..end, slot);
        put16(self.page, COUNT, count - 1);
        if overflow {
            put16(self.page, OVERFLOWS, overflows.saturating_sub(1));
        }
        self.hint(i, count);
    }

    /// Returns the bytes of an inline value, to change them in place.
    pub(crate) fn value_mut(&mut self, i: usize) -> Option<&mut [u8]> {
        match self.node().value(i) {
            Value::Inline(span) => self.page.get_mut(span.at..span.end()),
            Value::Overflow(_) => None,
        }
    }

    /// Records the slot of an insert, so that a split can distinguish ascending from random
    /// inserts.
    pub(crate) fn count_insert(&mut self, at: usize) {
        let last = usize::from(self.node().view.u16(LAST_INSERT));
        let streak = self.node().view.u8(STREAK) as i8;
        let next = if at == last + 1 {
            streak.max(0).saturating_add(1)
        } else if at == last {
            streak.min(0).saturating_sub(1)
        } else {
            0
        };
        put(self.page, STREAK, &[next as u8]);
        put16(self.page, LAST_INSERT, at);
    }

    /// Appends entries of the node `source`; returns `false` if they do not all fit. The swips of
    /// the copies belong to this node from then on, if it is in a page.
    pub(crate) fn push_range(&mut self, source: &[u8], range: Range<usize>) -> bool {
        let from = Node { view: View::of(source), leaf: self.leaf };
        let same = from.prefix_len() == self.node().prefix_len();
        let mut key = Vec::new();
        range.into_iter().all(|i| {
            if same && self.push_block(source, from, i) {
                return true;
            }
            let payload = match payload_of(source, from, i) {
                Some(payload) => payload,
                None => return false,
            };
            from.key_to(i, &mut key) && self.push(&key, &payload)
        })
    }

    /// Appends a copy of an entry, whose key and value are contiguous in the heap.
    fn push_block(&mut self, source: &[u8], from: Node<'_>, i: usize) -> bool {
        if self.leaf && matches!(from.value(i), Value::Overflow(_)) {
            return false;
        }
        let (size, offset, width) = (from.heap_len(i), from.offset(i), stride(self.leaf));
        let Some(block) = source.get(offset..offset + size) else { return false };
        let Some(slot_from) = source.get(from.slot(i)..from.slot(i) + width) else { return false };
        let node = self.node();
        if node.gap() < width + size {
            return false;
        }
        let (count, heap) = (node.count(), node.heap() - size);
        let slot = node.slot(count);
        put(self.page, heap, block);
        put(self.page, slot, slot_from);
        put16(self.page, slot + 4, if size == 0 { 0 } else { heap });
        put32(self.page, HEAP, heap);
        put16(self.page, COUNT, count + 1);
        true
    }

    /// Compacts the heap, so that the free bytes are contiguous.
    pub(crate) fn compact(&mut self) {
        let old = PageBuffer::copy_of(self.page);
        let from = Node { view: old.view(), leaf: self.leaf };
        let (lower, upper) = (from.lower_bytes(), from.upper_bytes());
        let run = old.bytes().get(STREAK..LAST_CHILD).map(<[u8]>::to_vec).unwrap_or_default();
        let last = Swip(from.view.u64(LAST_CHILD));
        self.init(&lower, upper.as_deref());
        put(self.page, STREAK, &run);
        if !self.leaf {
            put_swip(self.page, LAST_CHILD, last);
        }
        self.push_range(old.bytes(), 0..from.count());
        self.finish();
    }

    /// Updates the hints after [`Edit::push`].
    pub(crate) fn finish(&mut self) {
        let count = self.node().count();
        self.hint_from(0, hint_distance(count));
    }

    /// Updates the hints after an edit at `at`, before which there were `before` entries.
    fn hint(&mut self, at: usize, before: usize) {
        let distance = hint_distance(self.node().count());
        if distance == 0 {
            return;
        }
        let first =
            if distance == hint_distance(before) { (at / distance).saturating_sub(1) } else { 0 };
        self.hint_from(first, distance);
    }

    fn hint_from(&mut self, first: usize, distance: usize) {
        if distance == 0 || self.node().slots() != SLOTS_HINTED {
            return;
        }
        for i in first..HINT_COUNT {
            let head = self.node().head((i + 1) * distance);
            put(self.page, HINTS + 4 * i, &head.to_le_bytes());
        }
    }
}

/// Returns the payload of entry `i` of a latched or copied node.
pub(crate) fn payload_of<'s>(source: &'s [u8], node: Node<'_>, i: usize) -> Option<Payload<'s>> {
    if !node.leaf {
        return Some(Payload::Child(Swip(node.view.u64(node.slot(i) + SLOT_SWIP))));
    }
    Some(match node.value(i) {
        Value::Inline(span) => Payload::Inline(source.get(span.at..span.end())?),
        Value::Overflow(at) => Payload::Overflow(reference_at(node.view, at)),
    })
}

impl Node<'_> {
    /// Returns the number of bytes that an entry occupies in this node, slot included.
    pub(crate) fn need(self, key_len: usize, payload: &Payload<'_>) -> usize {
        let suffix = key_len.saturating_sub(self.prefix_len());
        stride(self.leaf) + rest_of(suffix) + payload.heap_len()
    }

    /// Returns the reference of entry `i` of a leaf, if its value is in overflow pages.
    pub(crate) fn reference(self, i: usize) -> Option<Reference> {
        match self.value(i) {
            Value::Inline(_) => None,
            Value::Overflow(at) => Some(reference_at(self.view, at)),
        }
    }
}
