//! The layout of a node, and reads of it.
//!
//! ```text
//! offset size
//!      0   32  the common page header; its level is 0 for a leaf
//!     32    2  count of entries
//!     34    2  prefix: leading bytes that both fences, so all keys, share
//!     36    4  lower fence: offset, length
//!     40    4  upper fence: offset, length
//!     44    4  heap: the lowest byte in use of the heap, which grows down from the page's end
//!     48    4  garbage: bytes of the heap that no slot refers to
//!     52    1  flags: bit 0: there is an upper fence (else the node covers all keys above)
//!     53    1  streak: how often in a row inserts went upwards (> 0) or downwards (< 0)
//!     54    2  where the last insert went
//!     56    8  inner: the swip of the last child · leaf: how many values are in overflow pages
//!     64   64  hints: 16 heads, sampled evenly (not in leaves of pages up to 4 KiB)
//!      …       slots, sorted by key
//!                  leaf, 10 bytes:   head u32, offset u16, key length u16, value length u16
//!                  inner, 16 bytes:  head u32, offset u16, key length u16, swip u64
//!      …       free
//!      …       heap: rests of keys, values, fences
//! ```
//! All integers are little-endian. A node covers the keys from its lower fence up to, but not
//! including, its upper fence. Inner slot *i* holds a separator and the child for the keys below it
//! that are not below separator *i − 1*; the last child is for the rest.
//!
//! A key is stored without the prefix. Its next four bytes, padded with zeros, are the *head*: a
//! number in the order of the bytes. So a search compares numbers in the slots and seldom reads the
//! heap. The heap holds only the rest of the key after the head, and the value behind it. Offsets
//! fit 16 bits even where pages have 65536 bytes, since nothing of length 0 has an offset.
//!
//! The value length of a leaf's slot is `0x8000` if the value is in overflow pages. The entry then
//! holds, at the next multiple of 8, a reference of 24 bytes: swip, length, stamp. The swips are at
//! multiples of 8, so that one load reads them.
//!
//! Reads never trust a page. Whatever a slot states, it is read through a [`View`], which returns 0
//! outside the page, and lengths are used only in copies that check them.

use std::ops::Range;

use crate::page::{PageType, View};

pub(crate) const LEVEL: usize = 29;
pub(crate) const KIND: usize = 28;
pub(crate) const COUNT: usize = 32;
pub(crate) const PREFIX: usize = 34;
pub(crate) const LOWER: usize = 36;
pub(crate) const UPPER: usize = 40;
pub(crate) const HEAP: usize = 44;
pub(crate) const GARBAGE: usize = 48;
pub(crate) const FLAGS: usize = 52;
pub(crate) const STREAK: usize = 53;
pub(crate) const LAST_INSERT: usize = 54;
/// Offset of the swip of the last child, in inner nodes.
pub(crate) const LAST_CHILD: usize = 56;
/// Offset of the number of values in overflow pages, in leaves.
pub(crate) const OVERFLOWS: usize = 56;
pub(crate) const HINTS: usize = 64;
pub(crate) const HINT_COUNT: usize = 16;
/// Offset of the slots, with and without hints.
pub(crate) const SLOTS_HINTED: usize = HINTS + 4 * HINT_COUNT;
pub(crate) const HAS_UPPER: u8 = 1;

pub(crate) const LEAF_SLOT: usize = 10;
pub(crate) const INNER_SLOT: usize = 16;
/// Offset of the swip in an inner slot.
pub(crate) const SLOT_SWIP: usize = 8;
pub(crate) const HEAD: usize = 4;

/// Value length that marks a value in overflow pages.
pub(crate) const OVERFLOW: u16 = 0x8000;
/// Bytes of a reference to overflow pages: swip, length, stamp.
pub(crate) const REFERENCE: usize = 24;
/// Bytes of a reference, with room to align it.
pub(crate) const REFERENCE_ROOM: usize = REFERENCE + 7;

/// The largest page size whose leaves have no hints: their slots fill five cache lines.
const UNHINTED_PAGE_MAX: usize = 4096;

/// A node, read through raw loads.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    pub(crate) view: View<'a>,
    pub(crate) leaf: bool,
}

/// A range of bytes in a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Span {
    pub(crate) at: usize,
    pub(crate) len: usize,
}

impl Span {
    pub(crate) fn end(self) -> usize {
        self.at + self.len
    }
}

/// The place of the value of a leaf's entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    Inline(Span),
    /// Offset of the reference.
    Overflow(usize),
}

/// Returns the offset of the slots.
#[inline(always)]
pub(crate) const fn slots_at(page_size: usize, leaf: bool) -> usize {
    if leaf && page_size <= UNHINTED_PAGE_MAX { HINTS } else { SLOTS_HINTED }
}

#[inline(always)]
pub(crate) fn stride(leaf: bool) -> usize {
    if leaf { LEAF_SLOT } else { INNER_SLOT }
}

/// Returns the head of a key's remainder.
#[inline(always)]
pub(crate) fn head_of(suffix: &[u8]) -> u32 {
    match suffix.first_chunk::<HEAD>() {
        Some(head) => u32::from_be_bytes(*head),
        None => {
            let mut head = [0; HEAD];
            head[..suffix.len()].copy_from_slice(suffix);
            u32::from_be_bytes(head)
        }
    }
}

/// Returns the number of bytes of a key's remainder that go to the heap.
#[inline(always)]
pub(crate) fn rest_of(key_len: usize) -> usize {
    key_len.saturating_sub(HEAD)
}

/// Returns the length of the longest common prefix.
pub(crate) fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

impl<'a> Node<'a> {
    #[inline(always)]
    pub(crate) fn leaf(view: View<'a>) -> Node<'a> {
        Node { view, leaf: true }
    }

    #[inline(always)]
    pub(crate) fn inner(view: View<'a>) -> Node<'a> {
        Node { view, leaf: false }
    }

    /// Returns a leaf or an inner node, by the page's level.
    #[inline]
    pub(crate) fn of(view: View<'a>) -> Node<'a> {
        Node { view, leaf: view.u8(LEVEL) == 0 }
    }

    #[inline(always)]
    pub(crate) fn level(self) -> u8 {
        self.view.u8(LEVEL)
    }

    /// Returns whether the page is a node of this level.
    #[inline(always)]
    pub(crate) fn is_node(view: View<'_>, level: u8) -> bool {
        let kind = if level == 0 { PageType::BTREE_LEAF } else { PageType::BTREE_INNER };
        view.u8(LEVEL) == level && view.u8(KIND) == kind.0
    }

    #[inline(always)]
    pub(crate) fn slots(self) -> usize {
        slots_at(self.view.len(), self.leaf)
    }

    /// Returns the number of entries; 0 if the page states more than fit.
    #[inline(always)]
    pub(crate) fn count(self) -> usize {
        let count = usize::from(self.view.u16(COUNT));
        if self.slots() + count * stride(self.leaf) <= self.view.len() { count } else { 0 }
    }

    /// Returns whether the numbers in the header are consistent. Checked before a writer uses them.
    pub(crate) fn is_sound(self) -> bool {
        let size = self.view.len();
        let end = self.slots() + usize::from(self.view.u16(COUNT)) * stride(self.leaf);
        let heap = self.heap();
        let fence = |span: Span| span.len == 0 || (span.at >= heap && span.end() <= size);
        end <= heap
            && heap <= size
            && self.garbage() <= size - heap
            && fence(self.lower())
            && fence(self.span(UPPER))
            && self.prefix_len() <= self.lower().len
    }

    #[inline(always)]
    pub(crate) fn prefix_len(self) -> usize {
        usize::from(self.view.u16(PREFIX))
    }

    #[inline(always)]
    pub(crate) fn heap(self) -> usize {
        self.view.u32(HEAP) as usize
    }

    pub(crate) fn garbage(self) -> usize {
        self.view.u32(GARBAGE) as usize
    }

    #[inline(always)]
    pub(crate) fn span(self, at: usize) -> Span {
        Span { at: usize::from(self.view.u16(at)), len: usize::from(self.view.u16(at + 2)) }
    }

    #[inline(always)]
    pub(crate) fn lower(self) -> Span {
        self.span(LOWER)
    }

    /// Returns the upper fence, or `None` if the keys have no upper bound.
    #[inline(always)]
    pub(crate) fn upper(self) -> Option<Span> {
        if self.view.u8(FLAGS) & HAS_UPPER == 0 { None } else { Some(self.span(UPPER)) }
    }

    /// Returns the shared prefix: the beginning of the lower fence.
    #[inline(always)]
    pub(crate) fn prefix(self) -> Span {
        let lower = self.lower();
        Span { at: lower.at, len: self.prefix_len().min(lower.len) }
    }

    /// Returns the number of bytes between slots and heap.
    pub(crate) fn gap(self) -> usize {
        self.gap_range().len()
    }

    /// Returns the range of the free bytes.
    pub(crate) fn gap_range(self) -> Range<usize> {
        let end = self.slots() + self.count() * stride(self.leaf);
        end..self.heap().min(self.view.len()).max(end)
    }

    /// Returns the number of free bytes, garbage included.
    pub(crate) fn free(self) -> usize {
        self.gap() + self.garbage()
    }

    /// Returns the number of bytes in use behind the header.
    pub(crate) fn used(self) -> usize {
        (self.view.len() - self.slots()).saturating_sub(self.free())
    }

    /// Returns whether the node should be merged with a neighbour, because less than three tenths
    /// of it are in use.
    pub(crate) fn is_thin(self) -> bool {
        self.count() == 0 || self.used() * 10 < (self.view.len() - self.slots()) * 3
    }

    #[inline(always)]
    pub(crate) fn slot(self, i: usize) -> usize {
        self.slots() + i * stride(self.leaf)
    }

    #[inline(always)]
    pub(crate) fn head(self, i: usize) -> u32 {
        self.view.u32(self.slot(i))
    }

    #[inline(always)]
    pub(crate) fn offset(self, i: usize) -> usize {
        usize::from(self.view.u16(self.slot(i) + 4))
    }

    /// Returns the number of bytes of key `i` behind the prefix.
    #[inline(always)]
    pub(crate) fn key_len(self, i: usize) -> usize {
        usize::from(self.view.u16(self.slot(i) + 6))
    }

    /// Returns the part of key `i` behind its head.
    #[inline(always)]
    pub(crate) fn rest(self, i: usize) -> Span {
        Span { at: self.offset(i), len: rest_of(self.key_len(i)) }
    }

    /// Appends key `i` without the prefix; returns `false` if it is not all inside the page.
    #[inline]
    pub(crate) fn suffix_to(self, i: usize, out: &mut Vec<u8>) -> bool {
        let (head, len) = (self.head(i).to_be_bytes(), self.key_len(i));
        out.extend_from_slice(&head[..len.min(HEAD)]);
        let rest = self.rest(i);
        rest.len == 0 || self.view.copy_to(rest.at, rest.len, out)
    }

    /// Copies key `i` to `out`.
    #[inline]
    pub(crate) fn key_to(self, i: usize, out: &mut Vec<u8>) -> bool {
        out.clear();
        self.append(self.prefix(), out) && self.suffix_to(i, out)
    }

    /// Appends the bytes of a span.
    #[inline]
    pub(crate) fn append(self, span: Span, out: &mut Vec<u8>) -> bool {
        span.len == 0 || self.view.copy_to(span.at, span.len, out)
    }

    /// Returns a copy of the bytes of a span.
    pub(crate) fn bytes(self, span: Span) -> Vec<u8> {
        let mut out = Vec::with_capacity(span.len);
        self.append(span, &mut out);
        out
    }

    /// Returns a copy of the lower fence.
    pub(crate) fn lower_bytes(self) -> Vec<u8> {
        self.bytes(self.lower())
    }

    /// Returns a copy of the upper fence.
    pub(crate) fn upper_bytes(self) -> Option<Vec<u8>> {
        self.upper().map(|span| self.bytes(span))
    }

    /// Returns the value of entry `i` of a leaf.
    #[inline(always)]
    pub(crate) fn value(self, i: usize) -> Value {
        let rest = self.rest(i).len;
        let at = self.offset(i) + rest;
        match self.view.u16(self.slot(i) + 8) {
            OVERFLOW => Value::Overflow(at.next_multiple_of(8)),
            len => Value::Inline(Span { at, len: usize::from(len) }),
        }
    }

    /// Returns the number of bytes of entry `i` in the heap.
    pub(crate) fn heap_len(self, i: usize) -> usize {
        let rest = self.rest(i).len;
        if !self.leaf {
            return rest;
        }
        rest + match self.value(i) {
            Value::Inline(span) => span.len,
            Value::Overflow(_) => REFERENCE_ROOM,
        }
    }

    /// Returns the number of bytes that entry `i` would occupy, slot included, with a prefix of
    /// `prefix` bytes.
    pub(crate) fn entry_len_under(self, i: usize, prefix: usize) -> usize {
        let full = self.prefix_len() + self.key_len(i);
        stride(self.leaf) + self.heap_len(i) - self.rest(i).len
            + rest_of(full.saturating_sub(prefix))
    }

    /// Returns the number of a leaf's values in overflow pages.
    #[inline]
    pub(crate) fn overflows(self) -> usize {
        usize::from(self.view.u16(OVERFLOWS))
    }

    /// Returns the offset of the swip of child `i` of an inner node, which has `count + 1`
    /// children.
    #[inline(always)]
    pub(crate) fn child_at(self, i: usize) -> usize {
        if i < self.count() { self.slot(i) + SLOT_SWIP } else { LAST_CHILD }
    }
}
