//! The page table of the simulated pool: from pages to frames.
//!
//! Dense ids index an array, with 4 bytes for each page of the trace. Other ids are hashed, and the
//! table holds frames only, because the pool knows the page of each frame anyway. A resident page
//! therefore costs at most 12 bytes here, for a trace of any length.
//!
//! A hash table fitted to the frames stays in a core's own caches; an array for a long trace does
//! not. The hash table is slower all the same, even at a hundredth of the pages: its probes cost
//! more instructions and mispredicted branches than prefetched lines do.

use hashbrown::HashTable;
use millpond_base::PageId;
use millpond_policies::parts::SlotArray;
use millpond_policies::parts::map::hash;

/// Map from pages to frames. `page_of` is the page in each frame; it must be up to date for every
/// frame in the table.
pub(super) enum FrameTable {
    Dense(SlotArray),
    Hashed(HashTable<u32>),
}

impl FrameTable {
    pub fn new(pages_dense: Option<u64>, frames: u32) -> FrameTable {
        match pages_dense {
            Some(pages) => FrameTable::Dense(SlotArray::new(pages)),
            None => FrameTable::Hashed(HashTable::with_capacity(frames as usize)),
        }
    }

    #[inline(always)]
    pub fn get(&self, page: PageId, page_of: &[PageId]) -> Option<u32> {
        match self {
            FrameTable::Dense(array) => array.get(page),
            FrameTable::Hashed(table) => find(table, page, page_of),
        }
    }

    /// Enters `frame`. Its page `page` (also in `page_of`) must not be in the table yet.
    #[inline(always)]
    pub fn insert(&mut self, frame: u32, page: PageId, page_of: &[PageId]) {
        match self {
            FrameTable::Dense(array) => array.enter(page, frame),
            FrameTable::Hashed(table) => insert(table, frame, page_of),
        }
    }

    #[inline(always)]
    pub fn remove(&mut self, page: PageId, page_of: &[PageId]) {
        match self {
            FrameTable::Dense(array) => array.leave(page),
            FrameTable::Hashed(table) => remove(table, page, page_of),
        }
    }

    /// Returns `true` if looking up pages ahead of time pays.
    pub fn wants_prefetch(&self) -> bool {
        matches!(self, FrameTable::Dense(array) if array.wants_prefetch())
    }

    /// Prefetches the entry of `page`.
    #[inline(always)]
    pub fn prefetch(&self, page: PageId) {
        if let FrameTable::Dense(array) = self {
            array.prefetch(page);
        }
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        match self {
            FrameTable::Dense(array) => array.bytes(),
            FrameTable::Hashed(table) => table.allocation_size(),
        }
    }
}

#[inline]
fn find(table: &HashTable<u32>, page: PageId, page_of: &[PageId]) -> Option<u32> {
    table.find(hash(page.0), |f| page_of[*f as usize] == page).copied()
}

#[inline]
fn insert(table: &mut HashTable<u32>, frame: u32, page_of: &[PageId]) {
    let of = |f: &u32| hash(page_of[*f as usize].0);
    table.insert_unique(of(&frame), frame, of);
}

#[inline]
fn remove(table: &mut HashTable<u32>, page: PageId, page_of: &[PageId]) {
    let found = table.find_entry(hash(page.0), |f| page_of[*f as usize] == page);
    if let Ok(entry) = found {
        entry.remove();
    }
}
