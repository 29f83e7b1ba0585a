//! All entries, in no order that means anything, and what they take.
//!
//! Entries come in the order of their hashes' leading bits, bucket by bucket. Between two buckets
//! nothing is held, only a position: the hash that the next bucket begins with. Splits and merges
//! move entries between buckets but never change hashes, so an entry that is there all the time
//! comes exactly once, however much the index grows or shrinks meanwhile.

use std::collections::VecDeque;

use millpond_base::AccessKind;

use crate::hash_index::bucket::{Bucket, parts};
use crate::hash_index::descend::{Place, corrupt, mark, next_of, prefix_of, slot_in, wrong};
use crate::hash_index::index::HashIndex;
use crate::page::PageBuffer;
use crate::pool::{Pages, PoolError, Try};

/// Buckets that are asked for ahead of a scan.
const AHEAD: usize = 8;

/// Where an iteration stands between two buckets: may be kept, and gone on from later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Position(pub u64);

/// Iterates over the entries of an index; see [`HashIndex::entries`].
pub struct Entries<'i, P: Pages> {
    index: &'i HashIndex<P>,
    /// Where the next bucket begins; `None` at the end.
    next: Option<u64>,
    steps: usize,
    page: PageBuffer,
    ready: VecDeque<(Vec<u8>, Vec<u8>)>,
}

/// What an index consists of; see [`HashIndex::stats`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HashStats {
    /// Entries.
    pub entries: u64,
    /// Bucket pages.
    pub buckets: u64,
    /// Directory pages, the root among them.
    pub directories: u64,
    /// Directories on the longest way to a bucket.
    pub height: u64,
    /// Bytes of all pages.
    pub total_bytes: u64,
    /// Bytes that entries take in buckets, their slots included.
    pub used_bytes: u64,
    /// Bytes of keys and values.
    pub raw_bytes: u64,
}

enum Copied {
    Nothing,
    Bucket,
}

impl<P: Pages> HashIndex<P> {
    /// Iterates over copies of all entries. Writers may go on meanwhile: an entry that is there
    /// all the time comes exactly once, one that comes or goes may or may not be seen.
    pub fn entries(&self) -> Entries<'_, P> {
        self.entries_from(Position::default())
    }

    /// Goes on from a position that [`Entries::position`] gave.
    pub fn entries_from(&self, position: Position) -> Entries<'_, P> {
        let page = PageBuffer::new(self.pages.page_size());
        let next = Some(position.0);
        Entries { index: self, next, steps: 0, page, ready: VecDeque::new() }
    }

    /// Number of entries: a walk over all buckets.
    ///
    /// # Errors
    /// The memory behind the index failed.
    pub fn len(&self) -> Result<u64, PoolError> {
        Ok(self.stats()?.entries)
    }

    /// Whether there are no entries.
    ///
    /// # Errors
    /// The memory behind the index failed.
    pub fn is_empty(&self) -> Result<bool, PoolError> {
        match self.entries().next() {
            None => Ok(true),
            Some(entry) => entry.map(|_| false),
        }
    }

    /// What the index consists of, by a walk over all pages; exact if nobody writes meanwhile.
    ///
    /// # Errors
    /// The memory behind the index failed.
    pub fn stats(&self) -> Result<HashStats, PoolError> {
        let mut stats = HashStats { directories: 1, height: 1, ..HashStats::default() };
        let mut page = PageBuffer::new(self.pages.page_size());
        let (mut next, mut step) = (Some(0), 0);
        while let Some(position) = next {
            let (copied, place) = self.copy_bucket(position, &mut page, step)?;
            step += 1;
            next = place.next;
            stats.height = stats.height.max(u64::from(place.depth) + 1);
            // Each directory but the root is counted where its first child is.
            stats.directories += u64::from(place.begun);
            if let Copied::Bucket = copied {
                let bucket = Bucket(page.view());
                stats.buckets += 1;
                stats.entries += bucket.count() as u64;
                stats.used_bytes += bucket.used() as u64;
                for i in 0..bucket.count() {
                    let (key, value) = parts(page.bytes(), bucket.entry(i));
                    stats.raw_bytes += (key.len() + value.len()) as u64;
                }
            }
        }
        stats.total_bytes = (stats.buckets + stats.directories) * self.pages.page_size() as u64;
        Ok(stats)
    }

    /// Copies the bucket of `hash`, which is a position, and says what comes after it.
    fn copy_bucket(
        &self,
        hash: u64,
        page: &mut PageBuffer,
        step: usize,
    ) -> Result<(Copied, Step), PoolError> {
        self.pages.run(|mtr| {
            let place = self.descend::<false>(mtr, hash)?;
            if step.is_multiple_of(AHEAD) {
                self.ask_ahead(&place, hash);
            }
            let bits = place.slot.bits();
            let begun = directories_begun(hash, self.form.bits(), place.depth);
            let step = Step { next: next_of(hash, bits), bits, depth: place.depth, begun };
            if place.is_empty() {
                place.directory.validate()?;
                return Ok((Copied::Nothing, step));
            }
            self.copy_child(&place, page)?;
            Ok((Copied::Bucket, step))
        })
    }

    fn copy_child(&self, place: &Place<'_, P>, page: &mut PageBuffer) -> Try<()> {
        let to = mark(AccessKind::Read, place.depth + 1).with_scan(true);
        let child = place.directory.child(place.slot.at, to)?;
        if !Bucket(child.view()).is_bucket() {
            return wrong(&child);
        }
        child.view().copy_into(0, page.bytes_mut());
        child.validate()?;
        if !Bucket(page.view()).is_sound() {
            let id = child.header().page().unwrap_or_default();
            return Err(corrupt(id, "the header of a bucket makes no sense"));
        }
        Ok(())
    }

    /// Begins to load the buckets after that of `hash` in the same directory.
    fn ask_ahead(&self, place: &Place<'_, P>, hash: u64) {
        let mut ahead = [0; AHEAD];
        let (mut count, mut at) = (0, hash);
        let end = place.slot.used;
        while count < AHEAD {
            let slot = slot_in(self.form, place.directory.view(), at, end);
            let Some(next) = next_of(at, slot.bits()) else { break };
            if prefix_of(next, end) != prefix_of(hash, end) || slot.bits() == 0 {
                break;
            }
            at = next;
            ahead[count] = slot_in(self.form, place.directory.view(), at, end).at;
            count += 1;
        }
        self.pages.prefetch(&place.directory, &ahead[..count]);
    }
}

/// What a step of an iteration learned.
struct Step {
    /// Where the next bucket begins.
    next: Option<u64>,
    /// Leading bits that the bucket's hashes share.
    bits: u32,
    depth: u8,
    /// Directories below the root whose first child this is.
    begun: u8,
}

/// Of the `depth` directories below the root on the way of `hash`, those that begin with it.
fn directories_begun(hash: u64, bits: u32, depth: u8) -> u8 {
    (1..=depth).filter(|&d| prefix_of(hash, bits * u32::from(d)) == hash).count() as u8
}

impl<P: Pages> Entries<'_, P> {
    /// Where to go on once the entries of the current bucket are through; `None` at the end.
    pub fn position(&self) -> Option<Position> {
        self.next.map(Position)
    }

    /// Copies the next bucket that is not empty.
    fn fill(&mut self) -> Result<(), PoolError> {
        while let (true, Some(from)) = (self.ready.is_empty(), self.next) {
            let (copied, step) = self.index.copy_bucket(from, &mut self.page, self.steps)?;
            self.steps += 1;
            self.next = step.next;
            let Copied::Bucket = copied else { continue };
            let bucket = Bucket(self.page.view());
            // After a merge the bucket may begin before the position.
            let all = prefix_of(from, step.bits) == from;
            for i in 0..bucket.count() {
                let (key, value) = parts(self.page.bytes(), bucket.entry(i));
                if all || self.index.hash(key) >= from {
                    self.ready.push_back((key.to_vec(), value.to_vec()));
                }
            }
        }
        Ok(())
    }
}

impl<P: Pages> Iterator for Entries<'_, P> {
    type Item = Result<(Vec<u8>, Vec<u8>), PoolError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.fill() {
            Ok(()) => self.ready.pop_front().map(Ok),
            Err(error) => {
                self.next = None;
                Some(Err(error))
            }
        }
    }
}
