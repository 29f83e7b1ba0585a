//! Makes room without a new page: a full leaf shares its entries with a neighbour.
//!
//! Leaves that are only ever split are 69 % full after random inserts (ln 2). Before a split, a
//! full leaf shares its entries with a neighbour below the same parent that has room to spare. That
//! keeps leaves above three quarters. Inserts that follow a pattern are left to the split, which
//! leaves full leaves for them. Neighbours that are not resident are not loaded.

use crate::btree::node::edit::Edit;
use crate::btree::node::layout::{INNER_SLOT, Node, common, rest_of};
use crate::btree::node::split::separator;
use crate::btree::structure::relink::{adopt_all, copy_body};
use crate::btree::tree::BTree;
use crate::btree::write::rebuild::{Moved, Rebuild};
use crate::btree::write::redo_note;
use crate::page::PageBuffer;
use crate::pool::{MiniTransaction, Pages, Swip, Try, Write};

/// Free share of its page, in percent, at which a neighbour has room to spare: each of the two gets
/// half of it, and less is soon used up.
const SPARE_PERCENT: usize = 20;
/// Number of cuts on each side of the middle to consider for a shorter separator.
const WINDOW: usize = 3;

/// A full leaf, child `index` of its parent, that needs room for `bytes` more bytes.
#[derive(Clone, Copy)]
pub(crate) struct Full {
    pub(crate) index: usize,
    pub(crate) depth: u8,
    pub(crate) bytes: usize,
}

/// Two neighbours as one leaf.
struct Both<'a> {
    left: Node<'a>,
    right: Node<'a>,
    pages: [&'a [u8]; 2],
    /// Length of the prefix of all keys of both: entries occupy at most as much with either leaf's
    /// own prefix.
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

    /// Returns the length of the separator at a cut. The heads of the two keys suffice if both are
    /// in one leaf and their heads differ, as nearly all do.
    fn separator_len(&self, cut: usize) -> usize {
        let ((node, i), (other, j)) = (self.of(cut.saturating_sub(1)), self.of(cut));
        let differ = node.head(i) ^ other.head(j);
        if i >= j || differ == 0 {
            return self.separator(cut).len();
        }
        // Zeros fill the heads of keys that end within them.
        let same = ((differ.leading_zeros() / 8) as usize).min(node.key_len(i));
        node.prefix_len() + (same + 1).min(other.key_len(j))
    }

    /// Returns the number of entries that occupy half of the bytes, or nearly half with a shorter
    /// separator; and that separator.
    fn cut(&self) -> (usize, Vec<u8>) {
        let mut sizes = Vec::with_capacity(self.count());
        sizes.extend((0..self.count()).map(|i| self.size(i)));
        let total: usize = sizes.iter().sum();
        let mut sum = 0;
        let before_half = sizes.iter().take_while(|size| {
            sum += **size;
            sum * 2 <= total
        });
        let last = self.count().saturating_sub(1).max(1);
        let middle = before_half.count().clamp(1, last);
        let near = middle.saturating_sub(WINDOW).max(1)..=(middle + WINDOW).min(last);
        let best = near.min_by_key(|cut| (self.separator_len(*cut), cut.abs_diff(middle)));
        let cut = best.unwrap_or(middle);
        let separator = self.separator(cut);
        debug_assert_eq!(separator.len(), self.separator_len(cut), "the heads tell the length");
        (cut, separator)
    }

    /// Returns the number of bytes that some entries occupy.
    fn bytes(&self, entries: std::ops::Range<usize>) -> usize {
        entries.map(|i| self.size(i)).sum()
    }
}

impl<P: Pages> BTree<P> {
    /// Shares the entries of the full leaf `node` with a neighbour, if one has room to spare. Both
    /// have the needed room afterwards.
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

    /// Distributes the entries of two neighbours evenly. Returns `false`, and changes nothing, if
    /// that does not make the needed room.
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

/// Drafts a rebuilt leaf, and its redo record if there is a log. Returns `None` if its entries do
/// not fit.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btree::node::edit::Payload;
    use crate::page::{PageHeader, PageType, View};

    fn leaf(lower: &[u8], upper: Option<&[u8]>, keys: &[Vec<u8>]) -> Vec<u8> {
        let mut page = vec![0; 2048];
        let (lsn, kind) = (millpond_base::Lsn(0), PageType::BTREE_LEAF);
        let page_id = millpond_base::PageId(9);
        PageHeader { checksum: 0, lsn, page: page_id, owner: 1, kind, level: 0 }.write(&mut page);
        let mut edit = Edit::leaf(&mut page);
        edit.init(lower, upper);
        for (at, key) in keys.iter().enumerate() {
            assert!(edit.insert(at, key, &Payload::Inline(b"value")));
        }
        page
    }

    #[test]
    fn heads_tell_how_long_the_separator_of_two_keys_is() {
        let mut random = fastrand::Rng::with_seed(4);
        for _ in 0..500 {
            // Keys with zeros, some of which are prefixes of others.
            let mut keys: Vec<Vec<u8>> = (0..random.usize(2..24))
                .map(|_| {
                    let rest = (0..random.usize(0..8)).map(|_| random.u8(0..3));
                    [b"aa".to_vec(), rest.collect()].concat()
                })
                .collect();
            keys.sort();
            keys.dedup();
            let first = random.usize(0..keys.len());
            let (mine, others) = keys.split_at(first);
            let middle = &others[0];
            let pages = [leaf(b"aa", Some(middle), mine), leaf(middle, Some(b"aab"), others)];
            let [left, right] = [&pages[0], &pages[1]].map(|page| Node::leaf(View::of(page)));
            let both = Both { left, right, pages: [&pages[0], &pages[1]], prefix: 2 };
            for cut in 1..keys.len() {
                let wanted = separator(&keys[cut - 1], &keys[cut]);
                assert_eq!(both.separator(cut), wanted);
                assert_eq!(both.separator_len(cut), wanted.len(), "{keys:?} at {cut}");
            }
        }
    }
}
