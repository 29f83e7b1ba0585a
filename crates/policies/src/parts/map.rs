//! Map from page ids to small numbers: an array if ids are dense, else a hash table.
//!
//! The hash table uses open addressing with linear probing, and deletes by shifting back (Knuth
//! 6.4, algorithms L and R). Unlike hashbrown's, its empty slot is zeroed memory, so a table for
//! millions of ghosts costs nothing until there are any. Most lookups are of absent pages, and most
//! of these take only one cache line.
//!
//! [`PageSlots`] is for tables that know their content. It does less work per call than a
//! [`PageMap`], which counts its pages and returns old values. A simulated miss costs instructions.
//! In a long trace, the entry of an evicted page is far from the core, and is written without being
//! read.

use millpond_base::PageId;

use super::prefetch::prefetch;
use crate::zeroed::zeroed;

/// No value.
const NONE: u32 = u32::MAX;

/// Maps pages to values below `u32::MAX`.
pub struct PageMap {
    dense: Vec<u32>,
    hashed: Hashed,
    is_dense: bool,
    len: usize,
}

/// Spreads ids over the table, by a multiplication whose high half is folded onto its low half.
///
/// Only groups of four neighbours are spread. Within a group the low bits stay, so that neighbours
/// share a cache line: most traces run through pages in order, and a lookup in a large table costs
/// a cache miss. Neighbours must differ in the top bits, by which hashbrown's tables distinguish
/// entries.
#[inline(always)]
pub fn hash(page: u64) -> u64 {
    let wide = u128::from((page >> 2) ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93_u128;
    let spread = (wide as u64) ^ ((wide >> 64) as u64);
    let low = page & 3;
    ((spread & !3) | low) ^ (low << 62)
}

/// A slot of the table; zeros mean an empty one.
#[derive(Clone, Copy)]
struct Slot {
    page: u64,
    /// Complement of the value.
    not_value: u32,
}

zeros!(Slot { page, not_value });

impl Slot {
    const EMPTY: Slot = Slot { page: 0, not_value: !NONE };

    #[inline(always)]
    fn of(page: PageId, value: u32) -> Slot {
        Slot { page: page.0, not_value: !value }
    }

    #[inline(always)]
    fn value(self) -> Option<u32> {
        if self.not_value == !NONE { None } else { Some(!self.not_value) }
    }
}

/// The hash table. A page is in the first slot that was empty at its insertion, from the slot of
/// its hash on, wrapping around. No slot in between is empty while the page is there.
struct Hashed {
    slots: Vec<Slot>,
    len: usize,
}

impl Hashed {
    /// Creates a table in which `entries` take at most half of the slots.
    fn new(entries: usize) -> Hashed {
        let slots = if entries == 0 { 0 } else { (entries * 2).next_power_of_two().max(8) };
        Hashed { slots: zeroed(slots), len: 0 }
    }

    #[inline(always)]
    fn mask(&self) -> usize {
        self.slots.len().wrapping_sub(1)
    }

    /// Returns the slot of `page`, or the empty slot where it would be. There must be slots.
    #[inline(always)]
    fn find(&self, page: PageId) -> (usize, Option<u32>) {
        let mut at = hash(page.0) as usize & self.mask();
        loop {
            let slot = self.slots[at];
            match slot.value() {
                Some(value) if slot.page == page.0 => return (at, Some(value)),
                Some(_) => at = (at + 1) & self.mask(),
                None => return (at, None),
            }
        }
    }

    #[inline]
    fn get(&self, page: PageId) -> Option<u32> {
        if self.len == 0 { None } else { self.find(page).1 }
    }

    /// Returns the value of `page`; an unmapped page is mapped to `value`.
    #[inline]
    fn get_or_insert(&mut self, page: PageId, value: u32) -> Option<u32> {
        // A quarter stays empty, so that every probe ends soon.
        if self.len >= self.slots.len() / 4 * 3 {
            self.grow();
        }
        let (at, found) = self.find(page);
        if found.is_none() {
            self.slots[at] = Slot::of(page, value);
            self.len += 1;
        }
        found
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(8);
        let old = std::mem::replace(&mut self.slots, zeroed(slots));
        for slot in old {
            if slot.value().is_some() {
                let (at, _) = self.find(PageId(slot.page));
                self.slots[at] = slot;
            }
        }
    }

    #[inline]
    fn remove(&mut self, page: PageId) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        let (at, found) = self.find(page);
        found?;
        self.empty(at);
        found
    }

    /// Empties slot `at`. Later entries that may be here, or nearer to here, move up.
    #[inline]
    fn empty(&mut self, at: usize) {
        let (mut hole, mut from, mask) = (at, at, self.mask());
        loop {
            from = (from + 1) & mask;
            let slot = self.slots[from];
            if slot.value().is_none() {
                break;
            }
            // It may move unless its own slot is after the hole, wrapping around.
            let home = hash(slot.page) as usize & mask;
            if from.wrapping_sub(home) & mask >= from.wrapping_sub(hole) & mask {
                self.slots[hole] = slot;
                hole = from;
            }
        }
        self.slots[hole] = Slot::EMPTY;
        self.len -= 1;
    }

    fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }
}

impl PageMap {
    /// Creates a map for about `entries` pages. `pages_dense` is the approximate number of ids if
    /// they are dense; the array grows if there are more.
    pub fn new(pages_dense: Option<u64>, entries: usize) -> PageMap {
        let is_dense = pages_dense.is_some();
        let mut dense = Vec::new();
        if let Some(pages) = pages_dense {
            // At most 2^28 at once, since a wrong hint must not exhaust memory.
            dense.resize(pages.min(1 << 28) as usize, NONE);
        }
        let hashed = Hashed::new(if is_dense { 0 } else { entries.min(1 << 28) });
        PageMap { dense, hashed, is_dense, len: 0 }
    }

    /// Returns the number of mapped pages.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if no page is mapped.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the value of `page`.
    #[inline(always)]
    pub fn get(&self, page: PageId) -> Option<u32> {
        if self.is_dense {
            match self.dense.get(page.0 as usize) {
                Some(&value) if value != NONE => Some(value),
                _ => None,
            }
        } else {
            self.hashed.get(page)
        }
    }

    /// Maps `page`, which must not be mapped yet, to `value`.
    #[inline(always)]
    pub fn insert(&mut self, page: PageId, value: u32) {
        debug_assert!(value != NONE && self.get(page).is_none());
        self.len += 1;
        if self.is_dense {
            match self.dense.get_mut(page.0 as usize) {
                Some(slot) => *slot = value,
                None => self.grow(page.0 as usize, value),
            }
        } else {
            self.hashed.get_or_insert(page, value);
        }
    }

    /// Returns the value of `page`; an unmapped page is mapped to `value`.
    #[inline(always)]
    pub fn get_or_insert(&mut self, page: PageId, value: u32) -> u32 {
        if self.is_dense {
            return self.get(page).unwrap_or_else(|| {
                self.insert(page, value);
                value
            });
        }
        self.hashed.get_or_insert(page, value).unwrap_or_else(|| {
            self.len += 1;
            value
        })
    }

    /// Returns the value of `page`; an unmapped page is mapped to the number of pages mapped so
    /// far.
    #[inline]
    pub fn get_or_number(&mut self, page: PageId) -> u32 {
        self.get_or_insert(page, self.len as u32)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, index: usize, value: u32) {
        let len = (index + 1).max(self.dense.len() + self.dense.len() / 2);
        self.dense.resize(len, NONE);
        self.dense[index] = value;
    }

    /// Forgets `page` and returns its value.
    #[inline(always)]
    pub fn remove(&mut self, page: PageId) -> Option<u32> {
        if self.is_dense {
            let slot = self.dense.get_mut(page.0 as usize)?;
            let value = std::mem::replace(slot, NONE);
            if value == NONE {
                return None;
            }
            self.len -= 1;
            Some(value)
        } else {
            let value = self.hashed.remove(page);
            self.len -= usize::from(value.is_some());
            value
        }
    }

    /// Removes every page below `limit` from a hashed map, in no order.
    pub fn take_below(&mut self, limit: u64) -> Vec<(PageId, u32)> {
        let slots = self.hashed.slots.iter().filter(|slot| slot.page < limit);
        let taken: Vec<_> =
            slots.filter_map(|slot| Some((PageId(slot.page), slot.value()?))).collect();
        for (page, _) in &taken {
            self.remove(*page);
        }
        taken
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.dense.capacity() * size_of::<u32>() + self.hashed.bytes()
    }
}

/// An array for dense ids: each page's slot plus 1, or 0.
pub struct SlotArray(Vec<u32>);

impl SlotArray {
    /// Creates an array for about `pages` pages, which grows if there are more.
    pub fn new(pages: u64) -> SlotArray {
        // At most 2^28 at once, since a wrong hint must not exhaust memory.
        SlotArray(zeroed(pages.min(1 << 28) as usize))
    }

    /// Returns the slot of `page`.
    #[inline(always)]
    pub fn get(&self, page: PageId) -> Option<u32> {
        self.0.get(page.0 as usize)?.checked_sub(1)
    }

    /// Records that `page` is in `slot`, which is below `u32::MAX`.
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

    /// Records that `page` is in no slot.
    #[inline(always)]
    pub fn leave(&mut self, page: PageId) {
        if let Some(entry) = self.0.get_mut(page.0 as usize) {
            *entry = 0;
        }
    }

    /// Returns `true` if prefetching pays, since the array is larger than a core's own caches.
    pub fn wants_prefetch(&self) -> bool {
        self.0.len() * size_of::<u32>() > 1 << 20
    }

    /// Prefetches the entry of `page`.
    #[inline(always)]
    pub fn prefetch(&self, page: PageId) {
        prefetch(&self.0, page.0 as usize);
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<u32>()
    }
}

/// Slots by page: an array if ids are dense, else a hash table.
pub enum PageSlots {
    /// By the page's id.
    Dense(SlotArray),
    /// By its hash.
    Hashed(PageMap),
}

impl PageSlots {
    /// Creates slots for about `entries` pages. `pages_dense` is the approximate number of ids if
    /// they are dense.
    pub fn new(pages_dense: Option<u64>, entries: usize) -> PageSlots {
        match pages_dense {
            Some(pages) => PageSlots::Dense(SlotArray::new(pages)),
            None => PageSlots::Hashed(PageMap::new(None, entries)),
        }
    }

    /// Returns the slot of `page`.
    #[inline(always)]
    pub fn get(&self, page: PageId) -> Option<u32> {
        match self {
            PageSlots::Dense(array) => array.get(page),
            PageSlots::Hashed(map) => map.get(page),
        }
    }

    /// Records that `page`, which is in no slot, is in `slot` now, which is below `u32::MAX`.
    #[inline(always)]
    pub fn enter(&mut self, page: PageId, slot: u32) {
        match self {
            PageSlots::Dense(array) => array.enter(page, slot),
            PageSlots::Hashed(map) => map.insert(page, slot),
        }
    }

    /// Records that `page` is in no slot.
    #[inline(always)]
    pub fn leave(&mut self, page: PageId) {
        match self {
            PageSlots::Dense(array) => array.leave(page),
            PageSlots::Hashed(map) => _ = map.remove(page),
        }
    }

    /// Prefetches the entry of `page`, if it is in an array.
    #[inline(always)]
    pub fn prefetch(&self, page: PageId) {
        if let PageSlots::Dense(array) = self {
            array.prefetch(page);
        }
    }

    /// Returns the bytes held.
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
            let mut rng = fastrand::Rng::with_seed(3);
            let (mut map, mut model) = (PageMap::new(dense, 8), HashMap::new());
            for step in 0..20_000u32 {
                let page = rng.u64(0..100);
                if let Some(value) = model.remove(&page) {
                    assert_eq!(map.remove(PageId(page)), Some(value));
                } else {
                    map.insert(PageId(page), step);
                    model.insert(page, step);
                }
                let other = rng.u64(0..200);
                assert_eq!(map.get(PageId(other)), model.get(&other).copied());
                assert_eq!(map.len(), model.len());
            }
            assert_eq!(map.remove(PageId(9_999)), None);
        }
    }

    #[test]
    fn what_is_mapped_stays_what_is_not_is_inserted_and_what_is_small_is_taken_out() {
        for dense in [None, Some(4)] {
            let mut map = PageMap::new(dense, 4);
            map.insert(PageId(7), 70);
            assert_eq!(map.get_or_insert(PageId(7), 1), 70);
            assert_eq!((map.get_or_insert(PageId(9), 2), map.get(PageId(9))), (2, Some(2)));
        }
        let mut map = PageMap::new(None, 4);
        (0..100u32).for_each(|v| map.insert(PageId(u64::from(v) * 3), v));
        let mut small = map.take_below(9);
        small.sort_unstable();
        assert_eq!(small, [(PageId(0), 0), (PageId(3), 1), (PageId(6), 2)]);
        assert_eq!((map.get(PageId(6)), map.get(PageId(9)), map.len()), (None, Some(3), 97));
    }

    #[test]
    fn neighbours_lie_together_and_are_told_apart() {
        for page in (0..4_000).step_by(4) {
            let of: Vec<u64> = (page..page + 4).map(hash).collect();
            assert!(of.iter().all(|h| (h ^ of[0]) & 0x01ff_ffff_ffff_fffc == 0));
            let tags: std::collections::HashSet<u64> = of.iter().map(|h| h >> 57).collect();
            assert_eq!(tags.len(), 4);
        }
    }

    #[test]
    fn slots_agree_with_a_std_map_too() {
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
