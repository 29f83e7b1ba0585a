//! LRU, CLOCK, LRU-K and 2Q.

use std::collections::HashMap;

use crate::model::Outcome;

use super::twin::{Twin, missed, remove};

/// LRU: pages in the order of their last references.
pub struct LruTwin {
    pub frames: usize,
    pub pages: Vec<u64>,
}

impl Twin for LruTwin {
    fn reference(&mut self, page: u64, _: bool) -> Outcome {
        let was_there = remove(&mut self.pages, page);
        let is_full = !was_there && self.pages.len() == self.frames;
        let victim = is_full.then(|| self.pages.remove(0));
        self.pages.push(page);
        if was_there { Outcome::Hit } else { missed(victim) }
    }
}

/// CLOCK: a ring of pages with a bit each.
pub struct ClockTwin {
    pub frames: usize,
    /// A page enters with its bit on.
    pub enters_on: bool,
    pub ring: Vec<(u64, bool)>,
    pub hand: usize,
}

impl Twin for ClockTwin {
    fn reference(&mut self, page: u64, _: bool) -> Outcome {
        if let Some(slot) = self.ring.iter_mut().find(|s| s.0 == page) {
            slot.1 = true;
            return Outcome::Hit;
        }
        if self.ring.len() < self.frames {
            self.ring.push((page, self.enters_on));
            return Outcome::Loaded;
        }
        while self.ring[self.hand].1 {
            self.ring[self.hand].1 = false;
            self.hand = (self.hand + 1) % self.frames;
        }
        let (victim, _) = std::mem::replace(&mut self.ring[self.hand], (page, self.enters_on));
        self.hand = (self.hand + 1) % self.frames;
        Outcome::Replaced(victim)
    }
}

/// LRU-K: backward K-distance by full lists of reference times.
pub struct LruKTwin {
    pub frames: usize,
    pub k: usize,
    /// References are known of pages that left, too.
    pub remembers: bool,
    /// Among pages with fewer than K references the first loaded is evicted, else the least recent.
    pub below_fifo: bool,
    pub now: u64,
    pub times: HashMap<u64, Vec<u64>>,
    /// Resident pages in the order of their loads.
    pub pages: Vec<u64>,
}

impl Twin for LruKTwin {
    fn reference(&mut self, page: u64, _: bool) -> Outcome {
        self.now += 1;
        let mut outcome = Outcome::Hit;
        if !self.pages.contains(&page) {
            let is_full = self.pages.len() == self.frames;
            outcome = missed(is_full.then(|| self.evict()));
            self.pages.push(page);
        }
        self.times.entry(page).or_default().push(self.now);
        outcome
    }
}

impl LruKTwin {
    fn evict(&mut self) -> u64 {
        // (fewer than K references first, then the K-th last one, or the order below K)
        let key = |(order, page): (usize, &u64)| {
            let times = &self.times[page];
            match times.len().checked_sub(self.k) {
                Some(kth_last) => (true, times[kth_last]),
                None if self.below_fifo => (false, order as u64),
                None => (false, *times.last().expect("a resident page was referenced")),
            }
        };
        let least = self.pages.iter().enumerate().min_by_key(|entry| key(*entry));
        let victim = *least.expect("a full pool").1;
        remove(&mut self.pages, victim);
        if !self.remembers {
            self.times.remove(&victim);
        }
        victim
    }
}

/// 2Q, full version; all lists newest last.
#[derive(Default)]
pub struct TwoQTwin {
    pub frames: usize,
    pub kin: usize,
    pub kout: usize,
    pub a1in: Vec<u64>,
    pub a1out: Vec<u64>,
    pub am: Vec<u64>,
}

impl Twin for TwoQTwin {
    fn reference(&mut self, page: u64, _: bool) -> Outcome {
        if remove(&mut self.am, page) {
            self.am.push(page);
            return Outcome::Hit;
        }
        if self.a1in.contains(&page) {
            return Outcome::Hit;
        }
        let was_remembered = remove(&mut self.a1out, page);
        let is_full = self.a1in.len() + self.am.len() == self.frames;
        let victim = is_full.then(|| self.reclaim());
        if was_remembered {
            self.am.push(page)
        } else {
            self.a1in.push(page)
        }
        missed(victim)
    }
}

impl TwoQTwin {
    fn reclaim(&mut self) -> u64 {
        if self.a1in.len() <= self.kin && !self.am.is_empty() {
            return self.am.remove(0);
        }
        let victim = self.a1in.remove(0);
        self.a1out.push(victim);
        if self.a1out.len() > self.kout {
            self.a1out.remove(0);
        }
        victim
    }
}
