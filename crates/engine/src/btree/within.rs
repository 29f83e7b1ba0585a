//! The entries of a leaf within the bounds of a range, and the fences of the leaf.

use std::ops::Bound;

use crate::btree::node::layout::Node;

/// Returns the key of a bound, if it has one.
pub(crate) fn key_of(bound: &Bound<Vec<u8>>) -> Option<&[u8]> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}

/// Returns the position of `key` in a leaf that need not cover it: the first entry that is not
/// below `key`, and whether it is equal.
pub(crate) fn place_in(node: Node<'_>, key: &[u8]) -> (usize, bool) {
    let lower = node.lower();
    if node.view.compare(lower.at, lower.len, key).is_gt() {
        return (0, false);
    }
    match node.upper() {
        Some(upper) if node.view.compare(upper.at, upper.len, key).is_le() => (node.count(), false),
        _ => node.lower_bound(key),
    }
}

/// Returns the first entry of a leaf within a lower bound.
pub(crate) fn first_in(node: Node<'_>, bound: &Bound<Vec<u8>>) -> usize {
    match bound {
        Bound::Unbounded => 0,
        Bound::Included(key) => place_in(node, key).0,
        Bound::Excluded(key) => {
            let (at, equal) = place_in(node, key);
            at + usize::from(equal)
        }
    }
}

/// Returns the end of the entries of a leaf within an upper bound.
pub(crate) fn end_in(node: Node<'_>, bound: &Bound<Vec<u8>>) -> usize {
    match bound {
        Bound::Unbounded => node.count(),
        Bound::Excluded(key) => place_in(node, key).0,
        Bound::Included(key) => {
            let (at, equal) = place_in(node, key);
            at + usize::from(equal)
        }
    }
}

/// Returns the fence of a leaf in a direction.
pub(crate) fn fence_of(node: Node<'_>, forward: bool) -> Option<Vec<u8>> {
    if forward {
        return node.upper_bytes();
    }
    let fence = node.lower_bytes();
    (!fence.is_empty()).then_some(fence)
}
