//! Splits nodes, and grows the root.
//!
//! A split latches the parent and the node. If the parent has no room for the separator, the parent
//! is split first, by an attempt of its own. So an attempt changes at most two levels, and always
//! leaves a sound tree.

use crate::btree::descend::{LocatedNode, Seek, sound};
use crate::btree::node::edit::{Edit, put_swip};
use crate::btree::node::layout::{INNER_SLOT, LAST_CHILD, Node, rest_of};
use crate::btree::node::split::{Cut, cut_inner, cut_leaf, trend};
use crate::btree::structure::relink::{adopt_all, copy_body, link};
use crate::btree::structure::shift::{Full, drafted};
use crate::btree::tree::{BTree, corrupt};
use crate::btree::write::rebuild::{Moved, Rebuild};
use crate::page::PageBuffer;
use crate::pool::{MiniTransaction, Pages, PoolError, Swip, Try, Write};

enum Step {
    /// There is room now.
    Done,
    /// The root grew: the node is now one level further down.
    Grown,
    /// The parent needs room for this many bytes first.
    ParentFull(usize),
}

/// A node that needs room, and the number of bytes needed.
#[derive(Clone, Copy)]
struct Need<'k> {
    key: &'k [u8],
    level: u8,
    bytes: usize,
    /// True if `key` is to be inserted, not replaced.
    is_new: bool,
}

impl<P: Pages> BTree<P> {
    /// Splits the leaf of `key`, unless it has room for `bytes` more by now.
    #[cold]
    pub(crate) fn split(&self, key: &[u8], bytes: usize, is_new: bool) -> Result<(), PoolError> {
        self.make_room(key, 0, bytes, is_new)
    }

    /// Splits the node of `level` on the path to `key`, and those above it as needed, until it has
    /// room for `bytes` more.
    pub(crate) fn make_room(
        &self,
        key: &[u8],
        level: u8,
        bytes: usize,
        is_new: bool,
    ) -> Result<(), PoolError> {
        let mut needs = vec![bytes];
        loop {
            let above = needs.len().saturating_sub(1).min(usize::from(u8::MAX)) as u8;
            let bytes = needs.last().copied().unwrap_or(0);
            let level = level.saturating_add(above);
            let need = Need { key, level, bytes, is_new: is_new && level == 0 };
            match self.pages.run(|mtr| self.split_attempt(mtr, need))? {
                Step::ParentFull(bytes) => needs.push(bytes),
                Step::Grown => {}
                Step::Done if above == 0 => return Ok(()),
                Step::Done => {
                    needs.pop();
                }
            }
        }
    }

    fn split_attempt<'o>(&self, mtr: &'o MiniTransaction<'o, P>, need: Need<'_>) -> Try<Step> {
        let Some(place) = self.place(mtr, Seek::At(need.key), need.level)? else {
            return Ok(Step::Done);
        };
        let LocatedNode { parent, index, node, depth } = place;
        let Some(parent) = parent else {
            let root = sound(node.upgrade()?, need.level)?;
            if Node::of(root.view()).free() >= need.bytes {
                return Ok(Step::Done);
            }
            self.grow(mtr, root)?;
            return Ok(Step::Grown);
        };
        drop(node);
        let mut parent = sound(parent.upgrade()?, need.level.saturating_add(1))?;
        let mut node = self.child_held(&parent, index, need.level, depth)?;
        if Node::of(node.view()).free() >= need.bytes {
            return Ok(Step::Done);
        }
        if need.level == 0 && !follows_pattern(Node::leaf(node.view()), need) {
            // If a neighbour has room to spare, no new page is needed.
            let full = Full { index, depth, bytes: need.bytes };
            if self.shift(mtr, &mut parent, &mut node, full)? {
                return Ok(Step::Done);
            }
        }
        self.split_node(mtr, parent, index, node, need)
    }

    /// Moves the root's content into a new child, which becomes its only one.
    pub(crate) fn grow<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        mut root: Write<'o, P>,
    ) -> Try<()> {
        let level = Node::of(root.view()).level();
        if level == u8::MAX {
            return Err(corrupt(root.id(), "a tree of 255 levels"));
        }
        let mut child = self.new_page(mtr, level)?;
        copy_body(root.page(), child.page_mut());
        adopt_all(mtr, &child);
        let swip = child.swip();
        let mut edit = Edit::of(root.page_mut());
        edit.set_level(level + 1);
        edit.init(&[], None);
        put_swip(root.page_mut(), LAST_CHILD, swip);
        mtr.adopt(swip, &root);
        debug_assert_eq!(Node::of(root.view()).count(), 0, "the new root has one child");
        debug_assert_eq!(Node::of(root.view()).level(), Node::of(child.view()).level() + 1);
        self.see_height(level + 1);
        self.tally.grown();
        Ok(())
    }

    fn split_node<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        mut parent: Write<'o, P>,
        index: usize,
        left: Write<'o, P>,
        need: Need<'_>,
    ) -> Try<Step> {
        let node = Node::of(left.view());
        let (is_leaf, len) = (node.leaf, node.view.len());
        let count = node.count();
        let (at, is_there) = node.lower_bound(need.key);
        if node.leaf && is_there == need.is_new {
            // Another thread has inserted or removed the key since: other room is needed now.
            return Ok(Step::Done);
        }
        // A single entry of a leaf can be separated from the one to insert.
        let is_too_few = count < if node.leaf && !need.is_new { 2 } else { 1 };
        if is_too_few && node.leaf {
            // Another thread removed the other entries, or the fences were shorter: the next
            // attempt finds out whether even an empty leaf lacks the room.
            return Ok(Step::Done);
        }
        if is_too_few {
            return Err(corrupt(left.id(), "a node with too few entries to split is full"));
        }
        let cut = if node.leaf {
            cut_leaf(node, need.is_new.then_some((need.key, at)))
        } else {
            cut_inner(node, at)
        };
        debug_assert!(cut.left <= count, "the left part has entries of the node");
        let above = Node::inner(parent.view());
        let suffix = cut.separator.len().saturating_sub(above.prefix_len());
        let bytes = INNER_SLOT + rest_of(suffix);
        if above.free() < bytes {
            return Ok(Step::ParentFull(bytes));
        }
        let right = self.new_page(mtr, need.level)?;
        let (left, right) = cut_off(mtr, left, right, &cut)?;
        adopt_all(mtr, &right);
        link(&mut parent, index, &cut.separator, &left, &right);
        mtr.adopt(right.swip(), &parent);
        self.tally.split(is_leaf);
        // Ascending keys leave full leaves, and nothing to merge.
        if is_leaf && (count..=9 * count).contains(&(10 * cut.left)) {
            self.tally.loosened(len as u64);
        }
        Ok(Step::Done)
    }
}

/// Moves everything behind the cut to the new page `right`. Returns an error, and changes nothing,
/// if an entry of the node cannot be read.
fn cut_off<'o, P: Pages>(
    mtr: &'o MiniTransaction<'o, P>,
    mut left: Write<'o, P>,
    mut right: Write<'o, P>,
    cut: &Cut,
) -> Try<(Write<'o, P>, Write<'o, P>)> {
    let old = left.page();
    let from = Node::of(left.view());
    let (lower, upper) = (from.lower_bytes(), from.upper_bytes());
    let is_leaf = from.leaf;
    let right_from = if is_leaf { cut.left } else { cut.left + 1 };
    let mut edit = Edit::of(right.page_mut());
    edit.init(&cut.separator, upper.as_deref());
    let is_whole = edit.push_range(old, right_from..from.count());
    edit.finish();
    let kept = if is_leaf {
        let (front, back) = (Moved::default(), Moved::default());
        let upper = Some(&cut.separator[..]);
        drafted(mtr, old, &Rebuild { kept: 0..cut.left, lower: &lower, upper, front, back })
    } else {
        put_swip(right.page_mut(), LAST_CHILD, Swip(from.view.u64(LAST_CHILD)));
        inner_kept(from, old, cut).map(|draft| (draft, Vec::new()))
    };
    let Some((draft, redo)) = kept.filter(|_| is_whole) else {
        right.free();
        return Err(corrupt(left.id(), "an entry reaches beyond its page"));
    };
    let page = match is_leaf {
        true => left.page_mut_with_redo(|out| out.extend_from_slice(&redo)),
        false => left.page_mut(),
    };
    copy_body(draft.bytes(), page);
    Ok((left, right))
}

/// Returns the left part of an inner node that is cut, or `None` if an entry of it cannot be read.
fn inner_kept(from: Node<'_>, old: &[u8], cut: &Cut) -> Option<PageBuffer> {
    let mut draft = PageBuffer::copy_of(old);
    let mut edit = Edit::of(draft.bytes_mut());
    edit.init(&from.lower_bytes(), Some(&cut.separator));
    let is_whole = edit.push_range(old, 0..cut.left);
    edit.finish();
    let middle = Swip(from.view.u64(from.child_at(cut.left)));
    put_swip(draft.bytes_mut(), LAST_CHILD, middle);
    is_whole.then_some(draft)
}

/// Returns whether the next insert continues a pattern, for which a split leaves full leaves.
fn follows_pattern(leaf: Node<'_>, need: Need<'_>) -> bool {
    need.is_new && trend(leaf, leaf.lower_bound(need.key).0) != 0
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::pool::{Optimistic, Twin};

    #[test]
    fn a_leaf_is_not_split_for_a_key_that_was_inserted_or_removed_meanwhile() {
        let tree = BTree::create(Arc::new(Twin::<Optimistic>::new(512).unwrap()), 1).unwrap();
        assert!(tree.insert(b"other", &[7; 40]).unwrap());
        // The request is for more room than there is beside the one entry: for a value whose key
        // was removed, and for a key that was inserted.
        tree.split(b"gone", 400, false).unwrap();
        tree.split(b"other", 400, true).unwrap();
        assert_eq!(tree.counters().leaf_splits, 0);
        assert_eq!(tree.check().unwrap().violations, []);
        assert_eq!(tree.count().unwrap(), 1);
    }
}
