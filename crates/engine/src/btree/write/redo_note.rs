//! Physiological redo records of changes of one entry, and redo.
//!
//! A redo note names an edit of a node's page; redo does the same edit to the same bytes. The pool
//! logs the other effects of a structural change as bytes.
//!
//! ```text
//!  1  insert          slot, key, payload     counted, for the next split
//!  2  insert          slot, key, payload     in place of an entry that was removed
//!  3  remove          slot
//!  4  overwrite       slot, offset, bytes    a part of an inline value
//!  5  rebuild         see `rebuild`          other fences, and entries from a neighbour
//!  6  link            slot, separator, page of the child left of it, page of the one right of it
//!                                            inner: a new child
//!  7  unlink          slot, page of the child that stays
//!                                            inner: a child that took over its right neighbour
//!  8  move fence      slot, separator        inner: entries went to a neighbouring child
//! ```
//! Numbers are varints; bytes are preceded by their number. `logged_payload` defines the form of
//! payloads.

use millpond_base::PageId;

use crate::btree::node::edit::{Edit, Payload};
use crate::btree::node::layout::{KIND, Node};
use crate::btree::write::logged_payload::{put_payload, take_payload};
use crate::btree::write::rebuild;
use crate::btree::write::rebuild::Rebuild;
use crate::page::varint::{put_bytes, put_varint, take_bytes, take_varint};
use crate::page::{PageType, View};
use crate::pool::Swip;

const INSERT: u8 = 1;
const REINSERT: u8 = 2;
const REMOVE: u8 = 3;
const OVERWRITE: u8 = 4;
const REBUILD: u8 = 5;
const LINK: u8 = 6;
const UNLINK: u8 = 7;
const MOVE_FENCE: u8 = 8;

/// Place of an inserted entry.
#[derive(Clone, Copy)]
pub(crate) struct Insertion {
    /// Slot of the entry.
    pub(crate) at: usize,
    /// True if the leaf counts it among its recent inserts ([`Edit::count_insert`]).
    pub(crate) counts: bool,
}

/// Writes the note of an insert; `root` is the page of the root of a value in overflow pages.
pub(crate) fn insert(
    out: &mut Vec<u8>,
    Insertion { at, counts }: Insertion,
    key: &[u8],
    payload: &Payload<'_>,
    root: PageId,
) {
    out.push(if counts { INSERT } else { REINSERT });
    put_varint(out, at as u64);
    put_bytes(out, key);
    put_payload(out, payload, root);
}

/// Writes the note of a rebuilt leaf; `page_of` returns the page that a swip refers to.
pub(crate) fn rebuild(out: &mut Vec<u8>, how: &Rebuild<'_>, page_of: impl Fn(Swip) -> PageId) {
    out.push(REBUILD);
    how.put(out, page_of);
}

/// Writes the note of a new child: a separator at `at`, with the given children beside it.
pub(crate) fn link(out: &mut Vec<u8>, at: usize, separator: &[u8], beside: [PageId; 2]) {
    out.push(LINK);
    put_varint(out, at as u64);
    put_bytes(out, separator);
    beside.iter().for_each(|page| put_varint(out, page.0));
}

/// Writes the note of a child that is gone: the separator at `at` is removed, and the children on
/// either side of it become `stays`.
pub(crate) fn unlink(out: &mut Vec<u8>, at: usize, stays: PageId) {
    out.push(UNLINK);
    put_varint(out, at as u64);
    put_varint(out, stays.0);
}

/// Writes the note of two children that redistribute their entries: the separator at `at` becomes
/// `separator`.
pub(crate) fn move_fence(out: &mut Vec<u8>, at: usize, separator: &[u8]) {
    out.push(MOVE_FENCE);
    put_varint(out, at as u64);
    put_bytes(out, separator);
}

/// Writes the note of a removal.
pub(crate) fn remove(out: &mut Vec<u8>, at: usize) {
    out.push(REMOVE);
    put_varint(out, at as u64);
}

/// Writes the note of a change inside the value of entry `at`.
pub(crate) fn overwrite(out: &mut Vec<u8>, at: usize, offset: usize, bytes: &[u8]) {
    out.push(OVERWRITE);
    put_varint(out, at as u64);
    put_varint(out, offset as u64);
    put_bytes(out, bytes);
}

/// Redoes the edit that `note` names on `page`. Returns `false` if that is impossible, because the
/// page is not in the state that it had before the edit.
pub fn apply_redo_note(page: &mut [u8], note: &[u8]) -> bool {
    let node = Node::of(View::of(page));
    let is_inner = matches!(note.first(), Some(&(LINK | UNLINK | MOVE_FENCE)));
    let needed = if is_inner { PageType::BTREE_INNER } else { PageType::BTREE_LEAF };
    if node.view.u8(KIND) != needed.0 || !node.is_sound() {
        return false;
    }
    let done = match note.first() {
        Some(&LINK) => redo_link(page, note),
        Some(&UNLINK) => redo_unlink(page, note),
        Some(&MOVE_FENCE) => redo_move_fence(page, note),
        _ => redo(page, note),
    };
    done.is_some()
}

fn redo_unlink(page: &mut [u8], note: &[u8]) -> Option<()> {
    let (_, mut note) = note.split_first()?;
    let at = usize::try_from(take_varint(&mut note)?).ok()?;
    let stays = PageId(take_varint(&mut note)?);
    let mut edit = Edit::inner(page);
    (at < edit.node().count()).then(|| unlink_in(&mut edit, at, Swip::evicted(stays)))
}

/// Removes the separator at `at`; the children on either side of it become `stays`.
pub(crate) fn unlink_in(edit: &mut Edit<'_>, at: usize, stays: Swip) {
    edit.set_child(at + 1, stays);
    edit.remove(at);
}

fn redo_move_fence(page: &mut [u8], note: &[u8]) -> Option<()> {
    let (_, mut note) = note.split_first()?;
    let at = usize::try_from(take_varint(&mut note)?).ok()?;
    let separator = take_bytes(&mut note)?;
    let mut edit = Edit::inner(page);
    (at < edit.node().count() && move_fence_in(&mut edit, at, separator)).then_some(())
}

/// Replaces the separator at `at` by `separator`. Returns `false`, and changes nothing, if there is
/// no room.
pub(crate) fn move_fence_in(edit: &mut Edit<'_>, at: usize, separator: &[u8]) -> bool {
    let node = edit.node();
    let child = Payload::Child(Swip(node.view.u64(node.child_at(at))));
    let room = node.free() + node.entry_len_under(at, node.prefix_len());
    if room < edit.entry_len(separator.len(), &child) {
        return false;
    }
    edit.remove(at);
    let is_there = edit.insert(at, separator, &child);
    debug_assert!(is_there, "an entry that fits is inserted");
    is_there
}

fn redo_link(page: &mut [u8], note: &[u8]) -> Option<()> {
    let (_, mut note) = note.split_first()?;
    let at = usize::try_from(take_varint(&mut note)?).ok()?;
    let separator = take_bytes(&mut note)?;
    let [left, right] = [take_varint(&mut note)?, take_varint(&mut note)?].map(PageId);
    let mut edit = Edit::inner(page);
    let fits = at <= edit.node().count();
    (fits && link_in(&mut edit, at, separator, [left, right].map(Swip::evicted))).then_some(())
}

/// Inserts a separator, with the given children beside it, and counts it. Returns `false`, and
/// changes nothing, if there is no room.
pub(crate) fn link_in(edit: &mut Edit<'_>, at: usize, separator: &[u8], beside: [Swip; 2]) -> bool {
    let [left, right] = beside;
    if !edit.insert(at, separator, &Payload::Child(left)) {
        return false;
    }
    edit.count_insert(at);
    edit.set_child(at + 1, right);
    true
}

fn redo(page: &mut [u8], mut note: &[u8]) -> Option<()> {
    let (&op, rest) = note.split_first()?;
    note = rest;
    if op == REBUILD {
        return rebuild::redo(page, note);
    }
    let at = usize::try_from(take_varint(&mut note)?).ok()?;
    let count = Node::leaf(View::of(page)).count();
    let mut edit = Edit::leaf(page);
    match op {
        INSERT | REINSERT if at <= count => {
            let key = take_bytes(&mut note)?;
            let payload = take_payload(&mut note)?;
            if !edit.insert(at, key, &payload) {
                return None;
            }
            if op == INSERT {
                edit.count_insert(at);
            }
            Some(())
        }
        REMOVE if at < count => {
            edit.remove(at);
            Some(())
        }
        OVERWRITE if at < count => {
            let offset = usize::try_from(take_varint(&mut note)?).ok()?;
            let bytes = take_bytes(&mut note)?;
            let end = offset.checked_add(bytes.len())?;
            edit.value_mut(at)?.get_mut(offset..end)?.copy_from_slice(bytes);
            Some(())
        }
        _ => None,
    }
}

/// Returns the start and the end of the part in which two values of the same length differ.
pub(crate) fn differing(old: &[u8], new: &[u8]) -> (usize, usize) {
    debug_assert_eq!(old.len(), new.len());
    let len = old.len().min(new.len());
    let (old, new) = (&old[..len], &new[..len]);
    let start = common(old, new);
    // Cuts the common end off the rest.
    let (old, new) = (&old[start..], &new[start..]);
    let mut end = old.len();
    while let (Some((rest, a)), Some((_, b))) =
        (old[..end].split_last_chunk::<STRIDE>(), new[..end].split_last_chunk::<STRIDE>())
        && a == b
    {
        end = rest.len();
    }
    while let (Some((rest, a)), Some((_, b))) =
        (old[..end].split_last_chunk::<8>(), new[..end].split_last_chunk::<8>())
    {
        let differ = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differ != 0 {
            return (start, start + end - (differ.leading_zeros() / 8) as usize);
        }
        end = rest.len();
    }
    while end > 0 && old[end - 1] == new[end - 1] {
        end -= 1;
    }
    (start, start + end)
}

/// Number of bytes compared at once while nothing differs.
const STRIDE: usize = 32;

/// Returns the length of the common prefix of two slices of the same length.
#[inline]
fn common(a: &[u8], b: &[u8]) -> usize {
    let (strides, _) = a.as_chunks::<STRIDE>();
    let (others, _) = b.as_chunks::<STRIDE>();
    let same = strides.iter().zip(others).take_while(|(a, b)| a == b).count() * STRIDE;
    same + common_by_words(&a[same..], &b[same..])
}

#[inline]
fn common_by_words(a: &[u8], b: &[u8]) -> usize {
    let (words, _) = a.as_chunks::<8>();
    let (others, _) = b.as_chunks::<8>();
    for (at, (word, other)) in words.iter().zip(others).enumerate() {
        let differ = u64::from_le_bytes(*word) ^ u64::from_le_bytes(*other);
        if differ != 0 {
            return at * 8 + (differ.trailing_zeros() / 8) as usize;
        }
    }
    debug_assert_eq!(a.len(), b.len());
    let begin = words.len() * 8;
    begin + a[begin..].iter().zip(&b[begin..]).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btree::node::edit::Reference;
    use crate::page::PageHeader;

    fn leaf() -> Vec<u8> {
        let mut page = vec![0; 1024];
        let (lsn, kind) = (millpond_base::Lsn(0), PageType::BTREE_LEAF);
        PageHeader { checksum: 0, lsn, page: PageId(9), owner: 1, kind, level: 0 }.write(&mut page);
        Edit::leaf(&mut page).init(b"a", Some(b"b"));
        page
    }

    #[test]
    fn redo_of_a_leafs_edits_gives_the_same_bytes() {
        let mut random = fastrand::Rng::with_seed(3);
        let (mut page, mut other) = (leaf(), leaf());
        for round in 0..3000 {
            let mut note = Vec::new();
            let count = Node::leaf(View::of(&page)).count();
            let key = [b"a".as_slice(), &random.u32(..).to_be_bytes()].concat();
            let (at, found) = Node::leaf(View::of(&page)).lower_bound(&key);
            let mut edit = Edit::leaf(&mut page);
            let value = vec![round as u8; random.usize(0..30)];
            let large = Reference { swip: Swip::evicted(PageId(70)), len: 5000, stamp: 7 };
            let payload = if random.u8(0..8) == 0 {
                Payload::Overflow(large)
            } else {
                Payload::Inline(&value)
            };
            match random.u8(0..3) {
                0 | 1 if !found && edit.node().free() >= edit.entry_len(key.len(), &payload) => {
                    insert(&mut note, Insertion { at, counts: true }, &key, &payload, PageId(70));
                    assert!(edit.insert(at, &key, &payload));
                    edit.count_insert(at);
                }
                2 if count > 0 => {
                    let i = random.usize(0..count);
                    match edit.value_mut(i) {
                        Some(value) if value.len() > 3 && random.bool() => {
                            value[1..3].fill(77);
                            overwrite(&mut note, i, 1, &[77, 77]);
                        }
                        _ => {
                            remove(&mut note, i);
                            edit.remove(i);
                        }
                    }
                }
                _ => continue,
            }
            assert!(apply_redo_note(&mut other, &note), "round {round}");
            assert_eq!(page, other, "round {round}");
        }
    }

    #[test]
    fn redo_of_new_and_merged_children_gives_the_same_bytes() {
        let mut random = fastrand::Rng::with_seed(8);
        let mut page = vec![0; 1024];
        let (lsn, kind) = (millpond_base::Lsn(0), PageType::BTREE_INNER);
        PageHeader { checksum: 0, lsn, page: PageId(9), owner: 1, kind, level: 1 }.write(&mut page);
        Edit::inner(&mut page).init(b"", None);
        let mut other = page.clone();
        let mut done = [0; 3];
        for round in 0..5000u64 {
            let mut note = Vec::new();
            let mut edit = Edit::inner(&mut page);
            let count = edit.node().count();
            let key = random.u32(..).to_be_bytes();
            let (at, found) = edit.node().lower_bound(&key);
            if random.bool() && !found {
                let beside = [PageId(round), PageId(round + 1)];
                if !link_in(&mut edit, at, &key, beside.map(Swip::evicted)) {
                    continue;
                }
                link(&mut note, at, &key, beside);
                done[0] += 1;
            } else if count > 0 && !found && random.bool() {
                // One of the two separators around the key.
                let at = if at == count || at > 0 && random.bool() { at - 1 } else { at };
                let key = &key[..random.usize(1..=4)];
                if edit.node().lower_bound(key) != (at, false) {
                    continue;
                }
                if !move_fence_in(&mut edit, at, key) {
                    continue;
                }
                move_fence(&mut note, at, key);
                done[2] += 1;
            } else if count > 0 {
                let at = random.usize(0..count);
                unlink_in(&mut edit, at, Swip::evicted(PageId(round)));
                unlink(&mut note, at, PageId(round));
                done[1] += 1;
            }
            if !note.is_empty() {
                assert!(apply_redo_note(&mut other, &note), "round {round}");
            }
            assert_eq!(page, other, "round {round}");
        }
        assert!(done.iter().all(|done| *done > 500), "{done:?}");
        let count = Node::of(View::of(&page)).count() as u8;
        for note in [&[7, count, 1][..], &[7, 0], &[7], &[8, count, 1, 1], &[8, 0], &[8]] {
            assert!(!apply_redo_note(&mut page, note), "{note:?}");
            assert_eq!(page, other);
        }
        assert!(!apply_redo_note(&mut leaf(), &[7, 0, 1]), "a leaf has no children");
        let long = [&[8, 0, 0xff, 7][..], &[9; 1023]].concat();
        assert!(!apply_redo_note(&mut page, &long), "a separator that does not fit");
        assert_eq!(page, other);
    }

    #[test]
    fn a_note_that_does_not_fit_the_page_is_refused() {
        let mut page = leaf();
        for note in [&[3, 0][..], &[4, 0, 0, 0], &[1, 5, 0, 0, 0], &[9, 0], &[], &[1]] {
            assert!(!apply_redo_note(&mut page, note), "{note:?}");
        }
        assert!(!apply_redo_note(&mut [0; 512], &[3, 0]));
    }

    #[test]
    fn the_differing_part_is_the_smallest() {
        assert_eq!(differing(b"abcdef", b"abXdYf"), (2, 5));
        assert_eq!(differing(b"aaa", b"aaa"), (3, 3));
        assert_eq!(differing(b"aaa", b"aba"), (1, 2));
        assert_eq!(differing(b"", b""), (0, 0));
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..2000 {
            let old: Vec<u8> = (0..random.usize(0..40)).map(|_| random.u8(0..3)).collect();
            let mut new = old.clone();
            for _ in 0..random.usize(0..3) {
                if let Some(byte) = random.choice(&mut new) {
                    *byte = 7;
                }
            }
            let differs = |at: &usize| old[*at] != new[*at];
            let first = (0..old.len()).find(differs).unwrap_or(old.len());
            let end = (0..old.len()).rfind(differs).map_or(first, |last| last + 1);
            assert_eq!(differing(&old, &new), (first, end), "{old:?} and {new:?}");
        }
    }
}
