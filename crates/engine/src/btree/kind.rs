//! What the pool is told of the tree's page types: where their swips are.

use std::sync::Arc;

use crate::btree::node::edit::reference_at;
use crate::btree::node::layout::{KIND, LAST_CHILD, LEVEL, Node, Value};
use crate::btree::overflow::{BODY, data_max, fan_out};
use crate::page::{PageType, View};
use crate::pool::Kind;

/// Inner nodes.
#[derive(Clone, Copy, Debug, Default)]
pub struct InnerKind;

/// Leaves: values in overflow pages hang below them.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeafKind;

/// Overflow pages: those above the data hold swips.
#[derive(Clone, Copy, Debug, Default)]
pub struct OverflowKind;

/// Page types and their kinds, for the pool.
pub fn register() -> Vec<(PageType, Arc<dyn Kind>)> {
    vec![
        (PageType::BTREE_INNER, Arc::new(InnerKind)),
        (PageType::BTREE_LEAF, Arc::new(LeafKind)),
        (PageType::OVERFLOW, Arc::new(OverflowKind)),
    ]
}

/// Whether a page of a tree, of whatever type, has a swip at byte `at`; a page that is no sound
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
    fn swips(&self, page: View<'_>, visit: &mut dyn FnMut(usize) -> bool) {
        let node = Node::inner(page);
        for i in 0..node.count() {
            if !visit(node.child_at(i)) {
                return;
            }
        }
        visit(LAST_CHILD);
    }

    /// Searches for the child's lower fence; children without one, or elsewhere, cost a scan.
    fn find(&self, page: View<'_>, word: u64, child: View<'_>) -> Option<usize> {
        let (node, child) = (Node::inner(page), Node::of(child));
        let at = node.child_at(node.child_for(&child.lower_bytes()));
        if page.u64(at) == word { Some(at) } else { scan(self, page, word) }
    }
}

impl Kind for LeafKind {
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

    /// A value that fits into one page is that page.
    fn leads_on(&self, page: View<'_>, at: usize) -> bool {
        reference_at(page, at).len > data_max(page.len()) as u64
    }
}

impl Kind for OverflowKind {
    fn swips(&self, page: View<'_>, visit: &mut dyn FnMut(usize) -> bool) {
        if page.u8(LEVEL) == 0 {
            return;
        }
        let count = crate::btree::overflow::used(page).min(fan_out(page.len()));
        for i in 0..count {
            if !visit(BODY + 8 * i) {
                return;
            }
        }
    }

    fn leads_on(&self, page: View<'_>, _: usize) -> bool {
        page.u8(LEVEL) > 1
    }
}
