//! LRU's stack distances: the number of distinct pages referenced since a page's last reference.
//!
//! Each page counts 1 at the position of its last reference. The distance is the sum over later
//! positions, from a Fenwick tree. Positions are compacted when the tree is full, so memory grows
//! with the number of pages, not of references.

use super::fenwick::Fenwick;

const NONE: u32 = u32::MAX;

/// Counts references by stack distance.
pub struct StackDistances {
    /// Position of each page's last reference, by dense page id.
    last: Vec<u32>,
    /// The page at each position, or none if the page was referenced again later.
    page_at: Vec<u32>,
    tree: Fenwick,
    pages: usize,
    /// References by distance, up to the greatest distance so far.
    counts: Vec<u64>,
    references: u64,
}

impl Default for StackDistances {
    fn default() -> Self {
        StackDistances::new()
    }
}

impl StackDistances {
    /// Returns a counter that has seen no reference.
    pub fn new() -> StackDistances {
        StackDistances {
            last: Vec::new(),
            page_at: Vec::new(),
            tree: Fenwick::with_len(1 << 12),
            pages: 0,
            counts: Vec::new(),
            references: 0,
        }
    }

    /// Counts a reference to the page with the dense id `page`.
    pub fn reference(&mut self, page: u32) {
        if self.page_at.len() == self.tree.len() {
            self.compact();
        }
        self.references += 1;
        let index = page as usize;
        if index >= self.last.len() {
            self.last.resize(index + 1, NONE);
        }
        let before = self.last[index];
        if before == NONE {
            self.pages += 1;
        } else {
            let later = self.pages as i64 - self.tree.below(before as usize + 1);
            let distance = later.max(0) as usize;
            if distance >= self.counts.len() {
                self.counts.resize(distance + 1, 0);
            }
            self.counts[distance] += 1;
            self.tree.add(before as usize, -1);
            self.page_at[before as usize] = NONE;
        }
        let position = self.page_at.len();
        self.page_at.push(page);
        self.tree.add(position, 1);
        self.last[index] = position as u32;
    }

    /// Moves the last references together. The tree grows if the pages fill half of it.
    fn compact(&mut self) {
        let mut kept = 0;
        for position in 0..self.page_at.len() {
            let page = self.page_at[position];
            if page != NONE {
                self.page_at[kept] = page;
                self.last[page as usize] = kept as u32;
                kept += 1;
            }
        }
        self.page_at.truncate(kept);
        let len = if kept * 2 > self.tree.len() { self.tree.len() * 2 } else { self.tree.len() };
        self.tree = Fenwick::with_len(len);
        (0..kept).for_each(|position| self.tree.add(position, 1));
    }

    /// Returns the number of references so far.
    pub fn references(&self) -> u64 {
        self.references
    }

    /// Returns LRU's hits with each of these numbers of frames, which are in ascending order.
    pub fn hits(&self, sizes: &[u64]) -> Vec<u64> {
        let (mut hits, mut sum, mut at) = (Vec::new(), 0, 0);
        for &size in sizes {
            while at < self.counts.len() && (at as u64) < size {
                sum += self.counts[at];
                at += 1;
            }
            hits.push(sum);
        }
        hits
    }
}
