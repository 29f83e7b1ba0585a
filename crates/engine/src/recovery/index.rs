//! The page index: for each page that redo rebuilds, the range of log records to read.
//!
//! The index has two LSNs per page instead of one per record. Redo is one pass over the log, which
//! needs only the first and the last record of each page. So the index grows with the number of
//! changed pages, not with the number of changes.
//!
//! The range of a page's records is its *life*. A life begins with the page's last image. Where
//! pages are written out of place and there is no image, it begins with the first record about the
//! page, since storage has the version before that record.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use millpond_base::{Lsn, PageId};

/// The range of log records that rebuilds a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Life {
    /// Start of the first record.
    pub first: Lsn,
    /// True if the first record has an image of the whole page.
    pub has_image: bool,
    /// Start of the last record about the page.
    pub last: Lsn,
}

/// The pages that redo rebuilds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PageIndex {
    lives: HashMap<PageId, Life>,
}

impl PageIndex {
    /// Starts the life of `page` afresh with the image in the record at `at`.
    pub fn image(&mut self, page: PageId, at: Lsn) {
        let former = self.lives.insert(page, Life { first: at, has_image: true, last: at });
        debug_assert!(former.is_none_or(|life| life.last <= at), "the log is read in order");
    }

    /// Extends the life of `page` to the record at `at`. Ignores the record if the page has had no
    /// image and storage does not have the version before the record (`is_stored`).
    #[inline]
    pub fn change(&mut self, page: PageId, at: Lsn, is_stored: bool) {
        match self.lives.entry(page) {
            Entry::Occupied(mut life) => {
                debug_assert!(life.get().first <= life.get().last, "a life has a beginning");
                debug_assert!(life.get().last <= at, "the log is read in order");
                life.get_mut().last = at;
            }
            Entry::Vacant(life) if is_stored => {
                life.insert(Life { first: at, has_image: false, last: at });
            }
            Entry::Vacant(_) => {}
        }
    }

    /// Removes `page`, which was freed.
    pub fn free(&mut self, page: PageId) {
        self.lives.remove(&page);
    }

    /// Returns the life of `page`, or `None` if redo does not rebuild it.
    #[inline]
    pub fn get(&self, page: PageId) -> Option<Life> {
        self.lives.get(&page).copied()
    }

    /// Returns the number of pages.
    pub fn len(&self) -> usize {
        self.lives.len()
    }

    /// Returns `true` if redo rebuilds no page.
    pub fn is_empty(&self) -> bool {
        self.lives.is_empty()
    }

    /// Returns the pages and their lives, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (PageId, Life)> + '_ {
        self.lives.iter().map(|(&page, &life)| (page, life))
    }

    /// Returns the start of the first life: redo needs no earlier part of the log.
    pub fn start(&self) -> Option<Lsn> {
        self.lives.values().map(|life| life.first).min()
    }

    /// Returns the index restricted to `pages`.
    pub(super) fn only(&self, pages: impl Iterator<Item = PageId>) -> PageIndex {
        let lives = pages.filter_map(|page| Some((page, self.get(page)?))).collect();
        PageIndex { lives }
    }

    /// Returns the least length, in pages, of a store that holds all pages of the index.
    pub(super) fn pages(&self) -> u64 {
        self.lives.keys().map(|page| page.0.saturating_add(1)).max().unwrap_or(0)
    }

    /// Returns the approximate memory of the index, in bytes.
    pub fn bytes(&self) -> usize {
        self.lives.allocation_size()
    }
}
