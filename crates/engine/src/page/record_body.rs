//! The body of a log record: sections about pages.
//!
//! A body is a sequence of sections, each a tag of one byte and its fields. Numbers are varints,
//! seven bits to the byte and the low ones first.
//!
//! ```text
//! tag                fields
//!  1  image          page, pieces        the page is all zeros except these pieces
//!  2  difference     page, pieces        these pieces of the page are new
//!  3  physiological  page, n, n bytes    a physiological redo record, in the structure's encoding
//!  4  taken          page                the page is in use from now on
//!  5  freed          page                the page is free from now on
//! 10  orphaned       page, kind, stamp   an orphan root: no structure refers to it
//!  7  attached       page                an orphan root no more: attached, or freed by another
//!                                        structure
//!  8  undo           n, n bytes          the undo record of this change
//!  9  undo next      LSN                 the record is a CLR: the next record to undo
//! 11  undo, shared   n, n bytes, at, m   the undo record is these bytes and m more: those from
//!                                        `at` on of the physiological record before
//! 12  rows           tree, 2n or 2n − 1  n entries were added to the tree of this owner; removed
//! 13  rows begin     tree                the tree is new, and has no entries
//!
//! pieces: (words to skip, words that follow, the words)…, ended by no words that follow
//! ```
//! Pages are compared by words of 8 bytes, since swips are such words and must change as a whole.
//! Checksum and LSN, the first two words, are no part of an image or a difference: redo sets the
//! LSN, and the page's writer the checksum.

use millpond_base::{Lsn, PageId};

use super::varint::{put_bytes, put_varint, take_bytes, take_signed, take_varint};

/// Bytes of a word.
const WORD: usize = 8;
/// Words at the beginning of a page that no record describes: checksum and LSN.
const OWN_WORDS: usize = 2;
/// Words that are compared at once while nothing differs.
const STRIDE: usize = 64;

const IMAGE: u8 = 1;
const DIFFERENCE: u8 = 2;
const PHYSIOLOGICAL: u8 = 3;
const TAKEN: u8 = 4;
const FREED: u8 = 5;
const ATTACHED: u8 = 7;
pub(super) const UNDO: u8 = 8;
const UNDO_NEXT: u8 = 9;
const ORPHANED: u8 = 10;
pub(super) const UNDO_SHARED: u8 = 11;
pub(super) const ROWS: u8 = 12;
pub(super) const ROWS_BEGIN: u8 = 13;

/// The structure that an orphan root belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OrphanRoot {
    /// Type of the structure, whose meaning the structures define.
    pub kind: u8,
    /// The stamp in the root's page, equal to that of the reference to it when there was one. It
    /// guards against an older page in the same place, which would lead to pages of other
    /// structures. 0 where references have no stamp.
    pub stamp: u64,
}

/// One section of a record's body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Section<'a> {
    /// An image of a whole page.
    Image {
        /// The page.
        page: PageId,
        /// Parts that are not zeros.
        pieces: Pieces<'a>,
    },
    /// Parts of a page.
    Difference {
        /// The page.
        page: PageId,
        /// New parts.
        pieces: Pieces<'a>,
    },
    /// A physiological redo record: the operation of a structure on a page.
    Physiological {
        /// The page.
        page: PageId,
        /// The operation, in the structure's encoding.
        bytes: &'a [u8],
    },
    /// A page was allocated.
    Taken {
        /// The page.
        page: PageId,
    },
    /// A page was freed.
    Freed {
        /// The page.
        page: PageId,
    },
    /// An orphan root: nothing refers to it.
    Orphaned {
        /// The root.
        page: PageId,
        /// Structure that the root belongs to.
        root: OrphanRoot,
    },
    /// A root is attached, or another structure has taken charge of it.
    Attached {
        /// The root.
        page: PageId,
    },
    /// The undo record of the change, in the encoding of the changed structure: `head` followed by
    /// `tail`.
    Undo {
        /// First bytes.
        head: &'a [u8],
        /// Remaining bytes; mostly there are none.
        tail: &'a [u8],
    },
    /// Entries were added to a tree, or removed. A transaction's record has no such section, since
    /// its undo section shows the change.
    Rows {
        /// The tree's owner id.
        owner: u32,
        /// Number of entries added, less those removed; `None` for a new tree, which has none.
        change: Option<i64>,
    },
    /// The record is a CLR.
    UndoNext {
        /// Next record to undo; 0 if there is none.
        lsn: Lsn,
    },
}

/// A record's body, or an image in it, that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a record's body is damaged from its byte {at} on")]
pub struct BadBody {
    /// Offset of the fault.
    pub at: usize,
}

/// Pieces of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pieces<'a>(&'a [u8]);

#[inline]
fn put_tag(out: &mut Vec<u8>, tag: u8, page: PageId) {
    out.push(tag);
    put_varint(out, page.0);
}

/// Appends an image of `page` with the content `bytes`.
pub fn put_image(out: &mut Vec<u8>, page: PageId, bytes: &[u8]) {
    debug_assert!(bytes.len().is_multiple_of(WORD), "a page consists of words");
    put_tag(out, IMAGE, page);
    let mut pieces = Writer { out, bytes, seen: OWN_WORDS };
    let is_there = |at: usize| bytes.get(at * WORD..at * WORD + WORD).is_some_and(|w| w != [0; 8]);
    let words = bytes.len() / WORD;
    let mut at = OWN_WORDS;
    while at < words {
        if !is_there(at) {
            at += 1;
            continue;
        }
        let start = at;
        // A lone word of zeros costs less than the end of one piece and the start of another.
        while at < words && (is_there(at) || is_there(at + 1)) {
            at += 1;
        }
        pieces.piece(start, at);
    }
    pieces.end();
}

/// Appends the difference between two versions of `page`, `before` and `after`. Returns `false`,
/// and appends nothing, if they are equal.
pub fn put_difference(out: &mut Vec<u8>, page: PageId, before: &[u8], after: &[u8]) -> bool {
    debug_assert_eq!(before.len(), after.len(), "both are the same page");
    let start = out.len();
    put_tag(out, DIFFERENCE, page);
    let mut pieces = Writer { out, bytes: after, seen: OWN_WORDS };
    let mut any = false;
    differences(before, after, |from, to| {
        any = true;
        pieces.piece(from, to);
    });
    pieces.end();
    if !any {
        out.truncate(start);
    }
    any
}

/// Calls `each` with the ranges of words, beyond the first two, in which two pages differ.
pub fn differences(before: &[u8], after: &[u8], mut each: impl FnMut(usize, usize)) {
    let words = before.len().min(after.len()) / WORD;
    let same = |at: usize, count: usize| {
        before.get(at * WORD..(at + count) * WORD) == after.get(at * WORD..(at + count) * WORD)
    };
    let mut at = OWN_WORDS;
    while at < words {
        let stride = STRIDE.min(words - at);
        if same(at, stride) {
            at += stride;
            continue;
        }
        while at < words && same(at, 1) {
            at += 1;
        }
        let start = at;
        while at < words && !same(at, 1) {
            at += 1;
        }
        each(start, at);
    }
}

/// Writes pieces of a page.
struct Writer<'a, 'o> {
    out: &'o mut Vec<u8>,
    bytes: &'a [u8],
    /// The word behind the last piece.
    seen: usize,
}

impl Writer<'_, '_> {
    fn piece(&mut self, from: usize, to: usize) {
        debug_assert!(self.seen <= from, "pieces are in order");
        debug_assert!(from < to, "a piece has words");
        put_varint(self.out, (from - self.seen) as u64);
        put_varint(self.out, (to - from) as u64);
        debug_assert!(to * WORD <= self.bytes.len(), "a piece lies on the page");
        self.out.extend_from_slice(self.bytes.get(from * WORD..to * WORD).unwrap_or(&[]));
        self.seen = to;
    }

    fn end(self) {
        self.out.extend_from_slice(&[0, 0]);
    }
}

/// Appends a structure's physiological redo record of `page`.
#[inline]
pub fn put_physiological(out: &mut Vec<u8>, page: PageId, bytes: &[u8]) {
    put_tag(out, PHYSIOLOGICAL, page);
    put_bytes(out, bytes);
}

/// Appends that `page` was allocated.
pub fn put_taken(out: &mut Vec<u8>, page: PageId) {
    put_tag(out, TAKEN, page);
}

/// Appends that `page` was freed.
pub fn put_freed(out: &mut Vec<u8>, page: PageId) {
    put_tag(out, FREED, page);
}

/// Appends that the root `page` is an orphan.
pub fn put_orphaned(out: &mut Vec<u8>, page: PageId, root: OrphanRoot) {
    put_tag(out, ORPHANED, page);
    root.put(out);
}

impl OrphanRoot {
    /// Appends the orphan root.
    pub(crate) fn put(self, out: &mut Vec<u8>) {
        out.push(self.kind);
        put_varint(out, self.stamp);
    }

    /// Takes an orphan root off the front of `bytes`; `None` if it is incomplete.
    pub(crate) fn take(bytes: &mut &[u8]) -> Option<OrphanRoot> {
        let (&kind, behind) = bytes.split_first()?;
        *bytes = behind;
        Some(OrphanRoot { kind, stamp: take_varint(bytes)? })
    }
}

/// Appends that the root `page` is attached.
pub fn put_attached(out: &mut Vec<u8>, page: PageId) {
    put_tag(out, ATTACHED, page);
}

/// Appends the LSN to undo next.
pub fn put_undo_next(out: &mut Vec<u8>, lsn: Lsn) {
    out.push(UNDO_NEXT);
    put_varint(out, lsn.0);
}

/// Iterator over the sections of a body, in order; ends after the first that does not decode.
#[derive(Clone, Debug)]
pub struct Sections<'a> {
    rest: &'a [u8],
    len: usize,
    /// The last physiological record.
    last: &'a [u8],
}

/// Returns the sections of `body`.
pub fn sections(body: &[u8]) -> Sections<'_> {
    Sections { rest: body, len: body.len(), last: &[] }
}

impl<'a> Sections<'a> {
    /// Returns the offset of the next section in the body.
    #[inline]
    pub fn position(&self) -> usize {
        self.len - self.rest.len()
    }

    fn take(&mut self) -> Option<Section<'a>> {
        let rest = &mut self.rest;
        let (&tag, behind) = rest.split_first()?;
        *rest = behind;
        if tag == UNDO {
            return Some(Section::Undo { head: take_bytes(rest)?, tail: &[] });
        }
        if tag == UNDO_SHARED {
            let head = take_bytes(rest)?;
            let [at, length] = [take_varint(rest)?, take_varint(rest)?].map(usize::try_from);
            let (at, length) = (at.ok()?, length.ok()?);
            let tail = self.last.get(at..at.checked_add(length)?)?;
            return Some(Section::Undo { head, tail });
        }
        let (number, owner) = (take_varint(rest)?, |number| u32::try_from(number).ok());
        let page = PageId(number);
        Some(match tag {
            IMAGE => Section::Image { page, pieces: take_pieces(rest)? },
            DIFFERENCE => Section::Difference { page, pieces: take_pieces(rest)? },
            PHYSIOLOGICAL => {
                self.last = take_bytes(rest)?;
                Section::Physiological { page, bytes: self.last }
            }
            TAKEN => Section::Taken { page },
            FREED => Section::Freed { page },
            ORPHANED => Section::Orphaned { page, root: OrphanRoot::take(rest)? },
            ATTACHED => Section::Attached { page },
            UNDO_NEXT => Section::UndoNext { lsn: Lsn(number) },
            ROWS => Section::Rows { owner: owner(number)?, change: Some(take_signed(rest)?) },
            ROWS_BEGIN => Section::Rows { owner: owner(number)?, change: None },
            _ => return None,
        })
    }
}

impl<'a> Iterator for Sections<'a> {
    type Item = Result<Section<'a>, BadBody>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let at = self.len - self.rest.len();
        let section = self.take();
        if section.is_none() {
            self.rest = &[];
        }
        Some(section.ok_or(BadBody { at }))
    }
}

fn take_pieces<'a>(rest: &mut &'a [u8]) -> Option<Pieces<'a>> {
    let all = *rest;
    loop {
        take_varint(rest)?;
        let words = usize::try_from(take_varint(rest)?).ok()?;
        if words == 0 {
            return Some(Pieces(&all[..all.len() - rest.len()]));
        }
        *rest = rest.get(words.checked_mul(WORD)?..)?;
    }
}

impl Pieces<'_> {
    /// Writes the pieces into `page`. Returns `false` if they do not all fit, which leaves it half
    /// changed.
    pub fn apply(&self, page: &mut [u8]) -> bool {
        self.put(page).is_some()
    }

    fn put(&self, page: &mut [u8]) -> Option<()> {
        let mut rest = self.0;
        let mut at = OWN_WORDS;
        loop {
            at = at.checked_add(usize::try_from(take_varint(&mut rest)?).ok()?)?;
            let words = usize::try_from(take_varint(&mut rest)?).ok()?;
            if words == 0 {
                return Some(());
            }
            let (piece, behind) = rest.split_at_checked(words.checked_mul(WORD)?)?;
            let end = at.checked_add(words)?;
            page.get_mut(at.checked_mul(WORD)?..end.checked_mul(WORD)?)?.copy_from_slice(piece);
            (rest, at) = (behind, end);
        }
    }

    /// Makes `page` equal to the image, except for its first two words, which become 0.
    pub fn apply_image(&self, page: &mut [u8]) -> bool {
        page.fill(0);
        self.apply(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(body: &[u8]) -> Section<'_> {
        let all: Vec<_> = sections(body).collect::<Result<_, _>>().unwrap();
        assert_eq!(all.len(), 1);
        all[0]
    }

    #[test]
    fn an_image_makes_any_page_what_it_shows() {
        let mut random = fastrand::Rng::with_seed(7);
        for round in 0..300 {
            let mut page = vec![0; 4096];
            for _ in 0..random.usize(0..40) {
                let at = random.usize(16..4096);
                let end = (at + random.usize(0..90)).min(4096);
                page[at..end].fill(random.u8(..));
            }
            let mut body = Vec::new();
            put_image(&mut body, PageId(round), &page);
            let Section::Image { page: id, pieces } = only(&body) else { panic!("no image") };
            let mut other = vec![0xEE; 4096];
            assert!(id == PageId(round) && pieces.apply_image(&mut other));
            assert_eq!(other, page);
        }
    }

    #[test]
    fn a_difference_makes_the_old_page_the_new_one_and_nothing_of_nothing() {
        let mut random = fastrand::Rng::with_seed(8);
        for _ in 0..300 {
            let before: Vec<u8> = (0..1024).map(|_| random.u8(0..3)).collect();
            let mut after = before.clone();
            for _ in 0..random.usize(0..6) {
                let at = random.usize(16..1024);
                after[at..(at + random.usize(0..50)).min(1024)].fill(9);
            }
            let mut body = vec![];
            let differs = put_difference(&mut body, PageId(1 << 40), &before, &after);
            assert_eq!(differs, before != after);
            if !differs {
                assert!(body.is_empty());
                continue;
            }
            let Section::Difference { pieces, .. } = only(&body) else { panic!("no difference") };
            let mut page = before.clone();
            assert!(pieces.apply(&mut page));
            assert_eq!(page, after);
            assert!(!pieces.apply(&mut [0; 8]), "too short a page is refused");
        }
    }

    #[test]
    fn checksum_and_lsn_are_no_part_of_a_change() {
        let (before, mut after) = (vec![1; 512], vec![1; 512]);
        after[..16].fill(9);
        assert!(!put_difference(&mut Vec::new(), PageId(3), &before, &after));
    }

    #[test]
    fn all_sections_are_read_in_their_order() {
        let mut body = Vec::new();
        put_physiological(&mut body, PageId(300), b"what was done");
        put_taken(&mut body, PageId(5));
        put_freed(&mut body, PageId(6));
        put_orphaned(&mut body, PageId(7), OrphanRoot { kind: 2, stamp: u64::MAX });
        put_attached(&mut body, PageId(u64::MAX >> 1));
        crate::page::record_undo::put_undo(&mut body, &[3; 200], None);
        put_undo_next(&mut body, Lsn(1 << 50));
        let all: Vec<_> = sections(&body).collect::<Result<_, _>>().unwrap();
        let expected = [
            Section::Physiological { page: PageId(300), bytes: b"what was done" },
            Section::Taken { page: PageId(5) },
            Section::Freed { page: PageId(6) },
            Section::Orphaned { page: PageId(7), root: OrphanRoot { kind: 2, stamp: u64::MAX } },
            Section::Attached { page: PageId(u64::MAX >> 1) },
            Section::Undo { head: &[3; 200], tail: &[] },
            Section::UndoNext { lsn: Lsn(1 << 50) },
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn bytes_that_are_no_body_are_an_error_and_no_panic() {
        let mut random = fastrand::Rng::with_seed(9);
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..random.usize(0..60)).map(|_| random.u8(0..12)).collect();
            let mut page = [0; 512];
            for section in sections(&bytes).flatten() {
                if let Section::Image { pieces, .. } | Section::Difference { pieces, .. } = section
                {
                    pieces.apply(&mut page);
                }
            }
        }
        assert_eq!(sections(&[77, 1]).next(), Some(Err(BadBody { at: 0 })));
    }
}
