//! Finds a key in a node.
//!
//! The search begins with the hints, one cache line that shows between which two of 16 sampled
//! heads the key's head is. Then comes a binary search among the heads of that stretch, without
//! branches that depend on data. Only entries whose head equals the key's are compared in the heap.
//! Where keys are spread or short, there is at most one.

use std::cmp::Ordering;

use crate::btree::node::layout::{
    HEAD, HINT_COUNT, HINTS, Node, SLOTS_HINTED, Value, head_of, stride,
};
use crate::page::View;

/// Returns the number of entries between two hints; 0 while there are too few entries.
#[inline(always)]
pub(crate) fn hint_distance(count: usize) -> usize {
    count / (HINT_COUNT + 1)
}

/// Searches a node. Not inlined: this is the bulk of a descent, and there are too few registers for
/// both together.
#[inline(never)]
fn search<const LEAF: bool>(view: View<'_>, key: &[u8]) -> (usize, bool) {
    Node { view, leaf: LEAF }.seek(key)
}

impl Node<'_> {
    /// Returns the first entry whose key is not below `key`, and whether it is equal. The node must
    /// cover `key`, so the prefix is not compared.
    #[inline(always)]
    pub(crate) fn lower_bound(self, key: &[u8]) -> (usize, bool) {
        if self.leaf { search::<true>(self.view, key) } else { search::<false>(self.view, key) }
    }

    #[inline(always)]
    fn seek(self, key: &[u8]) -> (usize, bool) {
        let suffix = key.get(self.prefix_len()..).unwrap_or(&[]);
        let head = head_of(suffix);
        let (at, hi) = self.seek_head(head);
        if at >= self.count() || self.head(at) != head {
            return (at, false);
        }
        self.among_equals(at, hi, head, suffix)
    }

    /// Prefetches the cache lines of the entry that is most likely `key`'s, by heads alone.
    #[inline(always)]
    pub(crate) fn prefetch_entry(self, key: &[u8], most: usize) {
        let suffix = key.get(self.prefix_len()..).unwrap_or(&[]);
        let (at, _) = self.seek_head(head_of(suffix));
        if let Value::Inline(span) = self.value(at) {
            let from = self.offset(at).min(span.at);
            self.view.prefetch(from, (span.end() - from).min(most));
        }
    }

    /// Prefetches the cache lines of the slots of an inner node among which the search for `key`
    /// ends, by the hints.
    #[inline(always)]
    pub(crate) fn prefetch_slots(self, key: &[u8]) {
        let suffix = key.get(self.prefix_len()..).unwrap_or(&[]);
        let (lo, hi) = self.hinted(head_of(suffix));
        self.view.prefetch(self.slot(lo), (hi - lo.min(hi)) * stride(self.leaf) + 63);
    }

    /// Returns the first entry whose head is not below `head`, and an upper bound of the entries
    /// that may have the same head.
    #[inline(always)]
    fn seek_head(self, head: u32) -> (usize, usize) {
        let (lo, hi) = self.hinted(head);
        (self.view.lower_bound(self.slots(), stride(self.leaf), lo, hi, head), hi)
    }

    /// Returns the range of entries that holds the first one whose head is not below `head`, as far
    /// as the hints show.
    #[inline(always)]
    fn hinted(self, head: u32) -> (usize, usize) {
        let count = self.count();
        let (mut lo, mut hi) = (0, count);
        let distance = hint_distance(count);
        if self.slots() == SLOTS_HINTED && distance > 0 {
            let (below, not_above) = self.view.rank16(HINTS, head);
            if below > 0 {
                lo = below * distance + 1;
            }
            if not_above < HINT_COUNT {
                hi = (not_above + 1) * distance;
            }
        }
        (lo, hi)
    }

    /// Finishes the search: entry `at` is the first one with this head.
    #[inline(always)]
    fn among_equals(self, at: usize, hi: usize, head: u32, suffix: &[u8]) -> (usize, bool) {
        match self.compare_rest(at, suffix) {
            Ordering::Equal => return (at, true),
            Ordering::Greater => return (at, false),
            Ordering::Less => {}
        }
        let (mut lo, mut hi) = (at + 1, hi);
        while lo < hi {
            let mid = lo + (hi - lo) / 2;
            match self.head(mid).cmp(&head).then_with(|| self.compare_rest(mid, suffix)) {
                Ordering::Equal => return (mid, true),
                Ordering::Greater => hi = mid,
                Ordering::Less => lo = mid + 1,
            }
        }
        (lo, false)
    }

    /// Compares key `i`, whose head equals that of `suffix`, with `suffix`.
    #[inline(always)]
    pub(crate) fn compare_rest(self, i: usize, suffix: &[u8]) -> Ordering {
        let len = self.key_len(i);
        match suffix.get(HEAD..) {
            Some(tail) if len > HEAD && suffix.len() > HEAD => {
                self.view.compare(self.offset(i), len - HEAD, tail)
            }
            // One of the two has only a head, padded with zeros: the shorter one is smaller.
            _ => len.cmp(&suffix.len()),
        }
    }

    /// Returns the index of the child of an inner node that covers `key`.
    #[inline(always)]
    pub(crate) fn child_for(self, key: &[u8]) -> usize {
        let (at, equal) = self.lower_bound(key);
        at + usize::from(equal)
    }

    /// Returns the index of the child of an inner node that covers the keys just below `key`.
    #[inline(always)]
    pub(crate) fn child_below(self, key: &[u8]) -> usize {
        self.lower_bound(key).0
    }
}
