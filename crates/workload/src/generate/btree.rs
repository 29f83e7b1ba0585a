//! `btree`: paths from the root to a leaf, with the marks that a B-tree's pages carry.
//!
//! ```text
//! depth 0   page 0                      root     (kind B-tree inner)
//! depth 1   pages 1 …                   inner
//!   …       level by level, left to right
//! depth h   the last `leaves` pages     leaves   (kind B-tree leaf)
//! ```
//!
//! A lookup reads a path. An update writes its leaf at the end of the path. A scan follows a path
//! and continues through the following leaves, marked as a scan. Leaves are chosen by Zipf rank,
//! and a random permutation spreads the ranks over the leaves.

use millpond_base::{Mark, PageKind, Seed};

use super::params::Params;
use super::random::Random;
use super::stream::References;
use super::zipf::Zipf;
use super::zipf_ro::method;

/// The state of the generator.
pub(crate) struct Btree {
    zipf: Zipf,
    leaves: Vec<u32>,
    random: Random,
    fanout: u64,
    /// First page and number of pages of each level, from the root down.
    levels: Vec<(u64, u64)>,
    operations: u64,
    writes: f64,
    scans: f64,
    scan_leaves: u64,
    /// Current operation: its leaf, and the next level of its path.
    leaf: u64,
    level: usize,
    is_write: bool,
    scan_left: u64,
}

impl Btree {
    pub(crate) fn new(params: &Params, seed: Seed) -> Btree {
        let n = params.pages("leaves");
        let fanout = params.count("fanout").max(2);
        let levels = levels(u64::from(n), fanout);
        Btree {
            zipf: Zipf::new(n, params.real("theta"), method(params)),
            leaves: Random::new(seed.derive("order")).permutation(n),
            random: Random::new(seed.derive("operations")),
            fanout,
            level: levels.len(),
            levels,
            operations: params.count("operations"),
            writes: params.real("writes"),
            scans: params.real("scans"),
            scan_leaves: params.count("scan-leaves"),
            leaf: 0,
            is_write: false,
            scan_left: 0,
        }
    }

    /// Returns the page of the path at the current level, with its mark.
    fn step(&mut self) -> (u64, Mark) {
        let leaf_level = self.levels.len() - 1;
        let mut node = self.leaf;
        for _ in self.level..leaf_level {
            node /= self.fanout;
        }
        let is_leaf = self.level == leaf_level;
        let page = self.levels[self.level].0 + node;
        let kind = if is_leaf { PageKind::BTREE_LEAF } else { PageKind::BTREE_INNER };
        let op = if is_leaf && self.is_write { Mark::WRITE } else { Mark::READ };
        let mark = op.with_kind(kind, self.level.min(255) as u8);
        self.level += 1;
        (page, mark.with_scan(is_leaf && self.scan_left > 0))
    }

    /// Chooses the next operation; returns `false` if all are done.
    fn begin(&mut self) -> bool {
        if self.operations == 0 {
            return false;
        }
        self.operations -= 1;
        let rank = self.zipf.draw(&mut self.random);
        self.leaf = u64::from(self.leaves[rank as usize]);
        let kind = self.random.unit();
        let is_scan = kind < self.scans;
        self.is_write = !is_scan && self.random.chance(self.writes);
        self.scan_left = if is_scan { self.scan_leaves } else { 0 };
        self.level = 0;
        true
    }
}

impl References for Btree {
    fn next(&mut self) -> Option<(u64, Mark)> {
        if self.level == self.levels.len() {
            self.scan_left = self.scan_left.saturating_sub(1);
            let is_last = self.leaf + 1 == self.leaves.len() as u64;
            if self.scan_left > 0 && !is_last {
                self.leaf += 1;
                self.level -= 1;
            } else if !self.begin() {
                return None;
            }
        }
        Some(self.step())
    }
}

/// Returns the first page and the number of pages of each level of a tree with `leaves` leaves.
fn levels(leaves: u64, fanout: u64) -> Vec<(u64, u64)> {
    let mut widths = vec![leaves];
    let mut width = leaves;
    while width > 1 {
        width = width.div_ceil(fanout);
        widths.push(width);
    }
    widths.reverse();
    let mut first = 0;
    let mut levels = Vec::with_capacity(widths.len());
    for width in widths {
        levels.push((first, width));
        first += width;
    }
    levels
}
