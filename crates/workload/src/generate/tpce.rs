//! `tpce-like`: a synthetic stand-in for the TPC-E trace of watt 4.1.
//!
//! The original was recorded from Shore-MT and is unavailable. This one imitates the figures of
//! watt's table 2, and the shape of an index-bound OLTP benchmark's trace:
//!
//! - ten indexes whose roots are the ten hottest pages (30.4 % of all references), above
//!   fourteen hot inner pages (2.1 % each): 24 pages with more than 2 %;
//! - an operation reads a root, mostly one of its inner pages, then one or two of the pages below,
//!   which are Zipf-distributed (three quarters are leaves, one quarter holds rows);
//! - occasional references go to the next page that was never used (tables that grow), so that all
//!   pages occur by the end;
//! - writes go to pages below the hot ones only.
//!
//! Marks carry page kinds and depths: root 0, inner 1, leaf 2. Data pages are of kind other.

use millpond_base::{Mark, PageKind, Seed};

use crate::trace::TraceError;

use super::params::Params;
use super::random::Random;
use super::stream::References;
use super::zipf::{Zipf, ZipfMethod};

/// Share of each index's root among all references, and its number of hot inner pages.
const INDEXES: [(f64, u64); 10] = [
    (0.0430, 2),
    (0.0425, 2),
    (0.0422, 2),
    (0.0421, 2),
    (0.0240, 1),
    (0.0230, 1),
    (0.0225, 1),
    (0.0220, 1),
    (0.0215, 1),
    (0.0212, 1),
];
/// Share of each hot inner page.
const INNER: f64 = 0.021;
/// Roots and hot inner pages.
const HOT: u64 = 24;

/// The state of the generator.
pub(crate) struct Tpce {
    zipf: Zipf,
    order: Vec<u32>,
    random: Random,
    refs: u64,
    done: u64,
    /// Number of pages below the hot ones, and of those already used.
    cold_pages: u64,
    fresh: u64,
    roots: f64,
    write_chance: f64,
    /// Remainder of the current operation.
    index: usize,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Root,
    Inner,
    Below,
    Further,
}

impl Tpce {
    pub(crate) fn new(params: &Params, seed: Seed) -> Result<Tpce, TraceError> {
        let (pages, refs) = (params.pages("pages"), params.count("refs"));
        if refs / 4 < u64::from(pages) {
            return Err(TraceError::Options(format!(
                "tpce-like: refs={refs} is too few for pages={pages}: take at least {}",
                u64::from(pages) * 4
            )));
        }
        let cold = pages - HOT as u32;
        let roots: f64 = INDEXES.iter().map(|(share, _)| share).sum();
        let inner: f64 = INDEXES.iter().map(|(_, n)| *n as f64 * INNER).sum();
        let writes = params.real("writes");
        if writes > 0.3 {
            let why = "its hot pages are not written: at most 30 %";
            return Err(TraceError::Options(format!("tpce-like: writes={writes}: {why}")));
        }
        Ok(Tpce {
            zipf: Zipf::new(cold, params.real("theta"), ZipfMethod::Table),
            order: Random::new(seed.derive("order")).permutation(cold),
            random: Random::new(seed.derive("operations")),
            refs,
            done: 0,
            cold_pages: u64::from(cold),
            fresh: 0,
            roots,
            write_chance: writes / (1.0 - roots - inner),
            index: 0,
            stage: Stage::Root,
        })
    }

    /// Chooses an index by its share.
    fn choose_index(&mut self) {
        let mut u = self.random.unit() * self.roots;
        self.index = INDEXES.len() - 1;
        for (i, (share, _)) in INDEXES.iter().enumerate() {
            if u < *share {
                self.index = i;
                return;
            }
            u -= share;
        }
    }

    /// Returns a page below the hot ones: the next unused one if it is due, else one by Zipf rank.
    fn cold_page(&mut self) -> u64 {
        // Unused pages are consumed slightly faster than the trace, so that none is left at the
        // end.
        let due = (self.done as f64 / (self.refs as f64 * 0.99) * self.cold_pages as f64) as u64;
        if self.fresh < self.cold_pages && self.fresh <= due {
            self.fresh += 1;
            return HOT + u64::from(self.order[(self.cold_pages - self.fresh) as usize]);
        }
        let rank = self.zipf.draw(&mut self.random);
        HOT + u64::from(self.order[rank as usize])
    }

    /// Returns a reference to such a page. A page never changes its kind.
    fn cold(&mut self) -> (u64, Mark) {
        let page = self.cold_page();
        let write = self.random.chance(self.write_chance);
        let op = if write { Mark::WRITE } else { Mark::READ };
        let (kind, depth) =
            if page % 4 == 3 { (PageKind::OTHER, 0) } else { (PageKind::BTREE_LEAF, 2) };
        (page, op.with_kind(kind, depth))
    }

    fn inner_page(&mut self) -> u64 {
        let before: u64 = INDEXES[..self.index].iter().map(|(_, n)| n).sum();
        let own = INDEXES[self.index].1;
        INDEXES.len() as u64 + before + self.random.below(own)
    }

    /// Returns the chance that an operation of this index reads one of its hot inner pages.
    fn inner_chance(&self) -> f64 {
        let (root, n) = INDEXES[self.index];
        n as f64 * INNER / root
    }

    /// Returns the chance of a second reference below the hot pages; the first one is certain.
    fn further_chance(&self) -> f64 {
        let inner: f64 = INDEXES.iter().map(|(_, n)| *n as f64 * INNER).sum();
        (1.0 - self.roots - inner) / self.roots - 1.0
    }
}

impl References for Tpce {
    fn next(&mut self) -> Option<(u64, Mark)> {
        if self.done == self.refs {
            return None;
        }
        self.done += 1;
        loop {
            match self.stage {
                Stage::Root => {
                    self.choose_index();
                    self.stage = Stage::Inner;
                    let mark = Mark::READ.with_kind(PageKind::BTREE_INNER, 0);
                    return Some((self.index as u64, mark));
                }
                Stage::Inner => {
                    self.stage = Stage::Below;
                    let chance = self.inner_chance();
                    if self.random.chance(chance) {
                        let mark = Mark::READ.with_kind(PageKind::BTREE_INNER, 1);
                        return Some((self.inner_page(), mark));
                    }
                }
                Stage::Below => {
                    self.stage = Stage::Further;
                    return Some(self.cold());
                }
                Stage::Further => {
                    self.stage = Stage::Root;
                    let chance = self.further_chance();
                    if self.random.chance(chance) {
                        return Some(self.cold());
                    }
                }
            }
        }
    }
}
