//! Truncating a store's file at its free end, in two steps; and what those who free more of it need
//! to know.
//!
//! First the store forgets the free pages at its end: from then on none of them is allocated,
//! except when the store grows again. Then, once the caller has made durable that they are free,
//! the file is truncated where the store ends by then. If the store grew in between, it is
//! truncated behind that; pages that were forgotten and came back were free in between.
//!
//! Where pages are written out of place, these are page ids, and the file ends where the last place
//! is taken: [`PageStore::pack_places`] moves what lies at the end to free places before it. A move
//! is a write like any other, so the old place is free with the next durable map.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use millpond_base::PageId;

use super::buffer::AlignedBuffer;
use super::open::FIRST_BYTES;
use super::store::PageStore;
use super::store_error::{AllocateError, PackError, WriteError};
use crate::page::{MapEntry, PageHeader};

/// Lengths of files are multiples of this, as direct I/O wants them.
const BLOCK: u64 = 4096;

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

    /// Moves pages that lie behind where the file could end to free places before it, where pages
    /// are written out of place, and sees to it that the next map does so, too. Pages that are
    /// written meanwhile stay where they were written to. Returns how many moved.
    ///
    /// # Errors
    /// If a page cannot be read, is damaged, or not be written; others may have moved.
    pub fn pack_places(&self) -> Result<u64, PackError> {
        let _gate = self.usable().map_err(WriteError::from)?;
        let (least, unit) = self.bounds();
        let Some((bound, far)) = self.map().map(|mut map| {
            let bound = map.packed_places().max(least).next_multiple_of(unit);
            map.move_nodes_from(bound);
            (bound, map.placed_from(bound))
        }) else {
            return Ok(0);
        };
        let mut buffer = AlignedBuffer::new(self.page_size().bytes());
        let mut moved = 0;
        for (page, entry) in far {
            let Some(place) = self.map().and_then(|mut map| map.take_below(bound)) else { break };
            let is_moved = self.move_page(page, entry, place, &mut buffer);
            if !matches!(is_moved, Ok(true))
                && let Some(mut map) = self.map()
            {
                map.give_back(place);
            }
            moved += u64::from(is_moved?);
        }
        Ok(moved)
    }

    /// Copies a page from where `entry` says to `place`; returns `false` if it is elsewhere by now.
    fn move_page(
        &self,
        page: PageId,
        entry: MapEntry,
        place: u64,
        buffer: &mut AlignedBuffer,
    ) -> Result<bool, PackError> {
        match self.read(page, buffer) {
            Ok(()) => {}
            Err(_) if self.map().is_none_or(|map| map.entry(page) != entry) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let offset = place * self.page_size().bytes_u64();
        let written = self.device.write(offset, buffer);
        written.map_err(|error| WriteError::Device { page, error })?;
        let Some(mut map) = self.map() else { return Ok(false) };
        let is_here = map.entry(page) == entry;
        if is_here {
            map.set(page, MapEntry::new(place, PageHeader::read(buffer).checksum));
        }
        Ok(is_here)
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
