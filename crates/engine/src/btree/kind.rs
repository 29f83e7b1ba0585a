//! The kinds of the tree's page types, through which the pool finds swips and verifies loads.

use std::ops::Range;

use crate::btree::node::edit::reference_at;
use crate::btree::node::layout::{INNER_SLOT, KIND, LAST_CHILD, LEVEL, Node, Value};
use crate::btree::value::layout::{
    BODY, Held, STAMP, data_max, fan_out, held_by, held_in_root, level_for, used,
};
use crate::page::{PageHeader, PageType, View};
use crate::pool::Kind;
use crate::pool::kind::verify_header;

/// Inner nodes.
#[derive(Clone, Copy, Debug, Default)]
pub struct InnerKind;

/// Leaves: they hold the swips of the roots of values in overflow pages.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeafKind;

/// Overflow pages: those above the data hold swips.
#[derive(Clone, Copy, Debug, Default)]
pub struct OverflowKind;

/// Page types that hold swips, and their kinds: to be registered with a pool before use.
pub const KINDS: [(PageType, &dyn Kind); 3] = [
    (PageType::BTREE_INNER, &InnerKind),
    (PageType::BTREE_LEAF, &LeafKind),
    (PageType::OVERFLOW, &OverflowKind),
];

/// Returns whether a page of a tree, of any type, has a swip at byte `at`. A page that is no sound
/// node has none.
pub(crate) fn is_swip(page: View<'_>, at: usize) -> bool {
    let mut found = false;
    let mut visit = |swip| {
        found |= swip == at;
        !found
    };
    match PageType(page.u8(KIND)) {
        PageType::BTREE_INNER if Node::inner(page).is_sound() => InnerKind.swips(page, &mut visit),
        PageType::BTREE_LEAF if Node::leaf(page).is_sound() => LeafKind.swips(page, &mut visit),
        PageType::OVERFLOW => OverflowKind.swips(page, &mut visit),
        _ => {}
    }
    found
}

/// Formats a fence, short enough for a message.
fn shown(fence: Option<&[u8]>) -> String {
    const SHOWN: usize = 32;
    let Some(fence) = fence else { return "none".to_string() };
    let more = if fence.len() > SHOWN { "…" } else { "" };
    format!("\"{}{more}\"", fence[..fence.len().min(SHOWN)].escape_ascii())
}

/// Verifies that a node covers the keys from `lower` up to `upper`.
fn verify_fences(node: Node<'_>, lower: &[u8], upper: Option<&[u8]>) -> Result<(), String> {
    let (own_lower, own_upper) = (node.lower_bytes(), node.upper_bytes());
    let fits = own_lower == lower && own_upper.as_deref() == upper;
    if fits {
        return Ok(());
    }
    Err(format!(
        "its fences are {} and {}, not {} and {}",
        shown(Some(&own_lower)),
        shown(own_upper.as_deref()),
        shown(Some(lower)),
        shown(upper)
    ))
}

/// Verifies that `page` is part of the value with the given stamp and, if `expected` is known, that
/// the page holds it.
fn verify_overflow(page: View<'_>, stamp: u64, expected: Option<Held>) -> Result<(), String> {
    if page.u64(STAMP) != stamp {
        return Err("it is part of another value".to_string());
    }
    match (held_by(page), expected) {
        (found, Some(expected)) if found != expected => {
            let Held { used, front } = found;
            let wanted = format!("{} and {}", expected.used, expected.front);
            Err(format!(
                "it holds {used} bytes or references of its value and {front} bytes of its front, \
                 not {wanted}"
            ))
        }
        _ => Ok(()),
    }
}

fn scan(kind: &dyn Kind, page: View<'_>, word: u64) -> Option<usize> {
    let mut found = None;
    kind.swips(page, &mut |at| {
        if page.u64(at) == word {
            found = Some(at);
        }
        found.is_none()
    });
    found
}

impl Kind for InnerKind {
    fn gap(&self, page: View<'_>) -> Range<usize> {
        Node::inner(page).gap_range()
    }

    fn swips(&self, page: View<'_>, visit: &mut dyn FnMut(usize) -> bool) {
        let node = Node::inner(page);
        for i in 0..node.count() {
            if !visit(node.child_at(i)) {
                return;
            }
        }
        visit(LAST_CHILD);
    }

    /// Finds the child's swip by its lower fence; a child without one, or in another place, costs a
    /// scan.
    fn find(&self, page: View<'_>, word: u64, child: View<'_>) -> Option<usize> {
        let (node, child) = (Node::inner(page), Node::of(child));
        let at = node.child_at(node.child_for(&child.lower_bytes()));
        if page.u64(at) == word { Some(at) } else { scan(self, page, word) }
    }

    /// Checks that the child covers the keys between the separators around its swip.
    fn verify_child(&self, page: View<'_>, at: usize, child: View<'_>) -> Result<(), String> {
        let node = Node::inner(page);
        let level = node.level().saturating_sub(1);
        let kind = if level == 0 { PageType::BTREE_LEAF } else { PageType::BTREE_INNER };
        verify_header(child, kind, level, PageHeader::owner_in(page))?;
        let index = match at {
            LAST_CHILD => node.count(),
            at => at.saturating_sub(node.slots()) / INNER_SLOT,
        };
        let key = |i: usize| {
            let mut key = Vec::with_capacity(node.prefix_len() + node.key_len(i));
            node.key_to(i, &mut key);
            key
        };
        let lower = index.checked_sub(1).map_or_else(|| node.lower_bytes(), key);
        let upper = if index < node.count() { Some(key(index)) } else { node.upper_bytes() };
        verify_fences(Node::of(child), &lower, upper.as_deref())
    }

    fn verify_root(&self, page: View<'_>) -> Result<(), String> {
        verify_fences(Node::of(page), &[], None)
    }
}

impl Kind for LeafKind {
    fn gap(&self, page: View<'_>) -> Range<usize> {
        Node::leaf(page).gap_range()
    }

    fn swips(&self, page: View<'_>, visit: &mut dyn FnMut(usize) -> bool) {
        let node = Node::leaf(page);
        if node.overflows() == 0 {
            return;
        }
        for i in 0..node.count() {
            if let Value::Overflow(at) = node.value(i)
                && at + 8 <= page.len()
                && !visit(at)
            {
                return;
            }
        }
    }

    /// Returns whether the value has more than one page: a value that fits into one page is that
    /// page.
    fn leads_on(&self, page: View<'_>, at: usize) -> bool {
        reference_at(page, at).len > data_max(page.len()) as u64
    }

    /// Checks that the child is the root of the value that the entry refers to.
    fn verify_child(&self, page: View<'_>, at: usize, child: View<'_>) -> Result<(), String> {
        let reference = reference_at(page, at);
        let level = level_for(page.len(), reference.len);
        verify_header(child, PageType::OVERFLOW, level, PageHeader::owner_in(page))?;
        verify_overflow(child, reference.stamp, Some(held_in_root(page.len(), reference.len)))
    }

    fn verify_root(&self, page: View<'_>) -> Result<(), String> {
        verify_fences(Node::of(page), &[], None)
    }
}

impl Kind for OverflowKind {
    fn swips(&self, page: View<'_>, visit: &mut dyn FnMut(usize) -> bool) {
        if page.u8(LEVEL) == 0 {
            return;
        }
        let count = used(page).min(fan_out(page.len()));
        for i in 0..count {
            if !visit(BODY + 8 * i) {
                return;
            }
        }
    }

    fn leads_on(&self, page: View<'_>, _: usize) -> bool {
        page.u8(LEVEL) > 1
    }

    fn verify_stamp(&self, page: View<'_>, stamp: u64) -> Result<(), String> {
        verify_overflow(page, stamp, None)
    }

    /// Checks that the child is part of the same value, and full unless it is the last: while a
    /// value is being written or freed, the last page may hold less.
    fn verify_child(&self, page: View<'_>, at: usize, child: View<'_>) -> Result<(), String> {
        let level = page.u8(LEVEL).saturating_sub(1);
        verify_header(child, PageType::OVERFLOW, level, PageHeader::owner_in(page))?;
        let size = page.len();
        let used_by_all = if level == 0 { data_max(size) } else { fan_out(size) } as u64;
        let full = Held { used: used_by_all, front: 0 };
        let is_last = at.saturating_sub(BODY) / 8 + 1 >= used(page);
        verify_overflow(child, page.u64(STAMP), (!is_last).then_some(full))
    }
}
