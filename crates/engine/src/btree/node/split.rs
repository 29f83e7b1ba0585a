//! Chooses the place to split a node, and the fence between the halves.
//!
//! A separator between two keys is the shortest byte string that is above the lower key and not
//! above the upper one. Near the middle, the cut with the shortest separator is taken. Ascending
//! inserts leave the left part full, so that ascending loads fill their leaves; descending inserts
//! leave the right part full.

use crate::btree::node::layout::*;

/// Number of inserts in one direction that make a pattern.
const STREAK_MIN: i8 = 4;
/// Maximum number of cuts to consider on each side of the middle.
const WINDOW_MAX: usize = 8;

/// A cut of a node into two parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cut {
    /// Number of entries of the left part. In an inner node, the separator behind them moves up.
    pub(crate) left: usize,
    /// The fence between the parts.
    pub(crate) separator: Vec<u8>,
}

/// Returns the shortest string above `left` and not above `right`, which is larger than `left`.
pub(crate) fn separator<'r>(left: &[u8], right: &'r [u8]) -> &'r [u8] {
    right.get(..common(left, right) + 1).unwrap_or(right)
}

/// Returns the number of entries that occupy about half of the bytes.
fn middle(node: Node<'_>) -> usize {
    let (count, prefix) = (node.count(), node.prefix_len());
    let total: usize = (0..count).map(|i| node.entry_len_under(i, prefix)).sum();
    let mut sum = 0;
    for i in 0..count {
        let entry = node.entry_len_under(i, prefix);
        if (sum + entry) * 2 >= total {
            // The middle is inside this entry: the entry goes to the side that has more of it.
            return if (sum * 2 + entry) <= total { i + 1 } else { i };
        }
        sum += entry;
    }
    count
}

/// Returns the direction of recent inserts, if the next one, at `at`, continues it.
pub(crate) fn trend(node: Node<'_>, at: usize) -> i8 {
    let last = usize::from(node.view.u16(LAST_INSERT));
    let streak = node.view.u8(STREAK) as i8;
    if node.upper().is_none() && at == node.count() && at > 0 {
        return 1;
    }
    if streak >= STREAK_MIN && at == last + 1 {
        1
    } else if streak <= -STREAK_MIN && at == last {
        -1
    } else {
        0
    }
}

/// Returns whether each part of a node fits into a page, with its new fences.
fn fits(node: Node<'_>, cut: &Cut) -> bool {
    let room = node.view.len() - node.slots();
    // The bytes in use include the node's own fences; new fences only make keys shorter.
    if node.used() + cut.separator.len() <= room {
        return true;
    }
    let (lower, upper) = (node.lower_bytes(), node.upper_bytes());
    let size = |range: std::ops::Range<usize>, low: &[u8], high: Option<&[u8]>| {
        let prefix = high.map_or(0, |high| common(low, high));
        let entries: usize = range.map(|i| node.entry_len_under(i, prefix)).sum();
        entries + low.len() + high.map_or(0, <[u8]>::len)
    };
    let right = if node.leaf { cut.left } else { cut.left + 1 };
    size(0..cut.left, &lower, Some(&cut.separator)) <= room
        && size(right..node.count(), &cut.separator, upper.as_deref()) <= room
}

/// Returns the cut before entry `left` of a leaf, or at separator `left` of an inner node.
fn cut_at(node: Node<'_>, left: usize) -> Cut {
    let mut key = Vec::new();
    node.key_to(left, &mut key);
    if node.leaf {
        let mut before = Vec::new();
        node.key_to(left.saturating_sub(1), &mut before);
        key.truncate(common(&before, &key) + 1);
    }
    Cut { left, separator: key }
}

/// Returns the wanted cut if it fits, or the nearest to the middle that does. There always is one:
/// see [`crate::btree::Limits`].
fn settle(node: Node<'_>, wanted: Cut, first: usize, middle: impl FnOnce() -> usize) -> Cut {
    if fits(node, &wanted) {
        return wanted;
    }
    let middle = middle();
    let last = node.count().saturating_sub(1);
    let mut others: Vec<usize> = (first..=last).collect();
    others.sort_by_key(|left| left.abs_diff(middle));
    let found = others.into_iter().map(|left| cut_at(node, left)).find(|cut| fits(node, cut));
    found.unwrap_or(wanted)
}

/// Returns the cut of a leaf of at least two entries, or of one entry beside which there is no room
/// for `new`, the key to insert and its slot.
pub(crate) fn cut_leaf(node: Node<'_>, new: Option<(&[u8], usize)>) -> Cut {
    debug_assert!(node.leaf, "a leaf is cut between entries");
    debug_assert!(node.count() > 0);
    let count = node.count();
    let last = count.saturating_sub(1).max(1);
    let middle = || middle(node).clamp(1, last);
    if let Some((key, at)) = new
        && (count == 1 || trend(node, at) != 0)
        && at <= count
    {
        // The new key goes to the smaller part, at its edge.
        let mut beside = Vec::new();
        let separator = if at > 0 && at * 2 >= count {
            node.key_to(at - 1, &mut beside);
            separator(&beside, key).to_vec()
        } else {
            node.key_to(at, &mut beside);
            separator(key, &beside).to_vec()
        };
        return settle(node, Cut { left: at, separator }, 1, middle);
    }
    let middle = middle();
    let window = (count / 16).clamp(1, WINDOW_MAX);
    let near = middle.saturating_sub(window).max(1)..=(middle + window).min(last);
    let wanted = near
        .map(|left| cut_at(node, left))
        .min_by_key(|cut| (cut.separator.len(), cut.left.abs_diff(middle)))
        .unwrap_or_else(|| cut_at(node, middle));
    settle(node, wanted, 1, || middle)
}

/// Returns the cut of an inner node of at least one separator; the next insert is at `at`.
pub(crate) fn cut_inner(node: Node<'_>, at: usize) -> Cut {
    debug_assert!(!node.leaf, "an inner node is cut at a separator");
    debug_assert!(node.count() > 0);
    let count = node.count();
    let last = count.saturating_sub(1);
    let middle = middle(node).saturating_sub(1).min(last);
    let left = match trend(node, at) {
        0 => {
            let window = (count / 16).min(WINDOW_MAX);
            let near = middle.saturating_sub(window)..=(middle + window).min(last);
            near.min_by_key(|i| (node.key_len(*i), i.abs_diff(middle))).unwrap_or(middle)
        }
        up if up > 0 => at.saturating_sub(1).clamp(count / 2, last),
        _ => at.min(count / 2).min(last),
    };
    settle(node, cut_at(node, left), 0, || middle)
}
