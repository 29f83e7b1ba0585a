//! The page index: for each page that redo rebuilds, between which records its life is.
//!
//! Two LSNs per page and not one per record: pages are rebuilt in one pass over the log, which
//! needs to know only where the life of each begins and ends. The index so grows with the pages
//! that changed and not with the changes.
//!
//! A life begins with the page's last image, or, where pages are written out of place, with the
//! first record about it if there is no image: storage has what the page was before that.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use millpond_base::{Lsn, PageId};

/// The log's records of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Life {
    /// Start of the record that it begins with.
    pub first: Lsn,
    /// True if the first record has all of the page.
    pub has_image: bool,
    /// Start of the last record about it.
    pub last: Lsn,
}

/// The pages that redo rebuilds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PageIndex {
    lives: HashMap<PageId, Life>,
}

impl PageIndex {
    /// The record at `at` has all of `page`.
    pub fn image(&mut self, page: PageId, at: Lsn) {
        let former = self.lives.insert(page, Life { first: at, has_image: true, last: at });
        debug_assert!(former.is_none_or(|life| life.last <= at), "the log is read in order");
    }

    /// The record at `at` is about `page`. If there has been no image of it, and storage does not
    /// have what it was (`is_stored`), it is of no interest.
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

    /// `page` is free.
    pub fn free(&mut self, page: PageId) {
        self.lives.remove(&page);
    }

    /// Returns the records of `page`.
    #[inline]
    pub fn get(&self, page: PageId) -> Option<Life> {
        self.lives.get(&page).copied()
    }

    /// Number of pages.
    pub fn len(&self) -> usize {
        self.lives.len()
    }

    /// Returns `true` if there are none.
    pub fn is_empty(&self) -> bool {
        self.lives.is_empty()
    }

    /// The pages, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (PageId, Life)> + '_ {
        self.lives.iter().map(|(&page, &life)| (page, life))
    }

    /// Returns the position at which the first of the lives begins.
    pub fn start(&self) -> Option<Lsn> {
        self.lives.values().map(|life| life.first).min()
    }

    /// Returns the index restricted to some of the pages.
    pub(super) fn only(&self, pages: impl Iterator<Item = PageId>) -> PageIndex {
        let lives = pages.filter_map(|page| Some((page, self.get(page)?))).collect();
        PageIndex { lives }
    }

    /// Pages that a store has at least which holds all of them.
    pub(super) fn pages(&self) -> u64 {
        self.lives.keys().map(|page| page.0.saturating_add(1)).max().unwrap_or(0)
    }

    /// Memory that it takes, in bytes, roughly.
    pub fn bytes(&self) -> usize {
        self.lives.allocation_size()
    }
}
