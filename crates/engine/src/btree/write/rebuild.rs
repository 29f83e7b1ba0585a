//! Rebuilds a leaf: it keeps some of its entries, gets others from a neighbour, and has new fences
//! (in a split, or a shift between neighbours).
//!
//! All of the leaf's bytes move, but little is new: the fences, and the entries that moved in. So
//! it is logged by a physiological redo record, from which redo builds the same leaf.
//!
//! ```text
//! first, number kept, lower fence, 0 | 1 and upper fence, number in front, entries, number behind,
//! entries: each a key and a payload
//! ```

use std::ops::Range;

use millpond_base::PageId;

use crate::btree::node::edit::{Edit, Payload, payload_of};
use crate::btree::node::layout::{Node, slots_at};
use crate::btree::write::logged_payload::{put_payload, take_payload};
use crate::page::varint::{put_bytes, put_varint, take_bytes, take_varint};
use crate::page::{PAGE_HEADER, PageBuffer, View};
use crate::pool::Swip;

/// Entries of another leaf.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moved<'a> {
    /// Page of that leaf before the change.
    pub(crate) source: &'a [u8],
    /// Indexes of the entries.
    pub(crate) entries: Range<usize>,
}

/// Description of a rebuilt leaf.
#[derive(Clone, Debug)]
pub(crate) struct Rebuild<'a> {
    /// Entries that the leaf keeps.
    pub(crate) kept: Range<usize>,
    /// Lower fence of the leaf.
    pub(crate) lower: &'a [u8],
    /// Upper fence of the leaf, if it has one.
    pub(crate) upper: Option<&'a [u8]>,
    /// Entries that move in before the kept ones.
    pub(crate) front: Moved<'a>,
    /// Entries that move in behind the kept ones.
    pub(crate) back: Moved<'a>,
}

impl Rebuild<'_> {
    /// Builds the leaf from `own`, its page before the change. Returns `None` if its entries do not
    /// fit.
    pub(crate) fn build(&self, own: &[u8]) -> Option<PageBuffer> {
        let mut draft = PageBuffer::new(own.len());
        let mut edit = Edit::leaf(draft.bytes_mut());
        edit.init(self.lower, self.upper);
        let is_whole = edit.push_range(self.front.source, self.front.entries.clone())
            && edit.push_range(own, self.kept.clone())
            && edit.push_range(self.back.source, self.back.entries.clone());
        edit.finish();
        is_whole.then_some(draft)
    }

    /// Appends the description; `page_of` returns the page that a swip refers to.
    pub(crate) fn put(&self, out: &mut Vec<u8>, page_of: impl Fn(Swip) -> PageId) {
        put_varint(out, self.kept.start as u64);
        put_varint(out, self.kept.len() as u64);
        put_bytes(out, self.lower);
        match self.upper {
            None => out.push(0),
            Some(upper) => {
                out.push(1);
                put_bytes(out, upper);
            }
        }
        let mut key = Vec::new();
        for Moved { source, entries } in [&self.front, &self.back] {
            put_varint(out, entries.len() as u64);
            let node = Node::leaf(View::of(source));
            for i in entries.clone() {
                node.key_to(i, &mut key);
                put_bytes(out, &key);
                // The entries were read when the leaf was built.
                let payload = payload_of(source, node, i).unwrap_or(Payload::Inline(&[]));
                let root = match &payload {
                    Payload::Overflow(reference) => page_of(reference.swip),
                    _ => PageId(0),
                };
                put_payload(out, &payload, root);
            }
        }
    }
}

/// Rebuilds the leaf in `page` as the rest of a redo record describes. Returns `None`, and changes
/// nothing, if that is impossible.
pub(super) fn redo(page: &mut [u8], mut note: &[u8]) -> Option<()> {
    let note = &mut note;
    let count = Node::leaf(View::of(page)).count();
    let number = |note: &mut &[u8]| usize::try_from(take_varint(note)?).ok();
    let (first, kept) = (number(note)?, number(note)?);
    let kept = first..first.checked_add(kept).filter(|end| *end <= count)?;
    let lower = take_bytes(note)?;
    let (&has_upper, rest) = note.split_first()?;
    *note = rest;
    let upper = match has_upper {
        0 => None,
        1 => Some(take_bytes(note)?),
        _ => return None,
    };
    let mut draft = PageBuffer::new(page.len());
    // Fences that do not fit would be cut off.
    let fences = lower.len() + upper.map_or(0, <[u8]>::len);
    if fences > page.len().saturating_sub(slots_at(page.len(), true)) {
        return None;
    }
    let mut edit = Edit::leaf(draft.bytes_mut());
    edit.init(lower, upper);
    let moved = |edit: &mut Edit<'_>, note: &mut &[u8]| {
        for _ in 0..number(note)? {
            let key = take_bytes(note)?;
            let payload = take_payload(note)?;
            if !edit.push(key, &payload) {
                return None;
            }
        }
        Some(())
    };
    moved(&mut edit, note)?;
    if !edit.push_range(page, kept) {
        return None;
    }
    moved(&mut edit, note)?;
    edit.finish();
    page.get_mut(PAGE_HEADER..)?.copy_from_slice(draft.bytes().get(PAGE_HEADER..)?);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btree::node::edit::Reference;
    use crate::btree::write::redo_note;
    use crate::page::{PageHeader, PageType};

    const LEN: usize = 1024;

    fn leaf(lower: &[u8], upper: Option<&[u8]>) -> Vec<u8> {
        let mut page = vec![0; LEN];
        let (lsn, kind) = (millpond_base::Lsn(0), PageType::BTREE_LEAF);
        PageHeader { checksum: 0, lsn, page: PageId(9), owner: 1, kind, level: 0 }.write(&mut page);
        Edit::leaf(&mut page).init(lower, upper);
        page
    }

    /// Returns a leaf of `count` entries between the fences, some of them large. A tenth of them
    /// were removed again, so that its heap has holes.
    fn filled(random: &mut fastrand::Rng, fences: [&[u8]; 2], count: usize) -> Vec<u8> {
        let mut page = leaf(fences[0], Some(fences[1]));
        for _ in 0..count {
            let key = [fences[0], &random.u16(..).to_be_bytes()[..]].concat();
            let (at, found) = Node::leaf(View::of(&page)).lower_bound(&key);
            let value = vec![random.u8(..); random.usize(0..20)];
            let large =
                Reference { swip: Swip::evicted(PageId(random.u64(1..90))), len: 5000, stamp: 7 };
            let payload = match random.u8(0..8) {
                0 => Payload::Overflow(large),
                _ => Payload::Inline(&value),
            };
            if !found {
                Edit::leaf(&mut page).insert(at, &key, &payload);
            }
            if random.u8(0..10) == 0 {
                Edit::leaf(&mut page).remove(at);
            }
        }
        page
    }

    /// Returns the bytes that have a meaning: all except those between slots and heap.
    fn meaning(page: &[u8]) -> String {
        let node = Node::leaf(View::of(page));
        let mut entries = Vec::new();
        for i in 0..node.count() {
            let mut key = Vec::new();
            node.key_to(i, &mut key);
            entries.push((key, payload_of(page, node, i)));
        }
        format!("{entries:?} {:?} {:?} {}", node.lower_bytes(), node.upper_bytes(), node.free())
    }

    #[test]
    fn redo_builds_the_leaf_that_was_built() {
        let mut random = fastrand::Rng::with_seed(11);
        let mut built = 0;
        for _ in 0..2000 {
            let (left_count, right_count) = (random.usize(1..30), random.usize(1..30));
            let left = filled(&mut random, [b"ab", b"ac"], left_count);
            let right = filled(&mut random, [b"ac", b"ad"], right_count);
            let count = |page: &[u8]| Node::leaf(View::of(page)).count();
            let cut = random.usize(0..=count(&left));
            let cut_right = random.usize(0..=count(&right));
            let halves = [
                (
                    &left,
                    Rebuild {
                        kept: 0..cut,
                        lower: b"ab",
                        upper: Some(b"acz"),
                        front: Moved::default(),
                        back: Moved { source: &right, entries: 0..cut_right },
                    },
                ),
                (
                    &right,
                    Rebuild {
                        kept: cut_right..count(&right),
                        lower: b"abz",
                        upper: None,
                        front: Moved { source: &left, entries: cut..count(&left) },
                        back: Moved::default(),
                    },
                ),
            ];
            for (own, half) in halves {
                let Some(draft) = half.build(own) else { continue };
                built += 1;
                let mut note = Vec::new();
                redo_note::rebuild(&mut note, &half, Swip::page);
                let mut page = own.clone();
                assert!(redo_note::apply_redo_note(&mut page, &note));
                assert_eq!(meaning(&page), meaning(draft.bytes()));
                assert!(Node::leaf(View::of(&page)).is_sound());
            }
        }
        assert!(built > 1000, "{built}");
    }

    #[test]
    fn a_record_that_is_cut_or_does_not_fit_changes_nothing() {
        let mut random = fastrand::Rng::with_seed(5);
        let own = filled(&mut random, [b"ab", b"ac"], 20);
        let other = filled(&mut random, [b"ac", b"ad"], 20);
        let half = Rebuild {
            kept: 0..5,
            lower: b"ab",
            upper: Some(b"acz"),
            front: Moved::default(),
            back: Moved { source: &other, entries: 0..3 },
        };
        let mut note = Vec::new();
        redo_note::rebuild(&mut note, &half, Swip::page);
        let mut page = own.clone();
        for end in 0..note.len() {
            assert!(!redo_note::apply_redo_note(&mut page, &note[..end]), "{end}");
            assert_eq!(page, own, "{end}");
        }
        // More entries than there are, and fences larger than the page.
        let wrong = Rebuild { kept: 0..99, ..half.clone() };
        let long = vec![b'a'; LEN];
        let wide = Rebuild { lower: &long, ..half };
        for wrong in [wrong, wide] {
            note.clear();
            redo_note::rebuild(&mut note, &wrong, Swip::page);
            assert!(!redo_note::apply_redo_note(&mut page, &note));
            assert_eq!(page, own);
        }
    }
}
