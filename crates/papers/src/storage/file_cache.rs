//! An operating system's file cache: clean and dirty pages by their last use, written back in disk
//! order (li 4.4.1.2).
//!
//! A sync of the whole file writes all dirty pages, and a sync of ranges only the named ones. Both
//! write in ascending order, like Linux for a file's pages and the engine for its ranges. If more
//! pages are dirty than a limit, some are written in the background. The batch either ascends from
//! the end of the last batch, like Linux' flusher (`range_cyclic`), or takes the least recently
//! used pages in that order, like its reclaim when it meets dirty pages first. A page that was
//! returned for writing is clean until it is written to again.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound::{Excluded, Unbounded};

/// A page: its last use, and its dirty state.
#[derive(Clone, Copy)]
struct Kept {
    used: u64,
    is_dirty: bool,
}

/// File cache of one file.
pub struct FileCache {
    capacity: usize,
    limit: usize,
    batch: usize,
    kept: HashMap<u64, Kept>,
    clean: BTreeSet<(u64, u64)>,
    dirty: BTreeSet<u64>,
    /// Dirty pages by their last use, if background writes use that order.
    aged: Option<BTreeSet<(u64, u64)>>,
    uses: u64,
    /// Last page written in the background.
    cursor: Option<u64>,
}

impl FileCache {
    /// Creates an empty cache for `capacity` pages, of which `limit` may be dirty before batches of
    /// `batch` pages are written in the background. All three are at least 1.
    pub fn new(capacity: usize, limit: usize, batch: usize) -> FileCache {
        FileCache {
            capacity: capacity.max(1),
            limit: limit.max(1),
            batch: batch.max(1),
            kept: HashMap::new(),
            clean: BTreeSet::new(),
            dirty: BTreeSet::new(),
            aged: None,
            uses: 0,
            cursor: None,
        }
    }

    /// Makes an empty cache write the least recently used dirty pages in the background.
    #[must_use]
    pub fn by_last_use(mut self) -> FileCache {
        self.aged = Some(BTreeSet::new());
        self
    }

    /// Returns the number of cached pages.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Returns `true` if the cache holds no page.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Returns the number of dirty pages.
    pub fn dirty_pages(&self) -> usize {
        self.dirty.len()
    }

    /// Returns `true` if the cache holds a page, and counts that as a use.
    pub fn read(&mut self, page: u64) -> bool {
        self.uses += 1;
        let Some(kept) = self.kept.get_mut(&page) else { return false };
        let of_state = match kept.is_dirty {
            true => self.aged.as_mut(),
            false => Some(&mut self.clean),
        };
        if let Some(of_state) = of_state {
            of_state.remove(&(kept.used, page));
            of_state.insert((self.uses, page));
        }
        kept.used = self.uses;
        true
    }

    /// Adds a page that was read from the disk. If all pages are dirty, it is not kept.
    pub fn fill(&mut self, page: u64) {
        if self.read(page) || !self.make_room() {
            return;
        }
        self.kept.insert(page, Kept { used: self.uses, is_dirty: false });
        self.clean.insert((self.uses, page));
    }

    /// Writes a page into the cache. There is always room: if all pages are dirty, the cache holds
    /// one more until some are written back.
    pub fn write(&mut self, page: u64) {
        self.uses += 1;
        let now = Kept { used: self.uses, is_dirty: true };
        match self.kept.get(&page) {
            Some(kept) if !kept.is_dirty => {
                self.clean.remove(&(kept.used, page));
            }
            Some(kept) => {
                let used = kept.used;
                self.aged.iter_mut().for_each(|aged| {
                    aged.remove(&(used, page));
                });
            }
            None => {
                self.make_room();
            }
        }
        self.kept.insert(page, now);
        self.aged.iter_mut().for_each(|aged| {
            aged.insert((now.used, page));
        });
        self.dirty.insert(page);
    }

    /// Drops clean pages, least recently used first, until one more fits; returns `false` if none
    /// fits.
    fn make_room(&mut self) -> bool {
        while self.kept.len() >= self.capacity {
            let Some((_, page)) = self.clean.pop_first() else { return false };
            self.kept.remove(&page);
        }
        true
    }

    fn written(&mut self, page: u64) {
        self.dirty.remove(&page);
        if let Some(kept) = self.kept.get_mut(&page) {
            kept.is_dirty = false;
            self.clean.insert((kept.used, page));
            if let Some(aged) = &mut self.aged {
                aged.remove(&(kept.used, page));
            }
        }
    }

    /// Returns the dirty ones of `pages` in ascending order, and marks them clean.
    pub fn sync(&mut self, pages: &[u64]) -> Vec<u64> {
        let is_dirty = |page: &u64| self.dirty.contains(page);
        let mut due: Vec<u64> = pages.iter().copied().filter(is_dirty).collect();
        due.sort_unstable();
        due.dedup();
        due.iter().for_each(|page| self.written(*page));
        due
    }

    /// Returns the next batch for a background write, if too many pages are dirty.
    pub fn background(&mut self) -> Vec<u64> {
        if self.dirty.len() <= self.limit {
            return Vec::new();
        }
        let batch: Vec<u64> = match &self.aged {
            Some(aged) => aged.iter().take(self.batch).map(|(_, page)| *page).collect(),
            None => self.after_cursor(),
        };
        batch.iter().for_each(|page| self.written(*page));
        batch
    }

    fn after_cursor(&mut self) -> Vec<u64> {
        let ahead = match self.cursor {
            None => self.dirty.range(..),
            Some(cursor) => self.dirty.range((Excluded(cursor), Unbounded)),
        };
        let mut batch: Vec<u64> = ahead.take(self.batch).copied().collect();
        if batch.is_empty() {
            batch = self.dirty.iter().take(self.batch).copied().collect();
        }
        self.cursor = batch.last().copied();
        batch
    }
}

#[cfg(test)]
mod tests;
