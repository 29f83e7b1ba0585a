//! From page ids to small numbers: an array where ids are dense, a hash table where they are not.

use hashbrown::HashTable;
use millpond_base::PageId;

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
#[inline(always)]
fn hash(page: u64) -> u64 {
    let wide = u128::from(page ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93_u128;
    (wide as u64) ^ ((wide >> 64) as u64)
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
            let index = page.0 as usize;
            if index >= self.dense.len() {
                self.grow(index);
            }
            self.dense[index] = value;
        } else {
            self.hashed.insert_unique(hash(page.0), (page.0, value), |(p, _)| hash(*p));
        }
    }

    /// The value of `page`; a page not mapped yet is mapped to the number of pages mapped so far.
    #[inline]
    pub fn get_or_number(&mut self, page: PageId) -> u32 {
        if self.is_dense {
            if let Some(value) = self.get(page) {
                return value;
            }
            let number = self.len as u32;
            self.insert(page, number);
            return number;
        }
        let entry = self.hashed.entry(hash(page.0), |(p, _)| *p == page.0, |(p, _)| hash(*p));
        let number = self.len as u32;
        let found = entry.or_insert_with(|| (page.0, number));
        let value = found.get().1;
        self.len += usize::from(value == number);
        value
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, index: usize) {
        let len = (index + 1).max(self.dense.len() + self.dense.len() / 2);
        self.dense.resize(len, NONE);
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
            let entry = self.hashed.find_entry(hash(page.0), |(p, _)| *p == page.0).ok()?;
            self.len -= 1;
            Some(entry.remove().0.1)
        }
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
}
