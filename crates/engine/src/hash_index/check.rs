//! Checks an index.
//!
//! [`check_page`] checks one page by itself and trusts nothing in it: any bytes are read without a
//! panic. [`HashIndex::check`] walks all reachable pages and compares children with their parents.
//! No thread may change the index during that check.

use std::collections::HashSet;

use millpond_base::{AccessKind, PageId};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::hash_index::bucket::{Bucket, PREFIX, RECORD_HEADER, parts, record_len};
use crate::hash_index::descend::mark;
use crate::hash_index::directory::{DIRECTORY_FLAG, SEED, USED, prefix_of, run_of, slot_in};
use crate::hash_index::index::HashIndex;
use crate::lock::is_interrupted;
use crate::page::{Directory, PageBuffer, PageHeader, PageType, View};
use crate::pool::{Pages, PoolError, Read, Swip};

/// A violated invariant.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The page is of another type than its place demands.
    #[error("the page has type {found}, not {expected}")]
    Type {
        /// Type as the page states.
        found: u8,
        /// Type that its place demands.
        expected: u8,
    },
    /// The page belongs to another structure.
    #[error("the page belongs to structure {found}, not {expected}")]
    Owner {
        /// Owner as the page states.
        found: u32,
        /// The index's id.
        expected: u32,
    },
    /// The page carries another id than it is stored under.
    #[error("the page says it is page {found}")]
    Id {
        /// Id as the page states.
        found: PageId,
    },
    /// Two slots lead to the page.
    #[error("two slots lead to the page")]
    Twice,
    /// Count, heap or garbage of a bucket contradict each other or the page size.
    #[error("the header says {count} entries, a heap from byte {heap} and {garbage} bytes unused")]
    Header {
        /// Entries.
        count: usize,
        /// Start of the heap.
        heap: usize,
        /// Bytes of garbage.
        garbage: usize,
    },
    /// The page is for other hashes than its parent states.
    #[error("the page is for hashes that begin with {bits} bits of {prefix:#018x}")]
    Range {
        /// Number of leading bits.
        bits: u32,
        /// The bits, in their place.
        prefix: u64,
    },
    /// A slot is not above the one before it.
    #[error("the hash of entry {entry} is below that of the one before it")]
    Order {
        /// Index of the entry.
        entry: usize,
    },
    /// An entry is outside the heap.
    #[error("entry {entry} lies outside the heap, at byte {at}")]
    Outside {
        /// Index of the entry.
        entry: usize,
        /// Offset of the entry, as its slot states it.
        at: usize,
    },
    /// Records overlap, or the garbage between them was not counted.
    #[error("the records take {records} bytes of a heap that has {heap} in use")]
    Heap {
        /// Bytes of all records.
        records: usize,
        /// Bytes of the heap, less its garbage.
        heap: usize,
    },
    /// A key's hash differs from the one in its slot, or belongs in another bucket.
    #[error("the key of entry {entry} hashes to {hash:#018x}, which does not belong here")]
    Hash {
        /// Index of the entry.
        entry: usize,
        /// Hash of its key.
        hash: u64,
    },
    /// Two entries have the same key.
    #[error("entries {entry} and {other} have the same key")]
    Duplicate {
        /// Index of one of them.
        entry: usize,
        /// Index of the other.
        other: usize,
    },
    /// The depth of a slot is impossible, or differs within a run.
    #[error("slot {slot} says depth {byte:#04x}")]
    Depth {
        /// Index of the slot.
        slot: usize,
        /// Byte of the slot.
        byte: u8,
    },
    /// A slot that is not the first of its run holds a swip, or a directory's slot holds none.
    #[error("slot {slot} holds the word {word:#x}")]
    Swip {
        /// Index of the slot.
        slot: usize,
        /// The word.
        word: u64,
    },
    /// The seed differs from the root's.
    #[error("the seed is {found:#x}, not the root's")]
    Seed {
        /// Seed as the page states.
        found: u64,
    },
}

/// Result of a check.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Pages that can be reached: all of them belong to the index.
    pub pages: HashSet<PageId>,
    /// Number of entries in the pages.
    pub entries: u64,
    /// The violations, each with its page.
    pub violations: Vec<(PageId, Violation)>,
}

/// Returns the seed of an index, which is in its root.
pub fn seed_in(root: &[u8]) -> u64 {
    PageBuffer::copy_of(root).view().u64(SEED)
}

/// Returns the faults of a page of a hash index, as far as the page alone shows them.
pub fn check_page(page: &[u8], seed: u64) -> Vec<Violation> {
    let copy = PageBuffer::copy_of(page);
    let mut found = Vec::new();
    match PageHeader::type_in(copy.view()) {
        PageType::HASH_ROOT => check_directory(copy.view(), seed, &mut found),
        PageType::HASH_BUCKET => check_bucket(&copy, seed, &mut found),
        other => {
            let expected = PageType::HASH_BUCKET.0;
            found.push(Violation::Type { found: other.0, expected });
        }
    }
    found
}

/// Returns whether the entries of a bucket can be read, as far as the bucket shows that without the
/// seed.
pub fn is_readable(bucket: &[u8]) -> bool {
    check_page(bucket, 0).iter().all(|violation| matches!(violation, Violation::Hash { .. }))
}

fn check_directory(view: View<'_>, seed: u64, found: &mut Vec<Violation>) {
    let form = Directory::of(view.len());
    if view.len() < form.swip_at(form.fan_out()) {
        return;
    }
    let (used, prefix) = (u32::from(view.u8(USED)), view.u64(PREFIX));
    if used % form.bits() != 0 || used + form.bits() > 64 || prefix_of(prefix, used) != prefix {
        found.push(Violation::Range { bits: used, prefix });
    }
    if view.u64(SEED) != seed {
        found.push(Violation::Seed { found: view.u64(SEED) });
    }
    let mut i = 0;
    while i < form.fan_out() {
        let byte = view.u8(form.byte_at(i));
        let depth = byte & !DIRECTORY_FLAG;
        let run = run_of(form, depth);
        let is_directory = byte & DIRECTORY_FLAG != 0;
        if u32::from(depth) > form.bits() || i % run != 0 || (is_directory && run != 1) {
            found.push(Violation::Depth { slot: i, byte });
            i += 1;
            continue;
        }
        if is_directory && view.u64(form.swip_at(i)) == Swip::NULL.0 {
            found.push(Violation::Swip { slot: i, word: 0 });
        }
        for slot in i + 1..i + run {
            let other = view.u8(form.byte_at(slot));
            if other != byte {
                found.push(Violation::Depth { slot, byte: other });
            }
            let word = view.u64(form.swip_at(slot));
            if word != Swip::NULL.0 {
                found.push(Violation::Swip { slot, word });
            }
        }
        i += run;
    }
}

fn check_bucket(page: &PageBuffer, seed: u64, found: &mut Vec<Violation>) {
    let bucket = Bucket(page.view());
    let (count, heap, garbage) = (bucket.count(), bucket.heap(), bucket.garbage());
    if !bucket.is_sound() {
        found.push(Violation::Header { count, heap, garbage });
        return;
    }
    let (bits, prefix) = (bucket.bits(), bucket.prefix());
    if bits > 64 || prefix_of(prefix, bits) != prefix {
        found.push(Violation::Range { bits, prefix });
    }
    let mut records = Vec::with_capacity(count);
    for i in 0..count {
        if i > 0 && bucket.word(i) < bucket.word(i - 1) {
            found.push(Violation::Order { entry: i });
        }
        let entry = bucket.entry(i);
        let at = entry.key - RECORD_HEADER;
        if !bucket.holds(entry) || !at.is_multiple_of(2) {
            found.push(Violation::Outside { entry: i, at });
            continue;
        }
        records.push((at, record_len(entry.key_len, entry.value_len)));
        let (key, _) = parts(page.bytes(), entry);
        let hash = xxh3_64_with_seed(key, seed);
        if hash as u32 != bucket.word(i) || prefix_of(hash, bits) != prefix {
            found.push(Violation::Hash { entry: i, hash });
        }
        for j in (0..i).rev().take_while(|&j| bucket.word(j) == bucket.word(i)) {
            if parts(page.bytes(), bucket.entry(j)).0 == key {
                found.push(Violation::Duplicate { entry: j, other: i });
            }
        }
    }
    records.sort_unstable();
    let total: usize = records.iter().map(|r| r.1).sum();
    let overlap = records.windows(2).any(|pair| pair[0].0 + pair[0].1 > pair[1].0);
    let in_use = page.bytes().len() - heap - garbage;
    if overlap || (total != in_use && records.len() == count) {
        found.push(Violation::Heap { records: total, heap: in_use });
    }
}

/// A child to check, as its parent describes it.
struct Expected {
    path: u64,
    /// Number of directories above.
    depth: u8,
    bits: u32,
    is_directory: bool,
}

impl<P: Pages> HashIndex<P> {
    /// Checks every page of the index. Use it while no thread writes.
    ///
    /// # Errors
    /// The memory behind the index failed; faults in a page are reported instead.
    pub fn check(&self) -> Result<Report, PoolError> {
        let mut report = Report::default();
        let mut todo = vec![Expected { path: 0, depth: 0, bits: 0, is_directory: true }];
        let mut page = PageBuffer::new(self.pages.page_size());
        while let Some(expected) = todo.pop() {
            if is_interrupted() {
                return Err(PoolError::Interrupted);
            }
            let Some(id) = self.copy_page(&expected, &mut page)? else { continue };
            let broken = report.violations.len();
            let mut note = |violation| report.violations.push((id, violation));
            if !report.pages.insert(id) {
                note(Violation::Twice);
                continue;
            }
            self.check_place(&expected, id, &page, &mut note);
            check_page(page.bytes(), self.seed).into_iter().for_each(&mut note);
            if report.violations.len() > broken {
                continue;
            }
            if expected.is_directory {
                self.expect_children(&expected, page.view(), &mut todo);
            } else {
                report.entries += Bucket(page.view()).count() as u64;
            }
        }
        Ok(report)
    }

    fn check_place(
        &self,
        expected: &Expected,
        id: PageId,
        page: &PageBuffer,
        note: &mut impl FnMut(Violation),
    ) {
        let header = PageHeader::read(page.bytes());
        let kind = if expected.is_directory { PageType::HASH_ROOT } else { PageType::HASH_BUCKET };
        if header.kind != kind {
            note(Violation::Type { found: header.kind.0, expected: kind.0 });
        }
        if header.owner != self.owner {
            note(Violation::Owner { found: header.owner, expected: self.owner });
        }
        if header.page != id {
            note(Violation::Id { found: header.page });
        }
        let bits = if expected.is_directory {
            u32::from(page.view().u8(USED))
        } else {
            Bucket(page.view()).bits()
        };
        let prefix = page.view().u64(PREFIX);
        if (bits, prefix) != (expected.bits, expected.path) {
            note(Violation::Range { bits, prefix });
        }
    }

    fn expect_children(&self, parent: &Expected, view: View<'_>, todo: &mut Vec<Expected>) {
        let mut i = 0;
        while i < self.form.fan_out() {
            let byte = view.u8(self.form.byte_at(i));
            let depth = byte & !DIRECTORY_FLAG;
            if view.u64(self.form.swip_at(i)) != Swip::NULL.0 {
                let shift = 64 - parent.bits - self.form.bits();
                todo.push(Expected {
                    path: parent.path | ((i as u64) << shift),
                    depth: parent.depth + 1,
                    bits: parent.bits + u32::from(depth),
                    is_directory: byte & DIRECTORY_FLAG != 0,
                });
            }
            i += run_of(self.form, depth);
        }
    }

    /// Copies a page whose ancestors were found sound; returns `None` if there is none.
    fn copy_page(
        &self,
        expected: &Expected,
        copy: &mut PageBuffer,
    ) -> Result<Option<PageId>, PoolError> {
        self.pages.run(|mtr| {
            let mut page = Read::root(mtr, self.anchor, mark(AccessKind::Read, 0))?;
            for depth in 0..expected.depth {
                let used = u32::from(depth) * self.form.bits();
                let view = page.view();
                let slot = slot_in(self.form, view, expected.path, used);
                if view.u64(slot.at) == Swip::NULL.0 {
                    page.validate()?;
                    return Ok(None);
                }
                page = page.child(slot.at, mark(AccessKind::Read, depth + 1))?;
            }
            let id = page.header().page().unwrap_or_default();
            page.view().copy_into(0, copy.bytes_mut());
            page.validate()?;
            Ok(Some(id))
        })
    }
}
