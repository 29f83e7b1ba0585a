//! FBR, LRFU and WATT.

use crate::model::Outcome;

use super::twin::{Twin, missed};

/// LRFU (IEEE ToC 2001): the combined value of each page, as of its last reference.
pub struct LrfuTwin {
    pub frames: usize,
    pub lambda: f64,
    /// References no farther apart than that are one.
    pub correlated: u64,
    pub now: u64,
    /// Page, value, time of the last reference.
    pub pages: Vec<(u64, f64, u64)>,
}

impl LrfuTwin {
    fn weight(&self, age: u64) -> f64 {
        0.5_f64.powf(self.lambda * age as f64)
    }

    fn evict(&mut self) -> u64 {
        let value = |p: &(u64, f64, u64)| p.1 * self.weight(self.now - p.2);
        let mut least = 0;
        for (i, page) in self.pages.iter().enumerate() {
            // Equal values: the least recent is evicted.
            let (this, that) = (value(page), value(&self.pages[least]));
            if this < that || this == that && page.2 < self.pages[least].2 {
                least = i;
            }
        }
        self.pages.remove(least).0
    }
}

impl Twin for LrfuTwin {
    fn reference(&mut self, page: u64, _: bool) -> Outcome {
        self.now += 1;
        if let Some(at) = self.pages.iter().position(|p| p.0 == page) {
            let (_, value, last) = self.pages[at];
            let age = self.now - last;
            let kept = if age <= self.correlated { value - 1.0 } else { value };
            self.pages[at] = (page, 1.0 + self.weight(age) * kept, self.now);
            return Outcome::Hit;
        }
        let is_full = self.pages.len() == self.frames;
        let victim = is_full.then(|| self.evict());
        self.pages.push((page, 1.0, self.now));
        missed(victim)
    }
}

/// The function by which a WATT twin makes one value of many subfrequencies.
#[derive(Clone, Copy)]
pub enum Combine {
    /// The highest.
    Max,
    /// The mean of the subfrequencies.
    Mean,
}

/// WATT (VLDB 2023, section 3) with a sample of all pages. Many pages can be worth the same, and
/// the paper does not define which of them is evicted: so this twin judges a victim instead of
/// naming one.
pub struct WattTwin {
    pub frames: usize,
    /// Evictions of one epoch.
    pub epoch: u32,
    pub write_weight: f64,
    pub dampening: f64,
    pub combine: Combine,
    pub now: u32,
    pub evicted: u32,
    /// Page, epochs of its last 8 accesses and of its last 4 writes, latest first.
    pub pages: Vec<(u64, Vec<u32>, Vec<u32>)>,
}

impl WattTwin {
    /// References `page`; `ours` is what the policy did. Says what is wrong with it.
    pub fn judge(&mut self, page: u64, is_write: bool, ours: Outcome) -> Result<(), String> {
        if let Some(at) = self.pages.iter().position(|p| p.0 == page) {
            self.log(at, is_write);
            return if ours == Outcome::Hit { Ok(()) } else { Err("it is a hit".into()) };
        }
        match ours {
            Outcome::Hit => return Err("it is a miss".into()),
            Outcome::Loaded if self.pages.len() < self.frames => {}
            Outcome::Loaded => return Err("the pool was full".into()),
            Outcome::Replaced(victim) => self.evict(victim)?,
        }
        self.pages.push((page, Vec::new(), Vec::new()));
        self.log(self.pages.len() - 1, is_write);
        Ok(())
    }

    fn evict(&mut self, victim: u64) -> Result<(), String> {
        let worth: Vec<f64> = self.pages.iter().map(|p| self.value(p)).collect();
        let least = worth.iter().copied().fold(f64::INFINITY, f64::min);
        let at = self.pages.iter().position(|p| p.0 == victim).ok_or("it was not there")?;
        // The policy reckons with fewer digits.
        if worth[at] > least * (1.0 + 1e-5) {
            return Err(format!("{victim} is worth {}, another page {least}", worth[at]));
        }
        self.pages.remove(at);
        self.evicted += 1;
        if self.evicted == self.epoch {
            (self.now, self.evicted) = (self.now + 1, 0);
        }
        Ok(())
    }

    fn log(&mut self, at: usize, is_write: bool) {
        let now = self.now;
        let (_, accesses, writes) = &mut self.pages[at];
        for (log, length, counts) in [(accesses, 8, true), (writes, 4, is_write)] {
            if counts && log.first() != Some(&now) {
                log.insert(0, now);
                log.truncate(length);
            }
        }
    }

    fn value(&self, (_, accesses, writes): &(u64, Vec<u32>, Vec<u32>)) -> f64 {
        let written = if writes.is_empty() || self.write_weight == 0.0 {
            0.0
        } else {
            self.write_weight * self.frequency(writes)
        };
        self.frequency(accesses) + written
    }

    fn frequency(&self, log: &[u32]) -> f64 {
        let subfrequency = |(i, stamp): (usize, &u32)| {
            let dampening = if i == 0 { self.dampening } else { 1.0 };
            match self.now - stamp {
                0 => f64::INFINITY,
                age => dampening * (i + 1) as f64 / f64::from(age),
            }
        };
        let all = log.iter().enumerate().map(subfrequency);
        match self.combine {
            Combine::Max => all.fold(0.0, f64::max),
            Combine::Mean => all.sum::<f64>() / log.len() as f64,
        }
    }
}

/// FBR (SIGMETRICS 1990): one list, most recent first, cut into three sections by position.
pub struct FbrTwin {
    pub frames: usize,
    pub new: usize,
    pub old: usize,
    pub c_max: u32,
    /// Above this average all counts are halved, rounded up.
    pub a_max: u32,
    pub list: Vec<(u64, u32)>,
}

impl FbrTwin {
    fn halve(&mut self) {
        let average_above = |list: &[(u64, u32)], most: u32| {
            list.iter().map(|p| u64::from(p.1)).sum::<u64>() > u64::from(most) * list.len() as u64
        };
        while average_above(&self.list, self.a_max) {
            self.list.iter_mut().for_each(|p| p.1 = p.1.div_ceil(2));
        }
    }
}

impl Twin for FbrTwin {
    fn reference(&mut self, page: u64, _: bool) -> Outcome {
        if let Some(at) = self.list.iter().position(|p| p.0 == page) {
            let (_, count) = self.list.remove(at);
            self.list.insert(0, (page, if at < self.new { count } else { count + 1 }));
            self.halve();
            return Outcome::Hit;
        }
        let victim = (self.list.len() == self.frames).then(|| {
            let old = (self.frames - self.old)..self.frames;
            // The last of the least: counts beyond c_max are alike.
            let least = old.rev().min_by_key(|at| self.list[*at].1.min(self.c_max + 1));
            self.list.remove(least.expect("one frame at least is old")).0
        });
        self.list.insert(0, (page, 1));
        self.halve();
        missed(victim)
    }
}
