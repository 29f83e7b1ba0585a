//! The access patterns of luan 3.2.1: `sequential`, `correlated`, `looping` and `temporal`.
//! (`probabilistic`, independent references with fixed probabilities, is `zipf-ro` with another
//! default.)

use std::collections::VecDeque;

use millpond_base::{Mark, Seed};

use super::params::Params;
use super::random::Random;
use super::stream::References;

/// A table read from end to end, once as a marked scan (`sequential`) or often (`looping`).
pub(crate) struct Looping {
    pages: u64,
    loops: u64,
    at: u64,
    mark: Mark,
}

impl Looping {
    pub(crate) fn new(params: &Params) -> Looping {
        let (pages, loops) = (params.count("pages"), params.count("loops"));
        Looping { pages, loops, at: 0, mark: Mark::READ }
    }

    /// Creates `sequential`, whose pages are never referenced again, so the scan mark is right.
    pub(crate) fn once(params: &Params) -> Looping {
        let mark = Mark::READ.with_scan(true);
        Looping { pages: params.count("pages"), loops: 1, at: 0, mark }
    }
}

impl References for Looping {
    fn next(&mut self) -> Option<(u64, Mark)> {
        if self.at == self.pages {
            self.at = 0;
            self.loops -= 1;
        }
        if self.loops == 0 {
            return None;
        }
        self.at += 1;
        Some((self.at - 1, self.mark))
    }
}

/// A table read forwards and backwards: the page read last is the next to be read again.
pub(crate) struct Temporal {
    pages: u64,
    at: u64,
    scans: u64,
}

impl Temporal {
    pub(crate) fn new(params: &Params) -> Temporal {
        let scans = params.count("rounds").saturating_mul(2);
        Temporal { pages: params.count("pages"), at: 0, scans }
    }
}

impl References for Temporal {
    fn next(&mut self) -> Option<(u64, Mark)> {
        if self.at == self.pages {
            self.at = 0;
            self.scans -= 1;
        }
        if self.scans == 0 {
            return None;
        }
        self.at += 1;
        // The total number of scans is even; a scan with an even number left goes forwards.
        let forwards = self.scans.is_multiple_of(2);
        let page = if forwards { self.at - 1 } else { self.pages - self.at };
        Some((page, Mark::READ))
    }
}

/// Selects and deletes of pages that are never used again. A delete finds its row and then
/// changes it, so it references its page several times within a short span.
///
/// With the same seed, the trace without deletes has the same pages in the same order, since
/// luan compares the misses of the two. Pages that are used once miss in any case. An index has
/// pages that a policy can lose, so an operation may begin with one of them.
pub(crate) struct Correlated {
    random: Random,
    /// Draws the pages of the index, which are numbered after those of the table.
    paths: Random,
    index: u64,
    /// `true` if the index page has been read, and the table page is next.
    is_found: bool,
    operations: u64,
    begun: u64,
    deletes: f64,
    repeats: u64,
    gap: usize,
    open: VecDeque<(u64, u64)>,
}

impl Correlated {
    pub(crate) fn new(params: &Params, seed: Seed) -> Correlated {
        Correlated {
            random: Random::new(seed),
            paths: Random::new(seed.derive("index")),
            index: params.count("index"),
            is_found: false,
            operations: params.count("operations"),
            begun: 0,
            deletes: params.real("deletes"),
            repeats: params.count("repeats"),
            gap: params.count("gap") as usize,
            open: VecDeque::new(),
        }
    }

    /// Returns the next reference of the operation that has waited longest.
    fn again(&mut self) -> Option<(u64, Mark)> {
        let (page, left) = self.open.pop_front()?;
        if left == 1 {
            return Some((page, Mark::WRITE));
        }
        self.open.push_back((page, left - 1));
        Some((page, Mark::READ))
    }
}

impl References for Correlated {
    fn next(&mut self) -> Option<(u64, Mark)> {
        if self.begun == self.operations || self.open.len() >= self.gap {
            return self.again();
        }
        if self.index > 0 && !self.is_found {
            self.is_found = true;
            let page = self.operations.saturating_add(self.paths.below(self.index));
            return Some((page, Mark::READ));
        }
        self.is_found = false;
        let page = self.begun;
        self.begun += 1;
        if self.random.chance(self.deletes) {
            self.open.push_back((page, self.repeats - 1));
        }
        Some((page, Mark::READ))
    }
}
