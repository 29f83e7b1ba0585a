//! LRFU and WATT.

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
            // Equal values: the least recent goes.
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

/// How a WATT twin makes one value of many subfrequencies.
#[derive(Clone, Copy)]
pub enum Combine {
    /// The highest.
    Max,
    /// Their mean.
    Mean,
}

/// WATT (VLDB 2023, section 3) with a sample of all pages. Many pages can be worth the same, and
/// the paper does not say which of them goes: so this twin judges a victim instead of naming one.
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
