//! The pages of a trace, numbered by first appearance, with their reference counts.

use hashbrown::HashMap;

/// Pages seen so far.
#[derive(Default)]
pub(crate) struct Pages {
    numbers: HashMap<u64, u32>,
    counts: Vec<u64>,
}

impl Pages {
    /// Counts a reference; returns the page's number, and `true` if the page is new.
    ///
    /// Returns `None` if there are 2³² pages already; no such trace fits into memory.
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

    /// Returns the number of distinct pages.
    pub(crate) fn len(&self) -> usize {
        self.counts.len()
    }

    /// Returns the number of pages with more than `share` of `references`.
    pub(crate) fn hotter_than(&self, share: f64, references: u64) -> u64 {
        let least = share * references as f64;
        self.counts.iter().filter(|c| **c as f64 > least).count() as u64
    }

    /// Returns the references to the `n` most referenced pages.
    pub(crate) fn top(&self, n: usize) -> u64 {
        let mut counts = self.counts.clone();
        if counts.len() > n {
            counts.select_nth_unstable_by(n, |a, b| b.cmp(a));
            counts.truncate(n);
        }
        counts.iter().sum()
    }
}
