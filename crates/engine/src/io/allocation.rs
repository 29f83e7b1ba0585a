//! Allocation of pages from the free map, freeing of pages, and growth of the store.
use std::sync::atomic::Ordering;

use millpond_base::PageId;
use millpond_base::PastPoison;
use millpond_device::DeviceError;

use super::counts::Counters;
use super::placement::bitmap::{Bitmap, Refusal};
use super::placement::page_map::PageMap;
use super::store::PageStore;
use super::store_error::{AllocateError, FreeError};
use crate::page::{MapEntry, free_map};

/// Limits of one growth, in bytes.
const GROWTH_BYTES: (u64, u64) = (256 << 10, 64 << 20);

/// Divisor of the store's size that gives its growth.
const GROWTH_PART: u64 = 8;

/// Minimum number of page ids added at a time, in an out-of-place store.
const IDS_LEAST: u64 = 128;
const IDS_MOST: u64 = 16 << 10;

/// Divisor of the page ids that gives the places kept free of new pages, within bounds. They let
/// pages be rewritten when the disk is full.
const WORK_PART: u64 = 16;
const WORK: (u64, u64) = (2, 64);

/// Divisor of these places that gives the share that undo may use for new pages, when the disk is
/// full.
const UNDO_PART: u64 = 2;

/// Size up to which a store grows by half, in bytes.
const GROWTH_BY_HALF: u64 = 1 << 20;

/// Urgency of the pages of a growth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Need {
    Now,
    /// Perhaps soon; the store does not grow if its end was given back.
    Later,
}

/// Returns the number of places kept free of new pages: those of the next map, and a share of those
/// that rewritten pages take until it is durable.
fn kept_free(map: &PageMap, part: u64) -> u64 {
    map.reserve() + (map.ids() / WORK_PART).clamp(WORK.0, WORK.1) / part
}

impl PageStore {
    /// Takes the lowest free page, and grows the store if no page is free. The page's bytes on the
    /// device are undefined until the page is written.
    ///
    /// # Errors
    /// No page is free, and the store cannot grow.
    pub fn allocate(&self) -> Result<PageId, AllocateError> {
        let _gate = self.usable()?;
        loop {
            let mut free = self.free_map();
            if self.room_for(&free) > 0
                && let Some(page) = free.take()
            {
                debug_assert!(!self.is_reserved(page), "the store's own pages stay its own");
                return Ok(page);
            }
            drop(free);
            // Others may take all new pages before this thread does; then it grows again.
            self.make_room(1, Need::Now)?;
        }
    }

    /// Takes the `count` lowest free pages, in ascending order: all of them or none.
    ///
    /// # Errors
    /// There are fewer free pages, and the store cannot grow enough.
    pub fn allocate_many(&self, count: usize) -> Result<Vec<PageId>, AllocateError> {
        let _gate = self.usable()?;
        loop {
            let mut free = self.free_map();
            if free.free_pages().min(self.room_for(&free)) >= count as u64 {
                let taken: Vec<_> = std::iter::from_fn(|| free.take()).take(count).collect();
                debug_assert_eq!(taken.len(), count, "the count of free pages is right");
                debug_assert!(taken.is_sorted(), "the lowest free page comes first");
                return Ok(taken);
            }
            drop(free);
            self.make_room(count as u64, Need::Now)?;
        }
    }

    /// Allocates at least one and at most `most` pages: the lowest free ones, in ascending order.
    /// The store grows only if no page is free, so that a store being created keeps its length.
    ///
    /// # Errors
    /// No page is free, and the store cannot grow.
    pub fn allocate_up_to(&self, most: usize) -> Result<Vec<PageId>, AllocateError> {
        let _gate = self.usable()?;
        loop {
            let mut free = self.free_map();
            let room = usize::try_from(self.room_for(&free)).unwrap_or(usize::MAX);
            let most = most.max(1).min(room);
            let taken: Vec<_> = std::iter::from_fn(|| free.take()).take(most).collect();
            debug_assert!(taken.is_sorted(), "the lowest free page comes first");
            debug_assert!(taken.len() <= most, "no more pages than were asked for");
            if !taken.is_empty() {
                return Ok(taken);
            }
            drop(free);
            self.make_room(1, Need::Now)?;
        }
    }

    /// Allocates at least one page for undo, and at most `most`. On a full disk a few pages are
    /// reserved for undo.
    ///
    /// # Errors
    /// Same as [`PageStore::allocate_up_to`].
    pub fn allocate_for_undo(&self, most: usize) -> Result<Vec<PageId>, AllocateError> {
        let full = match self.allocate_up_to(most) {
            Err(AllocateError::Grow(error)) if error.is_disk_full() => error,
            allocated => return allocated,
        };
        let mut free = self.free_map();
        let room = usize::try_from(self.room_beside(&free, UNDO_PART)).unwrap_or(usize::MAX);
        let taken: Vec<_> = std::iter::from_fn(|| free.take()).take(most.min(room)).collect();
        if taken.is_empty() { Err(AllocateError::Grow(full)) } else { Ok(taken) }
    }

    /// Grows the store if less than half of its next step is free. Returns `true` if it grew. A
    /// background thread that calls this regularly saves allocating threads the wait for growth: a
    /// step of 64 MiB takes a drive of 600 MB/s a tenth of a second. A store whose end was given
    /// back stays as it is until a caller needs more.
    ///
    /// # Errors
    /// The store cannot grow; this is harmless as long as pages are free.
    pub fn grow_ahead(&self) -> Result<bool, AllocateError> {
        let _gate = self.usable()?;
        let before = self.device.length();
        let step = self.step_bytes(before) / self.page_size.bytes_u64();
        self.make_room(step.div_ceil(2), Need::Later)?;
        Ok(self.device.length() > before)
    }

    /// Returns `true` if the store does not grow for this need. The caller holds `growing`, as does
    /// the thread that gives the end of the file back.
    fn rests(&self, need: Need) -> bool {
        need == Need::Later && self.is_cut.load(Ordering::Relaxed)
    }

    /// Returns the bytes by which a store of `bytes` bytes grows.
    fn step_bytes(&self, bytes: u64) -> u64 {
        let least = (bytes / 2).min(GROWTH_BY_HALF);
        (bytes / GROWTH_PART).max(least).clamp(GROWTH_BYTES.0, GROWTH_BYTES.1)
    }

    /// Returns the number of pages that can be allocated and have a place to be written to.
    fn room_for(&self, free: &Bitmap) -> u64 {
        self.room_beside(free, 1)
    }

    /// Returns the number of pages that can be allocated beside the places kept free. One in `part`
    /// of the latter is kept for rewritten pages.
    fn room_beside(&self, free: &Bitmap, part: u64) -> u64 {
        let Some(map) = self.map() else { return u64::MAX };
        let nowhere = (free.pages() - free.free_pages()).saturating_sub(map.placed());
        map.free_places().saturating_sub(kept_free(&map, part) + nowhere)
    }

    /// Grows the store unless `wanted` pages, and places for them, are free by now.
    fn make_room(&self, wanted: u64, need: Need) -> Result<(), AllocateError> {
        if self.map.is_none() {
            return self.make_pages(wanted, need);
        }
        let (ids, room) = {
            let free = self.free_map();
            (free.free_pages(), self.room_for(&free))
        };
        if ids < wanted {
            self.add_ids(wanted)?;
        }
        let Some(missing) = wanted.checked_sub(room).filter(|missing| *missing > 0) else {
            return Ok(());
        };
        let Some((places, free)) = self.map().map(|map| (map.places(), map.free_places())) else {
            return Ok(());
        };
        Ok(self.grow_places(places, free + missing, need)?)
    }

    /// Makes at least `wanted` page ids free, in an out-of-place store. It does no I/O.
    ///
    /// # Errors
    /// The store would exceed the largest number of page ids.
    fn add_ids(&self, wanted: u64) -> Result<(), DeviceError> {
        let _growing = self.growing.lock().past_poison();
        let mut free = self.free_map();
        let missing = wanted.saturating_sub(free.free_pages());
        let step = (free.pages() / GROWTH_PART).clamp(IDS_LEAST, IDS_MOST);
        if free.pages().saturating_add(missing) > self.most_pages {
            return Err(self.too_long());
        }
        let ids = free.pages().saturating_add(missing.max(step)).min(self.most_pages);
        self.set_ids(&mut free, ids);
        Ok(())
    }

    /// Sets the number of page ids, in an out-of-place store; it must not fall.
    pub(super) fn set_ids(&self, free: &mut Bitmap, ids: u64) {
        free.extend(ids, |page| self.is_reserved(page));
        if let Some(mut map) = self.map() {
            map.set_ids(ids);
        }
        self.pages.store(ids, Ordering::Release);
    }

    /// Returns the error of a store that has the largest number of page ids or places.
    pub(super) fn too_long(&self) -> DeviceError {
        let length = self.most_pages.saturating_mul(self.page_size.bytes_u64());
        DeviceError::TooLong { path: self.path().to_path_buf(), length }
    }

    /// Makes the file longer, unless it already is: it had `old` places, and `wanted` were to be
    /// free.
    pub(super) fn grow_places(&self, old: u64, wanted: u64, need: Need) -> Result<(), DeviceError> {
        let _growing = self.growing.lock().past_poison();
        if self.rests(need) {
            return Ok(());
        }
        let free = match self.map() {
            Some(map) if map.places() == old => map.free_places(),
            _ => return Ok(()),
        };
        let missing = wanted.saturating_sub(free);
        if missing == 0 {
            return Ok(());
        }
        let page_bytes = self.page_size.bytes_u64();
        let most = self.most_pages.min(u64::MAX / page_bytes);
        if old.saturating_add(missing) > most {
            return Err(self.too_long());
        }
        let grow_by = |count: u64| {
            let places = old.saturating_add(count).min(most);
            self.device.grow(places * page_bytes).map(|()| places)
        };
        let step = self.step_bytes(old * page_bytes) / page_bytes;
        let places = match grow_by(missing.max(step)) {
            // The pages needed now may still fit.
            Err(error) if error.is_disk_full() => grow_by(missing)?,
            other => other?,
        };
        self.is_cut.store(false, Ordering::Relaxed);
        Counters::add(&self.counters.growths, 1);
        Counters::add(&self.counters.grown_bytes, ((places - old) * page_bytes) as usize);
        if let Some(mut map) = self.map() {
            map.extend_places(places);
        }
        Ok(())
    }

    /// Grows the store, whose pages are written in place, unless `wanted` pages are free by now.
    fn make_pages(&self, wanted: u64, need: Need) -> Result<(), AllocateError> {
        let _growing = self.growing.lock().past_poison();
        if self.rests(need) {
            return Ok(());
        }
        let (old, free) = {
            let free = self.free_map();
            (free.pages(), free.free_pages())
        };
        let Some(missing) = wanted.checked_sub(free).filter(|&missing| missing > 0) else {
            return Ok(());
        };
        // Free maps among the new pages cannot be allocated; twice their number covers the maps'
        // own.
        let maps = 2 * free_map::maps(self.page_size, missing);
        let needed = missing.saturating_add(maps + 1);
        let page_bytes = self.page_size.bytes_u64();
        let most = self.most_pages.min(u64::MAX / page_bytes);
        if old.saturating_add(needed) > most {
            return Err(AllocateError::Grow(self.too_long()));
        }
        let grow_by = |count: u64| {
            let pages = old.saturating_add(count).min(most);
            self.device.grow(pages * page_bytes).map(|()| pages)
        };
        let pages = match grow_by(needed.max(self.step_bytes(old * page_bytes) / page_bytes)) {
            // The pages needed now may still fit.
            Err(error) if error.is_disk_full() => grow_by(needed)?,
            other => other?,
        };
        self.is_cut.store(false, Ordering::Relaxed);
        Counters::add(&self.counters.growths, 1);
        Counters::add(&self.counters.grown_bytes, ((pages - old) * page_bytes) as usize);
        debug_assert!(pages >= old.saturating_add(missing), "the store grew by what is missing");
        let mut free = self.free_map();
        debug_assert_eq!(free.pages(), old, "one thread at a time makes the store longer");
        free.extend(pages, |page| self.is_reserved(page));
        // Before `free` is unlocked: a thread that gets one of the new pages may read and write it.
        self.pages.store(pages, Ordering::Release);
        Ok(())
    }

    /// Frees `page`, to which nothing may refer any more. It may be allocated again at once.
    ///
    /// # Errors
    /// The page does not exist, is the store's own, or is free already.
    pub fn free(&self, page: PageId) -> Result<(), FreeError> {
        let _gate = self.usable()?;
        if self.is_reserved(page) {
            return Err(FreeError::Reserved { page });
        }
        let mut free = self.free_map();
        let pages = free.pages();
        free.give(page).map_err(|why| match why {
            Refusal::OutOfRange => FreeError::OutOfRange { page, pages },
            Refusal::AlreadyFree => FreeError::AlreadyFree { page },
        })?;
        if let Some(mut map) = self.map() {
            map.set(page, MapEntry::NONE);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use millpond_base::{Lsn, Reason};

    use super::*;
    use crate::io::PageWrite;
    use crate::io::placement::map_read::{MapDamage, read_map_within};
    use crate::page::superblock::{Compression, Placement};
    use crate::page::{PageHeader, PageSize, PageType};
    use millpond_device::{AlignedBuffer, MemoryDevice};

    /// Largest number of page ids, and of places, in the stores of these tests.
    const MOST: u64 = 1500;
    const SIZE: PageSize = PageSize::TINY;

    fn small(placement: Placement, compression: Compression) -> (Arc<MemoryDevice>, PageStore) {
        let device = Arc::new(MemoryDevice::new());
        let store =
            PageStore::create_unmarked_on(device.clone(), SIZE, placement, compression).unwrap();
        (device, PageStore { most_pages: MOST, ..store })
    }

    /// Allocates and writes pages until the store has no more, and returns them.
    fn fill(store: &PageStore) -> Vec<PageId> {
        let mut pages = Vec::new();
        loop {
            let page = match store.allocate() {
                Ok(page) => page,
                Err(AllocateError::Grow(DeviceError::TooLong { length, .. })) => {
                    assert_eq!(length, MOST * SIZE.bytes_u64());
                    return pages;
                }
                Err(error) => panic!("{error}"),
            };
            assert!(page.0 < MOST, "{page:?}");
            pages.push(page);
            let mut bytes = AlignedBuffer::new(SIZE.bytes());
            let kind = PageType::HEAP_DATA;
            PageHeader { checksum: 0, lsn: Lsn(8), page, owner: 3, kind, level: 0 }
                .write(&mut bytes);
            store.write_batch(&mut [PageWrite::new(page, Reason::Replace, &mut bytes)]).unwrap();
        }
    }

    #[test]
    fn a_store_has_as_many_pages_as_it_can_have_and_says_when_there_are_no_more() {
        for (placement, compression) in [
            (Placement::InPlace, Compression::None),
            (Placement::OutOfPlace, Compression::None),
            (Placement::OutOfPlace, Compression::Lz4),
        ] {
            let (_, store) = small(placement, compression);
            let pages = fill(&store);
            let least = if compression == Compression::None { MOST * 3 / 4 } else { MOST - 1 };
            assert!(pages.len() as u64 >= least, "{placement:?} {compression:?}: {}", pages.len());
            let many = store.allocate_many(MOST as usize);
            assert!(matches!(many, Err(AllocateError::Grow(DeviceError::TooLong { .. }))));
            store.free(pages[7]).unwrap();
            if placement == Placement::InPlace {
                // Out of place, its place is free only behind the next map.
                assert_eq!(store.allocate().unwrap(), pages[7]);
            }
            store.grow_to(MOST).unwrap();
            let beyond = store.grow_to(MOST + 1);
            assert!(matches!(beyond, Err(AllocateError::Grow(DeviceError::TooLong { .. }))));
        }
    }

    #[test]
    fn a_map_of_as_many_page_ids_as_a_store_can_have_is_read_and_one_more_is_not() {
        let (device, store) = small(Placement::OutOfPlace, Compression::Lz4);
        let pages = fill(&store);
        assert_eq!(store.pages(), MOST);
        let map = store.write_map().unwrap();
        store.sync().unwrap();
        store.set_log_position(Lsn(8), None, map.as_ref()).unwrap();
        map.unwrap().release();
        let again = PageStore::open_to_recover(device.clone(), None).unwrap();
        let superblock = again.superblock().copied().unwrap();
        let map = read_map_within(&*device, &superblock, true, MOST).unwrap();
        assert_eq!((map.ids(), map.placed()), (MOST, pages.len() as u64));
        let refused = read_map_within(&*device, &superblock, true, MOST - 1).unwrap_err();
        assert_eq!(refused.damage, MapDamage::Ids { ids: MOST });
    }
}
