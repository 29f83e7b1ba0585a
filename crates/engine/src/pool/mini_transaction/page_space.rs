//! The allocated pages and the orphan roots, as of the end of the log.

use std::collections::HashMap;

use millpond_base::PageId;

use crate::page::record_body::OrphanRoot;

/// Pages in use, and roots that nothing refers to, as of the end of the log.
#[derive(Debug, Default)]
pub struct PageSpace {
    /// One bit per page, set while it is in use; bits beyond the end are 0.
    taken: Vec<u64>,
    /// Roots that no structure refers to. Each is in use: a page that is freed is removed here.
    orphans: HashMap<PageId, OrphanRoot>,
}

impl PageSpace {
    /// Returns the space with these pages in use, and these roots as orphans.
    pub fn new(taken: Vec<u64>, orphans: HashMap<PageId, OrphanRoot>) -> PageSpace {
        PageSpace { taken, orphans }
    }

    /// Returns the words of the map of pages in use.
    pub fn taken(&self) -> &[u64] {
        &self.taken
    }

    /// Returns the orphan roots, each with its structure.
    pub fn orphans(&self) -> &HashMap<PageId, OrphanRoot> {
        &self.orphans
    }

    /// Sets whether `page` is in use.
    pub fn set(&mut self, page: PageId, taken: bool) {
        let at = (page.0 / 64) as usize;
        if at >= self.taken.len() {
            self.taken.resize(at + 1, 0);
        }
        let bit = 1 << (page.0 % 64);
        if let Some(word) = self.taken.get_mut(at) {
            *word = if taken { *word | bit } else { *word & !bit };
        }
        if !taken {
            self.orphans.remove(&page);
        }
    }

    /// Returns whether `page` is in use.
    pub(in crate::pool) fn is_taken(&self, page: PageId) -> bool {
        let word = self.taken.get((page.0 / 64) as usize);
        word.is_some_and(|word| word & 1 << (page.0 % 64) != 0)
    }

    /// Returns whether something refers to the root `page`: it is in use, and no orphan.
    pub(in crate::pool) fn is_referred_to(&self, page: PageId) -> bool {
        self.is_taken(page) && !self.orphans.contains_key(&page)
    }

    /// Makes the root `page` an orphan, if it is in use: a free page must not be freed a second
    /// time.
    pub fn hang(&mut self, page: PageId, root: OrphanRoot) {
        if self.is_taken(page) {
            self.orphans.insert(page, root);
        }
    }

    /// Records that the root `page` was attached, and is no orphan any more.
    pub fn place(&mut self, page: PageId) {
        self.orphans.remove(&page);
    }
}
