//! Shared parts of structural changes: copying nodes between pages, and maintaining swips and their
//! owners.

use crate::btree::node::edit::{Edit, reference_at};
use crate::btree::node::layout::{Node, Value};
use crate::btree::write::redo_note;
use crate::page::PAGE_HEADER;
use crate::pool::{MiniTransaction, Pages, Swip, Write};

/// Inserts `right` into the parent after child `index`, which is `left`.
pub(crate) fn link<P: Pages>(
    parent: &mut Write<'_, P>,
    index: usize,
    separator: &[u8],
    left: &Write<'_, P>,
    right: &Write<'_, P>,
) {
    debug_assert!(index <= Node::inner(parent.view()).count(), "the parent has that child");
    let beside = [left.swip(), right.swip()];
    let pages = [left.id(), right.id()];
    let page = parent.page_mut_with_redo(|out| redo_note::link(out, index, separator, pages));
    let has_room = redo_note::link_in(&mut Edit::inner(page), index, separator, beside);
    debug_assert!(has_room, "the caller has seen that there is room");
}

/// Copies all but the common header.
pub(crate) fn copy_body(from: &[u8], to: &mut [u8]) {
    debug_assert_eq!(from.len(), to.len(), "both are pages");
    let start = PAGE_HEADER.min(from.len());
    if from.len() == to.len() {
        to[start..].copy_from_slice(&from[start..]);
    }
}

/// Registers `page` with the pool as the owner of every swip in it.
pub(crate) fn adopt_all<P: Pages>(mtr: &MiniTransaction<'_, P>, page: &Write<'_, P>) {
    let node = Node::of(page.view());
    if !node.leaf {
        for i in 0..=node.count() {
            mtr.adopt(Swip(node.view.u64(node.child_at(i))), page);
        }
    } else if node.overflows() > 0 {
        for i in 0..node.count() {
            if let Value::Overflow(at) = node.value(i) {
                mtr.adopt(reference_at(node.view, at).swip, page);
            }
        }
    }
}
