//! Truncating a store's file at its free end, in two steps; and what those who free more of it need
//! to know.
//!
//! First the store forgets the free pages at its end: from then on none of them is allocated,
//! except when the store grows again. Then, once the caller has made durable that they are free,
//! the file is truncated where the store ends by then. If the store grew in between, it is
//! truncated behind that; pages that were forgotten and came back were free in between.
//!
//! Where pages are written out of place, these are page ids, and the file ends where the last place
//! is taken: [`PageStore::pack_some`] moves what lies at the end to free places before it, and the
//! ids stay. A move is a write like any other, so the old place is free with the next durable map.

use std::io::IoSlice;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use millpond_base::PageId;

use super::batch::PageRead;
use super::buffer::AlignedBuffer;
use super::counts::Counters;
use super::device::WriteRequest;
use super::open::FIRST_BYTES;
use super::store::PageStore;
use super::store_error::{AllocateError, PackError, WriteError};
use crate::page::{MapEntry, PageHeader};

/// Lengths of files are multiples of this, as direct I/O wants them.
const BLOCK: u64 = 4096;
/// Pages that [`PageStore::pack_some`] moves at a time.
const PACK_PAGES: usize = 64;
/// Page ids are sparse if there are this many for each page in use,
const SPARSE: u64 = 8;
/// and more than this: 256 KiB of memory.
const SPARSE_LEAST: u64 = 32 << 10;

/// Moving pages to free places: how far it has come.
#[derive(Debug)]
pub struct Packing {
    /// What lies from this place on is to move.
    bound: u64,
    /// Pages before it were looked at.
    next: PageId,
}

/// What [`PageStore::pack_some`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packed {
    /// Pages that moved.
    pub moved: u64,
    /// No other page is to move, or no place is free for it.
    pub is_over: bool,
}

impl PageStore {
    /// Where the store would end if the pages in use were those with the lowest ids: there are as
    /// many free pages before it as there are pages in use from it on, or more.
    pub fn packed_end(&self) -> PageId {
        let (least, unit) = self.bounds();
        PageId(self.allocated_pages().max(least).next_multiple_of(unit))
    }

    /// The first pages in use from `bound` on, without the store's own, in order, up to a maximum.
    pub fn used_from(&self, bound: PageId, most: usize) -> Vec<PageId> {
        let free = self.free_map();
        let used = free.taken_from(bound.0).map(PageId).filter(|page| !self.is_reserved(*page));
        used.take(most).collect()
    }

    /// How many pages are in use from `bound` on, without the store's own.
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

    /// Pages that are kept, and what numbers of pages are multiples of.
    fn bounds(&self) -> (u64, u64) {
        let page_bytes = self.page_size().bytes_u64();
        (FIRST_BYTES.div_ceil(page_bytes), BLOCK.div_ceil(page_bytes))
    }

    /// Forgets the free pages behind the last that is in use. Returns how many there were.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn forget_tail(&self) -> Result<u64, AllocateError> {
        let _gate = self.usable()?;
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let (least, unit) = self.bounds();
        let mut free = self.free_map();
        let old = free.pages();
        let pages = free.cut(least, unit, |page| self.is_reserved(page));
        debug_assert!(pages <= old, "the store gets no longer when it forgets pages");
        if let Some(mut map) = self.map() {
            map.set_ids(pages);
        }
        // Before `free` is unlocked, as where it grows.
        self.pages.store(pages, Ordering::Release);
        Ok(old - pages)
    }

    /// Begins to move what lies behind where the file could end to free places before it; `None` if
    /// pages are written in place. The next map has its nodes there, too.
    pub fn begin_packing(&self) -> Option<Packing> {
        let bound = self.end_of_places()?;
        let mut map = self.map()?;
        map.move_nodes_from(bound);
        Some(Packing { bound, next: PageId(0) })
    }

    /// Where the file would end if no place were free before its end; `None` in place.
    fn end_of_places(&self) -> Option<u64> {
        let (least, unit) = self.bounds();
        Some(self.map()?.packed_places().max(least).next_multiple_of(unit))
    }

    /// How many pages lie behind where the file could end, where pages are written out of place.
    pub fn count_far(&self) -> u64 {
        let bound = self.end_of_places();
        let far = |bound| Some(self.map()?.count_placed_from(bound));
        bound.and_then(far).unwrap_or(0)
    }

    /// Whether page ids take several times the memory that they would if the pages in use had the
    /// lowest ones, out of place.
    pub fn has_sparse_ids(&self) -> bool {
        let (ids, used) = (self.pages(), self.allocated_pages());
        self.map.is_some() && ids > SPARSE_LEAST && ids > SPARSE * used
    }

    /// Moves the next pages, at most [`PACK_PAGES`]. A page that is written meanwhile stays where
    /// it was written to.
    ///
    /// # Errors
    /// If a page cannot be read, is damaged, or not be written; others may have moved.
    pub fn pack_some(&self, packing: &mut Packing) -> Result<Packed, PackError> {
        let _gate = self.usable().map_err(WriteError::from)?;
        let Some((far, places)) = self.map().map(|mut map| {
            let far = map.placed_from(packing.bound, packing.next, PACK_PAGES);
            let places: Vec<u64> =
                std::iter::from_fn(|| map.take_below(packing.bound)).take(far.len()).collect();
            (far, places)
        }) else {
            return Ok(Packed { moved: 0, is_over: true });
        };
        packing.next = far.last().map_or(packing.next, |(page, _)| PageId(page.0 + 1));
        let is_over = far.len() < PACK_PAGES || places.len() < far.len();
        let far = &far[..places.len()];
        let mut is_used = vec![false; places.len()];
        let moved = self.move_pages(far, &places, &mut is_used);
        if let Some(mut map) = self.map() {
            for (place, _) in places.iter().zip(&is_used).filter(|(_, is_used)| !**is_used) {
                map.give_back(*place);
            }
        }
        moved?;
        let moved = is_used.iter().filter(|is_used| **is_used).count() as u64;
        Ok(Packed { moved, is_over })
    }

    /// Copies pages from where their entries say to `places`, ascending, and enters those that are
    /// not elsewhere by then; tells which places have been `used`.
    fn move_pages(
        &self,
        far: &[(PageId, MapEntry)],
        places: &[u64],
        used: &mut [bool],
    ) -> Result<(), PackError> {
        let size = self.page_size().bytes();
        let mut buffer = AlignedBuffer::new(far.len() * size);
        let mut reads: Vec<PageRead<'_>> = (far.iter().zip(buffer.chunks_mut(size)))
            .map(|((page, _), bytes)| PageRead::new(*page, bytes))
            .collect();
        self.read_batch(&mut reads);
        let moves: Vec<_> = (reads.into_iter().zip(far).zip(places).zip(used))
            .filter(|(((read, (page, entry)), ..), _)| match &read.result {
                Ok(()) => entry.is_of(PageHeader::read(read.bytes).checksum),
                // What failed may have moved meanwhile.
                Err(_) => self.map().is_some_and(|map| map.entry(*page) == *entry),
            })
            .map(|(((read, (page, entry)), place), used)| (read, *page, *entry, *place, used))
            .collect();
        if let Some(error) = moves.iter().find_map(|(read, ..)| read.result.clone().err()) {
            return Err(error.into());
        }
        let parts: Vec<[IoSlice<'_>; 1]> =
            moves.iter().map(|(read, ..)| [IoSlice::new(read.bytes)]).collect();
        let mut requests: Vec<WriteRequest<'_, '_>> = (moves.iter().zip(&parts))
            .map(|((_, _, _, place, _), parts)| WriteRequest {
                offset: place * size as u64,
                parts,
                result: Ok(()),
            })
            .collect();
        Counters::add(&self.counters.write_requests, requests.len());
        self.device.write_batch(&mut requests);
        let results: Vec<_> = requests.into_iter().map(|request| request.result).collect();
        drop(parts);
        let mut all = Ok(());
        let Some(mut map) = self.map() else { return Ok(()) };
        for ((read, page, entry, place, used), result) in moves.into_iter().zip(results) {
            match result {
                Err(error) => all = all.and(Err(WriteError::Device { page, error }.into())),
                Ok(()) if map.entry(page) == entry => {
                    map.set(page, MapEntry::new(place, PageHeader::read(read.bytes).checksum));
                    *used = true;
                }
                Ok(()) => {}
            }
        }
        all
    }

    /// Cuts the file off where the store ends. It must be durable that all pages that
    /// [`PageStore::forget_tail`] forgot are free. Returns by how many bytes the file is shorter.
    ///
    /// # Errors
    /// If the device fails; the file is then as long as before.
    pub fn cut_off(&self) -> Result<u64, AllocateError> {
        let _gate = self.usable()?;
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
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
        debug_assert!(self.device.length() <= old, "a file that is cut off gets no longer");
        Ok(old - self.device.length())
    }
}
