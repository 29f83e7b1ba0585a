//! The pages of a trace, numbered by first appearance, and how often each was referenced.

use hashbrown::HashMap;

/// Pages seen so far.
#[derive(Default)]
pub(crate) struct Pages {
    numbers: HashMap<u64, u32>,
    counts: Vec<u64>,
}

impl Pages {
    /// Counts a reference; the page's number, and whether it is new.
    ///
    /// `None` when there are 2³² pages already: no such trace fits into memory.
    #[inline]
    pub(crate) fn touch(&mut self, page: u64) -> Option<(u32, bool)> {
        let fresh = u32::try_from(self.counts.len()).ok()?;
        let number = *self.numbers.entry(page).or_insert(fresh);
        if number == fresh {
            self.counts.push(1);
            return Some((number, true));
        }
        self.counts[number as usize] += 1;
        Some((number, false))
    }

    /// Number of distinct pages.
    pub(crate) fn len(&self) -> usize {
        self.counts.len()
    }

    /// Number of pages with more than `share` of `references`.
    pub(crate) fn hotter_than(&self, share: f64, references: u64) -> u64 {
        let least = share * references as f64;
        self.counts.iter().filter(|c| **c as f64 > least).count() as u64
    }

    /// References to the `n` pages that have most of them.
    pub(crate) fn top(&self, n: usize) -> u64 {
        let mut counts = self.counts.clone();
        if counts.len() > n {
            counts.select_nth_unstable_by(n, |a, b| b.cmp(a));
            counts.truncate(n);
        }
        counts.iter().sum()
    }
}
