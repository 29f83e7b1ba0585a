//! Making room without a new page: a full leaf shares its entries with a neighbour.
//!
//! Leaves that are only ever split are 69 % full after random inserts (ln 2). Sharing entries with
//! a neighbour below the same parent that has room to spare, before splitting, keeps them above
//! three quarters. Inserts that follow a pattern are left to the split, which leaves full leaves
//! for them; neighbours that are not resident are not loaded.

use crate::btree::node::edit::Edit;
use crate::btree::node::layout::{INNER_SLOT, Node, common, rest_of};
use crate::btree::node::split::separator;
use crate::btree::structure::relink::{adopt_all, copy_body};
use crate::btree::tree::BTree;
use crate::btree::write::rebuild::{Moved, Rebuild};
use crate::btree::write::redo_note;
use crate::page::PageBuffer;
use crate::pool::{MiniTransaction, Pages, Swip, Try, Write};

/// A neighbour has room to spare if it could take this share of its page, in percent: each of the
/// two is left with half of it, and less is soon used up.
const SPARE_PERCENT: usize = 20;
/// Cuts on each side of the middle that are considered for a shorter separator.
const WINDOW: usize = 3;

/// A full leaf, child `index` of its parent, that needs room for `bytes` more bytes.
#[derive(Clone, Copy)]
pub(crate) struct Full {
    pub(crate) index: usize,
    pub(crate) depth: u8,
    pub(crate) bytes: usize,
}

/// Two neighbours, seen as one leaf.
struct Both<'a> {
    left: Node<'a>,
    right: Node<'a>,
    pages: [&'a [u8]; 2],
    /// The prefix of all keys of both: entries occupy at most as much below either one's own.
    prefix: usize,
}

impl Both<'_> {
    fn count(&self) -> usize {
        self.left.count() + self.right.count()
    }

    fn of(&self, i: usize) -> (Node<'_>, usize) {
        let first = self.left.count();
        if i < first { (self.left, i) } else { (self.right, i - first) }
    }

    fn size(&self, i: usize) -> usize {
        let (node, i) = self.of(i);
        node.entry_len_under(i, self.prefix)
    }

    fn key(&self, i: usize) -> Vec<u8> {
        let (node, i) = self.of(i);
        let mut key = Vec::new();
        node.key_to(i, &mut key);
        key
    }

    fn separator(&self, cut: usize) -> Vec<u8> {
        separator(&self.key(cut.saturating_sub(1)), &self.key(cut)).to_vec()
    }

    /// Returns the number of entries that occupy half of the bytes, or nearly half with a shorter
    /// separator, and the separator.
    fn cut(&self) -> (usize, Vec<u8>) {
        let sizes: Vec<usize> = (0..self.count()).map(|i| self.size(i)).collect();
        let total: usize = sizes.iter().sum();
        let mut sum = 0;
        let before_half = sizes.iter().take_while(|size| {
            sum += **size;
            sum * 2 <= total
        });
        let last = self.count().saturating_sub(1).max(1);
        let middle = before_half.count().clamp(1, last);
        let near = middle.saturating_sub(WINDOW).max(1)..=(middle + WINDOW).min(last);
        let cuts = near.map(|cut| (cut, self.separator(cut)));
        let best = cuts.min_by_key(|(cut, key)| (key.len(), cut.abs_diff(middle)));
        best.unwrap_or_else(|| (middle, self.separator(middle)))
    }

    /// Returns the bytes of some entries.
    fn bytes(&self, entries: std::ops::Range<usize>) -> usize {
        entries.map(|i| self.size(i)).sum()
    }
}

impl<P: Pages> BTree<P> {
    /// Shares the entries of the full leaf `node` with a neighbour, if one has room to spare;
    /// afterwards both have the room that is needed.
    pub(crate) fn shift<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        parent: &mut Write<'o, P>,
        node: &mut Write<'o, P>,
        full: Full,
    ) -> Try<bool> {
        let Full { index, depth, bytes } = full;
        debug_assert!(index <= Node::inner(parent.view()).count(), "the parent has that child");
        let last = Node::inner(parent.view()).count();
        let neighbours = [index.checked_sub(1), (index < last).then_some(index + 1)];
        for at in neighbours.into_iter().flatten() {
            let word = Swip(parent.view().u64(Node::inner(parent.view()).child_at(at)));
            if !mtr.pages().is_resident(word) {
                continue;
            }
            let mut other = self.child_held(parent, at, 0, depth)?;
            let (free, page) = (Node::leaf(other.view()).free(), other.view().len());
            if free * 100 < page * SPARE_PERCENT || free / 2 < bytes {
                continue;
            }
            let shifted = if at < index {
                self.even_out(mtr, parent, at, &mut other, node, bytes)
            } else {
                self.even_out(mtr, parent, index, node, &mut other, bytes)
            };
            if shifted {
                self.tally.shifted();
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Distributes the entries of two neighbours evenly; `false`, and nothing changed, if that does
    /// not make the room that is needed.
    fn even_out<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        parent: &mut Write<'o, P>,
        index: usize,
        left: &mut Write<'o, P>,
        right: &mut Write<'o, P>,
        bytes: usize,
    ) -> bool {
        let (a, b) = (Node::leaf(left.view()), Node::leaf(right.view()));
        let (lower, upper) = (a.lower_bytes(), b.upper_bytes());
        let prefix = upper.as_ref().map_or(0, |upper| common(&lower, upper));
        let both = Both { left: a, right: b, pages: [left.page(), right.page()], prefix };
        if both.count() < 2 {
            return false;
        }
        let (cut, middle) = both.cut();
        let fences = lower.len().max(upper.as_ref().map_or(0, Vec::len)) + middle.len();
        // Both need the room: otherwise the same leaf would be full again at once.
        let room = (a.view.len() - a.slots()).saturating_sub(fences + bytes);
        if both.bytes(0..cut) > room || both.bytes(cut..both.count()) > room {
            return false;
        }
        let above = Node::inner(parent.view());
        let entry = INNER_SLOT + rest_of(middle.len().saturating_sub(above.prefix_len()));
        if above.free() + above.entry_len_under(index, above.prefix_len()) < entry {
            return false;
        }
        let first = a.count();
        let [mine, others] = both.pages;
        let moved = |source, entries| Moved { source, entries };
        // Entries move to one side only.
        let halves = [
            Rebuild {
                kept: 0..cut.min(first),
                lower: &lower,
                upper: Some(&middle),
                front: Moved::default(),
                back: moved(others, 0..cut.saturating_sub(first)),
            },
            Rebuild {
                kept: cut.saturating_sub(first)..b.count(),
                lower: &middle,
                upper: upper.as_deref(),
                front: moved(mine, cut.min(first)..first),
                back: Moved::default(),
            },
        ];
        let [Some(one), Some(two)] =
            [drafted(mtr, mine, &halves[0]), drafted(mtr, others, &halves[1])]
        else {
            return false;
        };
        for ((draft, note), page) in [one, two].iter().zip([&mut *left, &mut *right]) {
            let bytes = page.page_mut_with_redo(|out| out.extend_from_slice(note));
            copy_body(draft.bytes(), bytes);
            debug_assert!(Node::leaf(page.view()).is_sound(), "a leaf that was filled is sound");
            // Values in overflow pages may have moved to the other leaf.
            adopt_all(mtr, page);
        }
        let above = parent.page_mut_with_redo(|out| redo_note::move_fence(out, index, &middle));
        let has_room = redo_note::move_fence_in(&mut Edit::inner(above), index, &middle);
        debug_assert!(has_room, "it was seen that there is room");
        true
    }
}

/// A leaf that is built anew, and its redo record if there is a log; `None` if its entries do not
/// fit.
pub(super) fn drafted<P: Pages>(
    mtr: &MiniTransaction<'_, P>,
    own: &[u8],
    how: &Rebuild<'_>,
) -> Option<(PageBuffer, Vec<u8>)> {
    let draft = how.build(own)?;
    let mut note = Vec::new();
    if mtr.is_logged() {
        redo_note::rebuild(&mut note, how, |swip| mtr.pages().page_of(swip));
    }
    Some((draft, note))
}
