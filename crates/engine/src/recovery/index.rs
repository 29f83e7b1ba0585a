//! The page index: for each page that redo rebuilds, between which records its life is.
//!
//! Two LSNs per page and not one per record: pages are made anew in one pass over the log, which
//! needs to know only where the life of each begins and ends. The index so grows with the pages
//! that changed and not with the changes.

use hashbrown::HashMap;
use millpond_base::{Lsn, PageId};

/// What of the log is about a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Life {
    /// Start of the record with the page's last image.
    pub image: Lsn,
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
        let former = self.lives.insert(page, Life { image: at, last: at });
        debug_assert!(former.is_none_or(|life| life.last <= at), "the log is read in order");
    }

    /// The record at `at` is about `page`; of no interest if all of it has not been seen yet.
    #[inline]
    pub fn change(&mut self, page: PageId, at: Lsn) {
        if let Some(life) = self.lives.get_mut(&page) {
            debug_assert!(life.image <= life.last, "a page's life begins with its image");
            debug_assert!(life.last <= at, "the log is read in order");
            life.last = at;
        }
    }

    /// `page` is free.
    pub fn free(&mut self, page: PageId) {
        self.lives.remove(&page);
    }

    /// What is about `page`.
    #[inline]
    pub fn get(&self, page: PageId) -> Option<Life> {
        self.lives.get(&page).copied()
    }

    /// Number of pages.
    pub fn len(&self) -> usize {
        self.lives.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lives.is_empty()
    }

    /// The pages, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (PageId, Life)> + '_ {
        self.lives.iter().map(|(&page, &life)| (page, life))
    }

    /// Where the first of the lives begins.
    pub fn start(&self) -> Option<Lsn> {
        self.lives.values().map(|life| life.image).min()
    }

    /// The same for some of the pages.
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
