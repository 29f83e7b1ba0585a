//! From page ids to small numbers: an array where ids are dense, a hash table where they are not.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use millpond_base::PageId;

use super::prefetch::prefetch;

/// No value.
const NONE: u32 = u32::MAX;

/// Maps pages to values below `u32::MAX`.
pub struct PageMap {
    dense: Vec<u32>,
    hashed: HashTable<(u64, u32)>,
    is_dense: bool,
    len: usize,
}

/// Spreads ids over the table: a multiplication whose high half is folded onto its low half.
///
/// Only groups of four neighbours are spread; within a group the low bits stay what they are, so
/// that neighbours lie in one cache line. Most traces run through pages in order, and a look-up in
/// a large table costs what its cache miss costs. The top bits are what tells entries apart in the
/// table's tags: there, neighbours must differ.
#[inline(always)]
pub fn hash(page: u64) -> u64 {
    let wide = u128::from((page >> 2) ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93_u128;
    let spread = (wide as u64) ^ ((wide >> 64) as u64);
    let low = page & 3;
    ((spread & !3) | low) ^ (low << 62)
}

impl PageMap {
    /// A map for about `entries` pages. With `pages_dense`, ids are dense and about so many; the
    /// array grows when there are more.
    pub fn new(pages_dense: Option<u64>, entries: usize) -> PageMap {
        let is_dense = pages_dense.is_some();
        let mut dense = Vec::new();
        if let Some(pages) = pages_dense {
            // No more than 2^28 at once: a wrong hint must not exhaust memory.
            dense.resize(pages.min(1 << 28) as usize, NONE);
        }
        // Spare room keeps deletions from forcing rehashes in place.
        let hashed = HashTable::with_capacity(if is_dense { 0 } else { entries.min(1 << 28) * 2 });
        PageMap { dense, hashed, is_dense, len: 0 }
    }

    /// Number of pages mapped.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no page is mapped.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of `page`.
    #[inline(always)]
    pub fn get(&self, page: PageId) -> Option<u32> {
        if self.is_dense {
            match self.dense.get(page.0 as usize) {
                Some(&value) if value != NONE => Some(value),
                _ => None,
            }
        } else {
            self.get_hashed(page)
        }
    }

    /// Whether looking up pages some time ahead pays: the array outgrew a core's own caches.
    pub fn wants_prefetch(&self) -> bool {
        self.dense.len() * size_of::<u32>() > 1 << 20
    }

    /// Has the entry of `page` loaded, if it is in the array.
    #[inline(always)]
    pub fn prefetch(&self, page: PageId) {
        prefetch(&self.dense, page.0 as usize);
    }

    #[inline]
    fn get_hashed(&self, page: PageId) -> Option<u32> {
        self.hashed.find(hash(page.0), |(p, _)| *p == page.0).map(|(_, v)| *v)
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
            self.insert_hashed(page, value);
        }
    }

    #[inline]
    fn insert_hashed(&mut self, page: PageId, value: u32) {
        self.hashed.insert_unique(hash(page.0), (page.0, value), |(p, _)| hash(*p));
    }

    /// The value of `page`; a page not mapped yet is mapped to `value`.
    #[inline(always)]
    pub fn get_or_insert(&mut self, page: PageId, value: u32) -> u32 {
        if self.is_dense {
            return self.get(page).unwrap_or_else(|| {
                self.insert(page, value);
                value
            });
        }
        let entry = self.hashed.entry(hash(page.0), |(p, _)| *p == page.0, |(p, _)| hash(*p));
        match entry {
            Entry::Occupied(there) => there.get().1,
            Entry::Vacant(place) => {
                place.insert((page.0, value));
                self.len += 1;
                value
            }
        }
    }

    /// The value of `page`; a page not mapped yet is mapped to the number of pages mapped so far.
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

    /// Forgets `page` and says what it was mapped to.
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
            self.remove_hashed(page)
        }
    }

    #[inline]
    fn remove_hashed(&mut self, page: PageId) -> Option<u32> {
        let entry = self.hashed.find_entry(hash(page.0), |(p, _)| *p == page.0).ok()?;
        self.len -= 1;
        Some(entry.remove().0.1)
    }

    /// Takes out of a hashed map every page below `limit`, in no order.
    pub fn take_below(&mut self, limit: u64) -> impl Iterator<Item = (PageId, u32)> + '_ {
        let len = &mut self.len;
        self.hashed.extract_if(move |(page, _)| *page < limit).map(|(page, value)| {
            *len -= 1;
            (PageId(page), value)
        })
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.dense.capacity() * 4 + self.hashed.capacity() * 17
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
        let mut small: Vec<_> = map.take_below(9).collect();
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
}
