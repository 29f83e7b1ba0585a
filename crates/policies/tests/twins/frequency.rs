//! LRFU.

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
