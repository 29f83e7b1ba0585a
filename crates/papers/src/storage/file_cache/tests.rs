//! Tests of the file cache against a slow and obvious one.

use super::*;

/// Slow cache: all pages in the order of their use, with their state.
struct Slow {
    capacity: usize,
    limit: usize,
    batch: usize,
    pages: Vec<(u64, bool)>,
    cursor: Option<u64>,
    by_use: bool,
}

impl Slow {
    fn take(&mut self, page: u64) -> Option<bool> {
        let at = self.pages.iter().position(|(kept, _)| *kept == page)?;
        Some(self.pages.remove(at).1)
    }

    fn read(&mut self, page: u64) -> bool {
        let Some(is_dirty) = self.take(page) else { return false };
        self.pages.push((page, is_dirty));
        true
    }

    fn room(&mut self) -> bool {
        while self.pages.len() >= self.capacity {
            let Some(oldest) = self.pages.iter().position(|(_, dirty)| !dirty) else {
                return false;
            };
            self.pages.remove(oldest);
        }
        true
    }

    fn fill(&mut self, page: u64) {
        if !self.read(page) && self.room() {
            self.pages.push((page, false));
        }
    }

    fn write(&mut self, page: u64) {
        if self.take(page).is_none() {
            self.room();
        }
        self.pages.push((page, true));
    }

    fn dirty(&self) -> Vec<u64> {
        let dirty = self.pages.iter().filter(|(_, dirty)| *dirty);
        let mut all: Vec<u64> = dirty.map(|(page, _)| *page).collect();
        all.sort_unstable();
        all
    }

    fn clean(&mut self, pages: &[u64]) {
        for (page, dirty) in &mut self.pages {
            *dirty &= !pages.contains(page);
        }
    }

    fn sync(&mut self, pages: &[u64]) -> Vec<u64> {
        let due: Vec<u64> = self.dirty().into_iter().filter(|page| pages.contains(page)).collect();
        self.clean(&due);
        due
    }

    fn background(&mut self) -> Vec<u64> {
        let dirty = self.dirty();
        if dirty.len() <= self.limit {
            return Vec::new();
        }
        if self.by_use {
            let in_order = self.pages.iter().filter(|(_, dirty)| *dirty).map(|(page, _)| *page);
            let batch: Vec<u64> = in_order.take(self.batch).collect();
            self.clean(&batch);
            return batch;
        }
        let is_ahead = |page: &&u64| self.cursor.is_none_or(|cursor| **page > cursor);
        let mut batch: Vec<u64> = dirty.iter().filter(is_ahead).take(self.batch).copied().collect();
        if batch.is_empty() {
            batch = dirty.iter().take(self.batch).copied().collect();
        }
        self.cursor = batch.last().copied();
        self.clean(&batch);
        batch
    }
}

#[test]
fn it_does_what_the_slow_one_does() {
    for seed in 0..20 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (capacity, limit, batch) = (rng.usize(1..20), rng.usize(1..20), rng.usize(1..6));
        let (mut cache, by_use) = (FileCache::new(capacity, limit, batch), seed % 2 == 1);
        if by_use {
            cache = cache.by_last_use();
        }
        let mut slow = Slow { capacity, limit, batch, pages: Vec::new(), cursor: None, by_use };
        for _ in 0..2_000 {
            let page = rng.u64(0..40);
            match rng.u32(0..100) {
                0..30 => assert_eq!(cache.read(page), slow.read(page)),
                30..55 => {
                    cache.fill(page);
                    slow.fill(page);
                }
                55..85 => {
                    cache.write(page);
                    slow.write(page);
                }
                85..95 => {
                    let pages: Vec<u64> = (0..6).map(|_| rng.u64(0..40)).collect();
                    assert_eq!(cache.sync(&pages), slow.sync(&pages));
                }
                _ => assert_eq!(cache.background(), slow.background()),
            }
            assert_eq!((cache.len(), cache.dirty_pages()), (slow.pages.len(), slow.dirty().len()));
        }
    }
}

#[test]
fn a_page_is_written_once_for_all_its_writes_and_again_only_after_another() {
    let mut cache = FileCache::new(10, 10, 4);
    [5, 3, 5, 9].into_iter().for_each(|page| cache.write(page));
    assert_eq!(cache.sync(&[9, 5, 5, 7]), [5, 9]);
    assert_eq!(cache.sync(&[9, 5, 3]), [3]);
    assert!(cache.sync(&[9, 5, 3]).is_empty());
    cache.write(5);
    assert_eq!(cache.sync(&[3, 5]), [5]);
    assert!(cache.read(5) && !cache.read(7));
    assert_eq!((cache.len(), cache.is_empty(), cache.dirty_pages()), (3, false, 0));
}

#[test]
fn the_background_goes_round_in_ascending_order() {
    let mut cache = FileCache::new(10, 2, 2);
    (0..6).for_each(|page| cache.write(page * 10));
    assert_eq!(cache.background(), [0, 10]);
    cache.write(5);
    assert_eq!(cache.background(), [20, 30], "not back to 5 yet");
    assert_eq!(cache.background(), [40, 50]);
    assert!(cache.background().is_empty(), "one is dirty, two may be");
    [1, 2].into_iter().for_each(|page| cache.write(page));
    assert_eq!(cache.background(), [1, 2], "round");
}
