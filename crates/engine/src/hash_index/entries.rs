//! Iterates over all entries, in no meaningful order, and collects statistics.
//!
//! Entries are returned in the order of their hashes' leading bits, bucket by bucket. Between two
//! buckets, no latch is held: an iteration keeps only a position, the hash at which the next bucket
//! begins. Splits and merges move entries between buckets but never change hashes. So an entry that
//! exists all the time is returned exactly once, however much the index grows or shrinks in the
//! meantime.

use std::collections::VecDeque;

use millpond_base::AccessKind;

use crate::hash_index::bucket::{Bucket, parts};
use crate::hash_index::descend::{BucketSlot, mark, wrong};
use crate::hash_index::directory::{next_of, prefix_of, slot_in};
use crate::hash_index::error::corrupt;
use crate::hash_index::index::HashIndex;
use crate::page::{Batch, BatchEntry, PageBuffer};
use crate::pool::{Pages, PoolError, Try};

/// Number of buckets prefetched for a scan.
const AHEAD: usize = 8;

/// The position of an iteration between two buckets. It may be kept, and resumed from later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Position(pub u64);

/// Iterates over the entries of an index; see [`HashIndex::entries`].
pub struct Entries<'i, P: Pages> {
    index: &'i HashIndex<P>,
    /// The hash at which the next bucket begins; `None` at the end.
    next: Option<u64>,
    steps: usize,
    page: PageBuffer,
    ready: VecDeque<(Vec<u8>, Vec<u8>)>,
}

/// The size of an index; see [`HashIndex::stats`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HashStats {
    /// Number of entries.
    pub entries: u64,
    /// Number of bucket pages.
    pub buckets: u64,
    /// Number of directory pages, including the root.
    pub directories: u64,
    /// Number of directories on the longest path to a bucket.
    pub height: u64,
    /// Bytes of all pages.
    pub total_bytes: u64,
    /// Bytes that entries occupy in buckets, their slots included.
    pub used_bytes: u64,
    /// Bytes of keys and values.
    pub raw_bytes: u64,
}

impl<P: Pages> HashIndex<P> {
    /// Iterates over copies of all entries. Writers are not blocked. An entry that exists all the
    /// time is returned exactly once; one that is inserted or removed during the iteration may or
    /// may not be.
    pub fn entries(&self) -> Entries<'_, P> {
        self.entries_from(Position::default())
    }

    /// Resumes an iteration from a position that [`Entries::position`] returned.
    pub fn entries_from(&self, position: Position) -> Entries<'_, P> {
        let page = PageBuffer::new(self.pages.page_size());
        let next = Some(position.0);
        Entries { index: self, next, steps: 0, page, ready: VecDeque::new() }
    }

    /// Returns the number of entries, by a walk over all buckets.
    ///
    /// # Errors
    /// The memory behind the index failed.
    pub fn len(&self) -> Result<u64, PoolError> {
        Ok(self.stats()?.entries)
    }

    /// Returns whether there are no entries.
    ///
    /// # Errors
    /// The memory behind the index failed.
    pub fn is_empty(&self) -> Result<bool, PoolError> {
        match self.entries().next() {
            None => Ok(true),
            Some(entry) => entry.map(|_| false),
        }
    }

    /// Returns the size of the index, by a walk over all pages. It is exact if no thread writes
    /// during the walk.
    ///
    /// # Errors
    /// The memory behind the index failed.
    pub fn stats(&self) -> Result<HashStats, PoolError> {
        let mut stats = HashStats { directories: 1, height: 1, ..HashStats::default() };
        let mut page = PageBuffer::new(self.pages.page_size());
        let (mut next, mut step) = (Some(0), 0);
        while let Some(position) = next {
            let place = self.copy_bucket(position, &mut page, step)?;
            step += 1;
            next = place.next;
            stats.height = stats.height.max(u64::from(place.depth) + 1);
            // Each directory except the root is counted where its first child is.
            stats.directories += u64::from(place.begun);
            if place.is_copied {
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

    /// Copies the entries of the bucket of `from` whose hashes are not below `from`. Returns the
    /// hash at which the next bucket begins, or `None` at the end.
    pub(crate) fn batch(&self, from: u64, batch: &mut Batch) -> Result<Option<u64>, PoolError> {
        let (mut page, step) = batch.begin(self.pages.page_size());
        let copied = self.copy_bucket(from, &mut page, step);
        if copied.as_ref().is_ok_and(|step| step.is_copied) {
            let bucket = Bucket(page.view());
            for i in 0..bucket.count() {
                let (key, value) = parts(page.bytes(), bucket.entry(i));
                let position = self.hash(key);
                if position >= from {
                    let (key, value) = (key.to_vec(), value.to_vec());
                    batch.entries.push(BatchEntry { position, key, value });
                }
            }
        }
        batch.end(page);
        Ok(copied?.next)
    }

    /// Copies the bucket of `hash`, which is a position; returns the step to its successor.
    fn copy_bucket(
        &self,
        hash: u64,
        page: &mut PageBuffer,
        step: usize,
    ) -> Result<Step, PoolError> {
        self.pages.run(|mtr| {
            let place = self.descend::<false>(mtr, hash)?;
            if step.is_multiple_of(AHEAD) {
                self.prefetch_after(&place, hash);
            }
            let bits = place.slot.bits();
            let begun = directories_begun(hash, self.form.bits(), place.depth);
            let next = next_of(hash, bits);
            debug_assert!(next.is_none_or(|next| next > hash), "an iteration ends");
            let step = Step { is_copied: false, next, bits, depth: place.depth, begun };
            if place.is_empty() {
                place.directory.validate()?;
                return Ok(step);
            }
            self.copy_child(&place, page)?;
            Ok(Step { is_copied: true, ..step })
        })
    }

    fn copy_child(&self, place: &BucketSlot<'_, P>, page: &mut PageBuffer) -> Try<()> {
        let to = mark(AccessKind::Read, place.depth + 1).with_scan(true);
        let child = place.directory.child(place.slot.at, to)?;
        if !Bucket(child.view()).is_bucket() {
            return wrong(&child);
        }
        child.view().copy_into(0, page.bytes_mut());
        child.validate()?;
        if !Bucket(page.view()).is_sound() {
            let id = child.header().page().unwrap_or_default();
            return Err(corrupt(id, "the header of a bucket cannot be decoded"));
        }
        Ok(())
    }

    /// Starts loading the buckets after that of `hash` in the same directory.
    fn prefetch_after(&self, place: &BucketSlot<'_, P>, hash: u64) {
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

/// One step of an iteration.
struct Step {
    /// True if there was a bucket, which was copied.
    is_copied: bool,
    /// The hash at which the next bucket begins.
    next: Option<u64>,
    /// Number of leading bits that the bucket's hashes share.
    bits: u32,
    depth: u8,
    /// Number of directories below the root whose first child this is.
    begun: u8,
}

/// Counts the directories that begin with `hash`, among the `depth` directories below the root on
/// its path.
fn directories_begun(hash: u64, bits: u32, depth: u8) -> u8 {
    (1..=depth).filter(|&d| prefix_of(hash, bits * u32::from(d)) == hash).count() as u8
}

impl<P: Pages> Entries<'_, P> {
    /// Returns the position after the entries of the current bucket, or `None` at the end.
    pub fn position(&self) -> Option<Position> {
        self.next.map(Position)
    }

    /// Copies the next bucket that is not empty.
    fn fill(&mut self) -> Result<(), PoolError> {
        while let (true, Some(from)) = (self.ready.is_empty(), self.next) {
            let step = self.index.copy_bucket(from, &mut self.page, self.steps)?;
            self.steps += 1;
            self.next = step.next;
            if !step.is_copied {
                continue;
            }
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
