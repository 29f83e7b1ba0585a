//! Truncation of a store's file at its free end, in two steps; and support for callers that free
//! more of it.
//!
//! First the store forgets the free pages at its end: none of them is allocated any more, except
//! when the store grows again. Then, once the caller has made durable that they are free, the file
//! is truncated at the store's end at that time. If the store grew in between, it is truncated
//! behind that; pages that were forgotten and added again were free in between.
//!
//! Where pages are written out of place, these are page ids, and the file ends behind the last
//! taken place. [`PageStore::pack_some`] moves pages at the end to free places before it, and the
//! ids stay. A move is a write like any other, so the old place is free with the next durable map.
use std::sync::atomic::Ordering;

use millpond_base::PageId;
use millpond_base::PastPoison;
use millpond_device::AlignedBuffer;

use super::batch::PageRead;
use super::creation::FIRST_BYTES;
use super::store::PageStore;
use super::store_error::{AllocateError, PackError, WriteError};
use super::transfer::{Outgoing, Stored};
use crate::page::{MapEntry, PageHeader, Spot};

/// Lengths of files are multiples of this, for direct I/O.
const BLOCK: u64 = 4096;
/// Number of pages that [`PageStore::pack_some`] moves at a time.
const PACK_PAGES: usize = 64;
/// Page ids are sparse if there are this many for each page in use,
const SPARSE: u64 = 8;
/// and more than this: 256 KiB of memory.
const SPARSE_LEAST: u64 = 32 << 10;

/// Progress of moving pages to free places.
#[derive(Debug)]
pub struct Packing {
    /// Pages at or beyond this place are to be moved.
    bound: u64,
    /// Pages before this one were examined.
    next: PageId,
}

/// Result of [`PageStore::pack_some`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packed {
    /// Number of pages moved.
    pub moved: u64,
    /// Set if no other page is to be moved, or no place is free for it.
    pub is_over: bool,
}

impl PageStore {
    /// Returns the end of the store if the pages in use were those with the lowest ids. Before it
    /// there are at least as many free pages as pages in use from it on.
    pub fn packed_end(&self) -> PageId {
        let (least, unit) = self.bounds();
        PageId(self.allocated_pages().max(least).next_multiple_of(unit))
    }

    /// Returns the first pages in use from `bound` on, without the store's own, in order, up to a
    /// maximum.
    pub fn used_from(&self, bound: PageId, most: usize) -> Vec<PageId> {
        let free = self.free_map();
        let used = free.taken_from(bound.0).map(PageId).filter(|page| !self.is_reserved(*page));
        used.take(most).collect()
    }

    /// Counts the pages in use from `bound` on, without the store's own.
    pub fn count_from(&self, bound: PageId) -> u64 {
        let free = self.free_map();
        free.taken_from(bound.0).filter(|page| !self.is_reserved(PageId(*page))).count() as u64
    }

    /// Takes the lowest free page if it is below `bound`. The store does not grow for it, and there
    /// is no I/O.
    pub fn take_below(&self, bound: PageId) -> Option<PageId> {
        let _gate = self.usable().ok()?;
        self.free_map().take_below(bound.0)
    }

    /// Returns the minimum number of pages, and the unit of page counts.
    fn bounds(&self) -> (u64, u64) {
        let page_bytes = self.page_size().bytes_u64();
        (FIRST_BYTES.div_ceil(page_bytes), BLOCK.div_ceil(page_bytes))
    }

    /// Forgets the free pages behind the last page in use. Returns their number.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn forget_tail(&self) -> Result<u64, AllocateError> {
        let _gate = self.usable()?;
        let _growing = self.growing.lock().past_poison();
        let (least, unit) = self.bounds();
        let mut free = self.free_map();
        let old = free.pages();
        let pages = free.cut(least, unit, |page| self.is_reserved(page));
        debug_assert!(pages <= old, "the store gets no longer when it forgets pages");
        if let Some(mut map) = self.map() {
            map.set_ids(pages);
        }
        // Before `free` is unlocked, as in a growth.
        self.pages.store(pages, Ordering::Release);
        Ok(old - pages)
    }

    /// Begins to move pages beyond the possible end of the file to free places before it; `None` if
    /// pages are written in place. The next map has its nodes there, too.
    pub fn begin_packing(&self) -> Option<Packing> {
        let bound = self.end_of_places()?;
        let mut map = self.map()?;
        map.move_nodes_from(bound);
        Some(Packing { bound, next: PageId(0) })
    }

    /// Marks the nodes of the map beyond the possible end of the file, so that the next map moves
    /// them. Returns `true` if there are any.
    pub fn move_far_nodes(&self) -> bool {
        let bound = self.end_of_places();
        let marked = |bound| Some(self.map()?.move_nodes_from(bound));
        bound.and_then(marked).unwrap_or(false)
    }

    /// Returns the end that the file would have with no free place before it; `None` in place.
    fn end_of_places(&self) -> Option<u64> {
        let (least, unit) = self.bounds();
        Some(self.map()?.packed_places().max(least).next_multiple_of(unit))
    }

    /// Counts the pages beyond the possible end of the file, in an out-of-place store.
    pub fn count_far(&self) -> u64 {
        let bound = self.end_of_places();
        let far = |bound| Some(self.map()?.count_placed_from(bound));
        bound.and_then(far).unwrap_or(0)
    }

    /// Returns `true` if page ids take several times the memory that they would if the pages in use
    /// had the lowest ids; always `false` in place.
    pub fn has_sparse_ids(&self) -> bool {
        let (ids, used) = (self.pages(), self.allocated_pages());
        self.map.is_some() && ids > SPARSE_LEAST && ids > SPARSE * used
    }

    /// Moves the next pages, at most [`PACK_PAGES`]. A page that is written in the meantime keeps
    /// its new place.
    ///
    /// # Errors
    /// A page cannot be read, is damaged, or cannot be written; others may have moved.
    pub fn pack_some(&self, packing: &mut Packing) -> Result<Packed, PackError> {
        let _gate = self.usable().map_err(WriteError::from)?;
        let Some(far) =
            self.map().map(|map| map.placed_from(packing.bound, packing.next, PACK_PAGES))
        else {
            return Ok(Packed { moved: 0, is_over: true });
        };
        packing.next = far.last().map_or(packing.next, |(page, _)| PageId(page.0 + 1));
        let (size, is_last) = (self.page_size().bytes(), far.len() < PACK_PAGES);
        let mut buffer = AlignedBuffer::new(far.len() * size);
        let mut reads: Vec<PageRead<'_, MapEntry>> = (far.iter().zip(buffer.chunks_mut(size)))
            .map(|((page, entry), bytes)| PageRead::tagged(*page, bytes, *entry))
            .collect();
        self.read_batch(&mut reads);
        let is_there = |read: &PageRead<'_, MapEntry>| {
            self.map().is_some_and(|map| map.entry(read.page) == read.tag)
        };
        reads.retain(is_there);
        if let Some(error) = reads.iter().find_map(|read| read.result.clone().err()) {
            return Err(error.into());
        }
        let stored = self.stored(reads.iter().map(|read| &*read.bytes));
        let bound = packing.bound;
        let take = |units: &Option<u64>| self.map()?.take_below(*units, bound);
        let spots: Vec<Spot> = stored.units.iter().map_while(take).collect();
        let is_full = spots.len() < reads.len();
        reads.truncate(spots.len());
        let moved = self.move_pages(&reads, &stored, &spots)?;
        Ok(Packed { moved, is_over: is_last || is_full })
    }

    /// Writes pages to `spots` and enters those that have not moved elsewhere; returns their
    /// number.
    fn move_pages(
        &self,
        reads: &[PageRead<'_, MapEntry>],
        stored: &Stored,
        spots: &[Spot],
    ) -> Result<u64, PackError> {
        let size = self.page_size();
        let outgoing = reads.iter().zip(spots).enumerate().map(|(at, (read, spot))| {
            Outgoing::new(at, spot.offset(size), stored.of(size, at).unwrap_or(read.bytes))
        });
        let mut first = Ok(());
        let mut moved = 0;
        let results = self.send(outgoing.collect());
        let Some(mut map) = self.map() else { return Ok(0) };
        for (at, result) in results {
            let (Some(read), Some(spot)) = (reads.get(at), spots.get(at)) else { continue };
            let (page, entry) = (read.page, read.tag);
            if result.is_ok() && map.entry(page) == entry {
                map.set(page, MapEntry::new(*spot, PageHeader::read(read.bytes).checksum));
                moved += 1;
                continue;
            }
            // It may be half written, and nothing refers to it.
            map.give_back(*spot);
            first = first.and(result.map_err(|error| WriteError::Device { page, error }.into()));
        }
        first.map(|()| moved)
    }

    /// Cuts the file at the store's end. It must be durable that all pages that
    /// [`PageStore::forget_tail`] forgot are free. Returns the number of bytes cut.
    ///
    /// # Errors
    /// The device fails; the file keeps its length.
    pub fn cut_off(&self) -> Result<u64, AllocateError> {
        let _gate = self.usable()?;
        let _growing = self.growing.lock().past_poison();
        let old = self.device.length();
        let (least, unit) = self.bounds();
        let places = self.map().map_or(self.pages(), |mut map| map.cut_places(least, unit));
        let cut = self.device.shrink(places * self.page_size().bytes_u64());
        if cut.is_err()
            && let Some(mut map) = self.map()
        {
            map.extend_places(old / self.page_size().bytes_u64());
        }
        cut?;
        self.is_cut.store(true, Ordering::Relaxed);
        debug_assert!(self.device.length() <= old, "a file that is cut off gets no longer");
        Ok(old - self.device.length())
    }
}
