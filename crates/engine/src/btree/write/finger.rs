//! A finger: the leaf written last, so that writes that stay in one leaf need no descent.
//!
//! A write by the finger latches the remembered leaf directly, at the version that the last write
//! left (`pool/hint.rs`), and checks that its fences are around the key; otherwise it descends.
//! Every write remembers its leaf, but the leaf is tried first only once two writes in a row went
//! there. So random writes pay for a comparison, and hardly ever latch the wrong leaf.
//!
//! The place of the last entry is remembered, too. The next key of an ascending sequence comes
//! right behind it; where entries are removed one after the other, the next key is at that very
//! place.

use std::cmp::Ordering;

use millpond_base::AccessKind;

use crate::btree::node::layout::{Node, Span, head_of};
use crate::btree::tree::{BTree, mark};
use crate::page::{PageHeader, View};
use crate::pool::{MiniTransaction, PageHint, Pages, Try, Write};

/// Place of the last write of a sequence. There is one finger for each sequence, for any number of
/// trees.
#[derive(Clone, Copy, Default, Debug)]
pub struct Finger {
    /// Owner id of the tree that the leaf belongs to.
    owner: u32,
    leaf: Option<PageHint>,
    /// Index of the entry written.
    at: u16,
    /// True if the last two writes went to the same leaf.
    stays: bool,
    /// The outermost leaf, which is empty, if entries are popped at an end. The remembered leaf is
    /// its neighbour.
    emptied: Option<PageHint>,
}

impl Finger {
    /// Returns the leaf, if it belongs to the tree `owner`.
    pub(crate) fn leaf_of(&self, owner: u32) -> Option<PageHint> {
        self.leaf.filter(|_| self.owner == owner)
    }

    /// Returns the outermost leaf of the tree `owner`, if it is remembered as empty.
    pub(crate) fn emptied_of(&self, owner: u32) -> Option<PageHint> {
        self.emptied.filter(|_| self.owner == owner)
    }

    /// Remembers the leaf of the entry to write next, and the empty leaf beside it.
    #[inline]
    pub(crate) fn found(
        &mut self,
        owner: u32,
        leaf: Option<PageHint>,
        emptied: Option<PageHint>,
        at: usize,
    ) {
        *self = Finger { owner, leaf, at: at as u16, stays: true, emptied };
    }

    /// Remembers a leaf after its last write under the present latch.
    #[inline]
    pub(crate) fn set(&mut self, owner: u32, leaf: Option<PageHint>, at: usize) {
        let is_same = |known: PageHint| leaf.is_some_and(|leaf| leaf.is_of_page_of(known));
        self.stays = self.owner == owner && self.leaf.is_some_and(is_same);
        if !self.stays {
            self.emptied = None;
        }
        (self.owner, self.leaf, self.at) = (owner, leaf, at as u16);
    }
}

/// Returns whether a leaf's fences are around `key`.
fn covers(node: Node<'_>, key: &[u8]) -> bool {
    let compare = |fence: Span| node.view.compare(fence.at, fence.len, key);
    let lower = node.lower();
    (lower.len == 0 || compare(lower).is_le())
        && node.upper().is_none_or(|upper| compare(upper).is_gt())
}

/// Returns whether `page` is a leaf of the tree `owner`.
pub(crate) fn is_leaf_of(page: View<'_>, owner: u32) -> bool {
    Node::is_node(page, 0) && PageHeader::owner_in(page) == owner
}

/// Compares entry `i` with a key without the prefix.
fn compare(node: Node<'_>, i: usize, suffix: &[u8]) -> Ordering {
    node.head(i).cmp(&head_of(suffix)).then_with(|| node.compare_rest(i, suffix))
}

/// Like [`Node::lower_bound`], if the key's place is `at` or the one behind it.
#[inline]
fn place_near(node: Node<'_>, at: usize, key: &[u8]) -> Option<(usize, bool)> {
    let count = node.count();
    let suffix = key.get(node.prefix_len()..)?;
    if at > count || (at > 0 && compare(node, at - 1, suffix).is_ge()) {
        return None;
    }
    for i in at..=(at + 1).min(count) {
        if i == count {
            return Some((i, false));
        }
        match compare(node, i, suffix) {
            Ordering::Less => {}
            order => return Some((i, order.is_eq())),
        }
    }
    None
}

impl<P: Pages> BTree<P> {
    /// Returns the leaf that covers `key`, latched exclusively, with the place of `key` in it.
    #[inline(always)]
    pub(super) fn place_to_write<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        key: &[u8],
        finger: Option<&Finger>,
    ) -> Try<(Write<'o, P>, (usize, bool))> {
        if let Some(finger) = finger
            && finger.stays
            && let Some(found) = self.place_by(mtr, key, finger)
        {
            return Ok(found);
        }
        let leaf = self.leaf_to_write(mtr, key)?;
        let place = Node::leaf(leaf.view()).lower_bound(key);
        Ok((leaf, place))
    }

    #[inline(never)]
    fn place_by<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        key: &[u8],
        finger: &Finger,
    ) -> Option<(Write<'o, P>, (usize, bool))> {
        let depth = self.height_hint();
        let hint = finger.leaf_of(self.owner)?;
        let leaf = mtr.pages().recall(mtr, hint, mark(AccessKind::Write, true, depth))?;
        let node = Node::leaf(leaf.view());
        if !is_leaf_of(leaf.view(), self.owner) || !covers(node, key) {
            return None;
        }
        let near = place_near(node, usize::from(finger.at), key);
        let place = near.unwrap_or_else(|| node.lower_bound(key));
        debug_assert_eq!(place, node.lower_bound(key), "both ways lead to one place");
        Some((leaf, place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btree::node::edit::{Edit, Payload};

    #[test]
    fn a_place_that_is_near_is_the_one_that_a_search_finds() {
        let mut random = fastrand::Rng::with_seed(7);
        let (mut found, mut rounds) = (0, 0);
        for _ in 0..200 {
            let mut page = vec![0; 2048];
            let mut edit = Edit::leaf(&mut page);
            edit.init(b"ab", Some(b"ac"));
            let tail = |random: &mut fastrand::Rng| {
                let len = random.usize(..7);
                [b"ab".to_vec(), (0..len).map(|_| random.u8(..3)).collect()].concat()
            };
            for _ in 0..random.usize(..60) {
                let key = tail(&mut random);
                let (at, is_there) = edit.node().lower_bound(&key);
                if !is_there {
                    assert!(edit.insert(at, &key, &Payload::Inline(&[1, 2])));
                }
            }
            for _ in 0..60 {
                let (key, node) = (tail(&mut random), edit.node());
                let at = random.usize(..node.count() + 3);
                let place = node.lower_bound(&key);
                rounds += 1;
                match place_near(node, at, &key) {
                    Some(near) => {
                        found += 1;
                        assert_eq!(near, place, "{key:?} near {at}");
                    }
                    None => assert!(
                        at > node.count() || !(at..=at + 1).contains(&place.0),
                        "{key:?} is at {place:?}, near {at}"
                    ),
                }
            }
        }
        assert!(found > rounds / 40 && found < rounds, "{found} of {rounds}");
    }
}
