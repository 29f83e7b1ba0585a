//! Slots by page, for tables that know what they hold: less work per call than a
//! [`PageMap`](super::PageMap), which counts its pages and says what was there.
//!
//! What a simulated miss costs is instructions, of which the tables' are a good part; and a page
//! that leaves is in an entry far from the core in a long trace, which is written here and not read.

use millpond_base::PageId;

use super::map::PageMap;
use super::prefetch::prefetch;
use crate::zeroed::zeroed;

/// For each page its slot plus 1, or 0: an array, for dense ids.
pub struct SlotArray(Vec<u32>);

impl SlotArray {
    /// An array for about `pages` pages; it grows when there are more.
    pub fn new(pages: u64) -> SlotArray {
        // No more than 2^28 at once: a wrong hint must not exhaust memory.
        SlotArray(zeroed(pages.min(1 << 28) as usize))
    }

    /// The slot of `page`.
    #[inline(always)]
    pub fn get(&self, page: PageId) -> Option<u32> {
        self.0.get(page.0 as usize)?.checked_sub(1)
    }

    /// `page` is in `slot`, which is below `u32::MAX`.
    #[inline(always)]
    pub fn enter(&mut self, page: PageId, slot: u32) {
        match self.0.get_mut(page.0 as usize) {
            Some(entry) => *entry = slot.wrapping_add(1),
            None => self.grow(page.0 as usize, slot),
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, index: usize, slot: u32) {
        let len = (index + 1).max(self.0.len() + self.0.len() / 2);
        self.0.resize(len, 0);
        self.0[index] = slot.wrapping_add(1);
    }

    /// `page` is in no slot.
    #[inline(always)]
    pub fn leave(&mut self, page: PageId) {
        if let Some(entry) = self.0.get_mut(page.0 as usize) {
            *entry = 0;
        }
    }

    /// Whether looking up pages some time ahead pays: the array outgrew a core's own caches.
    pub fn wants_prefetch(&self) -> bool {
        self.0.len() * size_of::<u32>() > 1 << 20
    }

    /// Has the entry of `page` loaded.
    #[inline(always)]
    pub fn prefetch(&self, page: PageId) {
        prefetch(&self.0, page.0 as usize);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<u32>()
    }
}

/// Slots by page: an array where ids are dense, a hash table where they are not.
pub enum PageSlots {
    /// By the page's id.
    Dense(SlotArray),
    /// By its hash.
    Hashed(PageMap),
}

impl PageSlots {
    /// Room for about `entries` pages. With `pages_dense`, ids are dense and that is about their
    /// number.
    pub fn new(pages_dense: Option<u64>, entries: usize) -> PageSlots {
        match pages_dense {
            Some(pages) => PageSlots::Dense(SlotArray::new(pages)),
            None => PageSlots::Hashed(PageMap::new(None, entries)),
        }
    }

    /// The slot of `page`.
    #[inline(always)]
    pub fn get(&self, page: PageId) -> Option<u32> {
        match self {
            PageSlots::Dense(array) => array.get(page),
            PageSlots::Hashed(map) => map.get(page),
        }
    }

    /// `page`, which is in no slot, is in `slot` now, which is below `u32::MAX`.
    #[inline(always)]
    pub fn enter(&mut self, page: PageId, slot: u32) {
        match self {
            PageSlots::Dense(array) => array.enter(page, slot),
            PageSlots::Hashed(map) => map.insert(page, slot),
        }
    }

    /// `page` is in no slot.
    #[inline(always)]
    pub fn leave(&mut self, page: PageId) {
        match self {
            PageSlots::Dense(array) => array.leave(page),
            PageSlots::Hashed(map) => _ = map.remove(page),
        }
    }

    /// Has the entry of `page` loaded, if that is an array's.
    #[inline(always)]
    pub fn prefetch(&self, page: PageId) {
        if let PageSlots::Dense(array) = self {
            array.prefetch(page);
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        match self {
            PageSlots::Dense(array) => array.bytes(),
            PageSlots::Hashed(map) => map.bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn dense_and_hashed_agree_with_a_std_map() {
        for dense in [None, Some(0), Some(50)] {
            let mut rng = fastrand::Rng::with_seed(9);
            let (mut slots, mut model) = (PageSlots::new(dense, 8), HashMap::new());
            for step in 0..20_000 {
                let page = PageId(rng.u64(0..100));
                if model.remove(&page).is_some() {
                    slots.leave(page);
                } else {
                    slots.enter(page, step);
                    model.insert(page, step);
                }
                let other = PageId(rng.u64(0..200));
                slots.prefetch(other);
                assert_eq!(slots.get(other), model.get(&other).copied());
            }
            slots.leave(PageId(9_999));
            assert!(slots.bytes() >= 100 * 4);
        }
    }

    #[test]
    fn a_wrong_hint_exhausts_no_memory() {
        let mut array = SlotArray::new(u64::MAX);
        array.enter(PageId(3), u32::MAX - 1);
        assert_eq!((array.get(PageId(3)), array.get(PageId(u64::MAX))), (Some(u32::MAX - 1), None));
        assert!(array.wants_prefetch() && !SlotArray::new(7).wants_prefetch());
    }
}
