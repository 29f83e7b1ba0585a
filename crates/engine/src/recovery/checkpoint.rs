//! The content of a checkpoint and its encoding. A checkpoint spares recovery from reading the
//! whole log.
//!
//! ```text
//! the encoding             varints, seven bits to the byte, the low ones first
//!   version                3
//!   redo, begin            LSNs
//!   next transaction id
//!   length of the store    pages
//!   catalog's root         0: none, otherwise 1 and the page
//!   transactions           their number, and of each its id and the start of its last record
//!   orphan roots           their number, and of each the page and a byte, its kind
//!   entries of trees       the number of trees, and of each its owner id and how many it has,
//!                          uncommitted ones included
//!   allocation map         its number of words, then groups up to that number:
//!                            words with all bits set, words with none, words that follow,
//!                            these words, 8 bytes each
//!   checksum               8 bytes, XXH3-64 of all before
//! ```
//! The encoding is cut into bodies of at most 60 KiB; the last one belongs to the CHECKPOINT record
//! (rule 3). The allocation map of a nearly full store, as most are, takes only a few groups.

use millpond_base::{Lsn, PageId};
use xxhash_rust::xxh3::xxh3_64;

use super::error::RecoveryError;
use crate::log::{Log, LogError, Record};
use crate::page::record_body::OrphanRoot;
use crate::page::varint::{put_varint, take_varint};
use crate::pool::mini_transaction::kind;

/// The version of the encoding.
const VERSION: u64 = 3;

/// Maximum length of a record's body in bytes.
const BODY_BYTES_MAX: usize = 60 << 10;

/// Bytes of the checksum at the end.
const SUM: usize = 8;

/// A transaction that had logged something, but neither COMMIT nor ABORT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Active {
    /// Transaction id.
    pub tx: u64,
    /// Position of the transaction's last record.
    pub last: Lsn,
}

/// The content of a checkpoint (rule 2).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Checkpoint {
    /// Position at which redo begins: pages need no earlier part of the log.
    pub redo: Lsn,
    /// Position in the log to which the allocation map, orphan roots and transactions belong.
    pub begin: Lsn,
    /// Next transaction id: no transaction has it, or a higher one, yet.
    pub next_tx: u64,
    /// Length of the store in pages.
    pub pages: u64,
    /// Allocation map: one bit per page, set if the page is in use. Page 0 has the lowest bit of
    /// the first word.
    pub taken: Vec<u64>,
    /// Orphan roots, to which nothing refers, with their kinds.
    pub orphans: Vec<(PageId, OrphanRoot)>,
    /// The active transactions.
    pub active: Vec<Active>,
    /// Number of entries of each tree, by owner id, as of `begin`. The number of a tree without an
    /// entry here is unknown.
    pub rows: Vec<(u32, u64)>,
    /// Root of the catalog, if there is one.
    pub catalog_root: Option<PageId>,
}

impl Checkpoint {
    /// Appends the checkpoint to `log`, makes it durable, and returns the start of its last record,
    /// which the superblock has to name.
    ///
    /// # Errors
    /// If the log does not become durable.
    pub fn write(&self, log: &Log) -> Result<Lsn, LogError> {
        self.write_if(log, |_| Ok(()))
    }

    /// Like [`Checkpoint::write`], but fails first if `has_room` does for the approximate number of
    /// bytes.
    ///
    /// # Errors
    /// The error of `has_room`, and nothing was appended; or as [`Checkpoint::write`].
    pub(super) fn write_if(
        &self,
        log: &Log,
        has_room: impl FnOnce(u64) -> Result<(), LogError>,
    ) -> Result<Lsn, LogError> {
        let bytes = self.encode();
        has_room(bytes.len() as u64)?;
        let mut prev = Lsn(0);
        let most = log.record_max().clamp(1, BODY_BYTES_MAX);
        let mut bodies = bytes.chunks(most).peekable();
        while let Some(body) = bodies.next() {
            let is_last = bodies.peek().is_none();
            let kind = if is_last { kind::CHECKPOINT } else { kind::CHECKPOINT_PART };
            let appended = log.append(&Record { kind, tx: 0, prev, parts: &[body] });
            if is_last {
                log.wait_durable(appended.end)?;
            }
            debug_assert!(prev < appended.start, "the parts of a checkpoint are chained backwards");
            prev = appended.start;
        }
        Ok(prev)
    }

    /// Reads the checkpoint whose last record begins at `at`.
    ///
    /// # Errors
    /// If the log cannot be read there, or has no checkpoint there.
    pub fn read(log: &Log, at: Lsn) -> Result<Checkpoint, RecoveryError> {
        let mut bodies = Vec::new();
        let (mut next, mut expected) = (at, kind::CHECKPOINT);
        while next != Lsn(0) {
            let mut body = Vec::new();
            let header = log.read_at(next, &mut body)?;
            if header.kind != expected {
                return Err(match expected {
                    kind::CHECKPOINT => RecoveryError::NoCheckpoint { at, kind: header.kind },
                    _ => RecoveryError::Checkpoint { at, what: "one of its parts is none" },
                });
            }
            if header.prev >= next {
                return Err(RecoveryError::Checkpoint { at, what: "its parts are in no order" });
            }
            bodies.push(body);
            (next, expected) = (header.prev, kind::CHECKPOINT_PART);
        }
        bodies.reverse();
        Self::decode(&bodies.concat()).map_err(|what| RecoveryError::Checkpoint { at, what })
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for number in [VERSION, self.redo.0, self.begin.0, self.next_tx, self.pages] {
            put_varint(&mut out, number);
        }
        match self.catalog_root {
            None => out.push(0),
            Some(page) => {
                out.push(1);
                put_varint(&mut out, page.0);
            }
        }
        put_varint(&mut out, self.active.len() as u64);
        for active in &self.active {
            put_varint(&mut out, active.tx);
            put_varint(&mut out, active.last.0);
        }
        put_varint(&mut out, self.orphans.len() as u64);
        for &(page, root) in &self.orphans {
            put_varint(&mut out, page.0);
            root.put(&mut out);
        }
        put_varint(&mut out, self.rows.len() as u64);
        for &(owner, rows) in &self.rows {
            put_varint(&mut out, u64::from(owner));
            put_varint(&mut out, rows);
        }
        put_map(&mut out, &self.taken);
        let sum = xxh3_64(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Result<Checkpoint, &'static str> {
        const CUT: &str = "it is too short";
        let (mut rest, sum) = bytes
            .len()
            .checked_sub(SUM)
            .and_then(|at| bytes.split_at_checked(at))
            .ok_or("it has no checksum")?;
        // If the checksum fits, `encode` wrote the rest, or a later version of it did.
        if xxh3_64(rest).to_le_bytes()[..] != *sum {
            return Err("its checksum does not fit");
        }
        let rest = &mut rest;
        if take_varint(rest).ok_or(CUT)? != VERSION {
            return Err("it was written by another version");
        }
        let (redo, begin) = (take_varint(rest).ok_or(CUT)?, take_varint(rest).ok_or(CUT)?);
        let mut checkpoint = Checkpoint {
            redo: Lsn(redo),
            begin: Lsn(begin),
            next_tx: take_varint(rest).ok_or(CUT)?,
            pages: take_varint(rest).ok_or(CUT)?,
            ..Checkpoint::default()
        };
        if take_byte(rest).ok_or(CUT)? != 0 {
            checkpoint.catalog_root = Some(PageId(take_varint(rest).ok_or(CUT)?));
        }
        for _ in 0..take_varint(rest).ok_or(CUT)? {
            let (tx, last) = (take_varint(rest).ok_or(CUT)?, take_varint(rest).ok_or(CUT)?);
            checkpoint.active.push(Active { tx, last: Lsn(last) });
        }
        for _ in 0..take_varint(rest).ok_or(CUT)? {
            let page = PageId(take_varint(rest).ok_or(CUT)?);
            checkpoint.orphans.push((page, OrphanRoot::take(rest).ok_or(CUT)?));
        }
        for _ in 0..take_varint(rest).ok_or(CUT)? {
            let (owner, rows) = (take_varint(rest).ok_or(CUT)?, take_varint(rest).ok_or(CUT)?);
            let owner = u32::try_from(owner).map_err(|_| "it counts what is no tree")?;
            checkpoint.rows.push((owner, rows));
        }
        checkpoint.taken = take_map(rest).ok_or("its allocation map is no map")?;
        if rest.is_empty() { Ok(checkpoint) } else { Err("it is too long") }
    }
}

fn take_byte(bytes: &mut &[u8]) -> Option<u8> {
    let (&first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(first)
}

/// Returns the number of words at the front of `words` that are `wanted`.
fn run(words: &[u64], wanted: impl Fn(u64) -> bool) -> usize {
    words.iter().position(|&word| !wanted(word)).unwrap_or(words.len())
}

fn put_map(out: &mut Vec<u8>, words: &[u64]) {
    put_varint(out, words.len() as u64);
    let mut rest = words;
    while !rest.is_empty() {
        let mut next = |wanted: fn(u64) -> bool| {
            let (front, behind) = rest.split_at(run(rest, wanted));
            put_varint(out, front.len() as u64);
            rest = behind;
            front
        };
        next(|word| word == u64::MAX);
        next(|word| word == 0);
        for word in next(|word| word != u64::MAX && word != 0) {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }
}

fn take_map(bytes: &mut &[u8]) -> Option<Vec<u64>> {
    let count = usize::try_from(take_varint(bytes)?).ok()?;
    let mut words = Vec::new();
    words.try_reserve_exact(count).ok()?;
    while words.len() < count {
        for filler in [u64::MAX, 0] {
            let more = usize::try_from(take_varint(bytes)?).ok()?;
            let end = words.len().checked_add(more).filter(|&end| end <= count)?;
            words.resize(end, filler);
        }
        let more = usize::try_from(take_varint(bytes)?).ok()?;
        words.len().checked_add(more).filter(|&end| end <= count)?;
        for _ in 0..more {
            let (word, rest) = bytes.split_first_chunk()?;
            words.push(u64::from_le_bytes(*word));
            *bytes = rest;
        }
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(random: &mut fastrand::Rng) -> Checkpoint {
        let words = random.usize(0..300);
        let mut taken = Vec::new();
        while taken.len() < words {
            let word = [u64::MAX, 0, random.u64(..)][random.usize(0..3)];
            taken.resize(taken.len() + random.usize(1..20), word);
        }
        Checkpoint {
            redo: Lsn(random.u64(..)),
            begin: Lsn(random.u64(..)),
            next_tx: random.u64(..),
            pages: taken.len() as u64 * 64,
            taken,
            orphans: (0..random.u64(0..5))
                .map(|i| (PageId(i << 40), OrphanRoot { kind: i as u8, stamp: random.u64(..) }))
                .collect(),
            active: (0..random.u64(0..9)).map(|tx| Active { tx, last: Lsn(tx * 77) }).collect(),
            rows: (0..random.u32(0..7)).map(|n| (n << 20, random.u64(..))).collect(),
            catalog_root: random.bool().then_some(PageId(random.u64(..))),
        }
    }

    #[test]
    fn a_checkpoint_comes_back_as_it_was_encoded() {
        let mut random = fastrand::Rng::with_seed(11);
        for _ in 0..500 {
            let checkpoint = drawn(&mut random);
            assert_eq!(Checkpoint::decode(&checkpoint.encode()), Ok(checkpoint));
        }
    }

    #[test]
    fn a_full_store_of_a_terabyte_takes_few_bytes() {
        let taken = vec![u64::MAX; 1 << 22];
        let checkpoint = Checkpoint { taken, pages: 1 << 28, ..Checkpoint::default() };
        assert!(checkpoint.encode().len() < 64);
    }

    #[test]
    fn any_changed_byte_and_any_cut_is_found_out() {
        let mut random = fastrand::Rng::with_seed(12);
        for _ in 0..200 {
            let mut bytes = drawn(&mut random).encode();
            let cut = random.usize(0..bytes.len());
            assert!(Checkpoint::decode(&bytes[..cut]).is_err());
            bytes[cut] ^= 1 << random.u8(0..8);
            assert!(Checkpoint::decode(&bytes).is_err());
        }
    }

    #[test]
    fn words_that_do_not_add_up_are_no_map() {
        let mut random = fastrand::Rng::with_seed(13);
        for _ in 0..2000 {
            let bytes: Vec<u8> = (0..random.usize(0..20)).map(|_| random.u8(0..40)).collect();
            if let Some(words) = take_map(&mut &bytes[..]) {
                assert!(words.len() < 40, "as the first byte says");
            }
        }
        assert_eq!(take_map(&mut &[1, 2, 0, 0][..]), None);
        assert_eq!(take_map(&mut &[2, 1, 1, 0][..]), Some(vec![u64::MAX, 0]));
    }
}
