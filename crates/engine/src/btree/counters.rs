//! Counters of structural changes. Operations that leave the structure alone do not touch them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The counters of an open tree.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    leaf_splits: AtomicU64,
    inner_splits: AtomicU64,
    leaf_merges: AtomicU64,
    inner_merges: AtomicU64,
    grown: AtomicU64,
    shrunk: AtomicU64,
    shifts: AtomicU64,
    loosened: AtomicU64,
}

/// Numbers of structural changes of a tree since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Number of leaf splits.
    pub leaf_splits: u64,
    /// Number of splits of inner nodes.
    pub inner_splits: u64,
    /// Number of leaves merged into a neighbour and freed.
    pub leaf_merges: u64,
    /// Number of inner nodes merged into a neighbour and freed.
    pub inner_merges: u64,
    /// Number of levels added at the root.
    pub grown: u64,
    /// Number of levels removed at the root.
    pub shrunk: u64,
    /// Number of full leaves that shared their entries with a neighbour instead of being split.
    pub shifts: u64,
    /// Approximate number of bytes that became free in leaves, by splits in the middle and by
    /// removals: the possible gain of a background merge, if no inserts fill them.
    pub loosened: u64,
}

impl Tally {
    /// Returns the present values.
    pub(crate) fn counters(&self) -> Counters {
        Counters {
            leaf_splits: self.leaf_splits.load(Relaxed),
            inner_splits: self.inner_splits.load(Relaxed),
            leaf_merges: self.leaf_merges.load(Relaxed),
            inner_merges: self.inner_merges.load(Relaxed),
            grown: self.grown.load(Relaxed),
            shrunk: self.shrunk.load(Relaxed),
            shifts: self.shifts.load(Relaxed),
            loosened: self.loosened.load(Relaxed),
        }
    }

    /// Counts a split.
    pub(crate) fn split(&self, leaf: bool) {
        if leaf { &self.leaf_splits } else { &self.inner_splits }.fetch_add(1, Relaxed);
    }

    /// Counts `pages` nodes that were merged into others.
    pub(crate) fn merged(&self, leaf: bool, pages: u64) {
        if leaf { &self.leaf_merges } else { &self.inner_merges }.fetch_add(pages, Relaxed);
    }

    /// Counts bytes that became free in leaves.
    pub(crate) fn loosened(&self, bytes: u64) {
        self.loosened.fetch_add(bytes, Relaxed);
    }

    /// Counts a level added at the root.
    pub(crate) fn grown(&self) {
        self.grown.fetch_add(1, Relaxed);
    }

    /// Counts a level removed at the root.
    pub(crate) fn shrunk(&self) {
        self.shrunk.fetch_add(1, Relaxed);
    }

    /// Counts a full leaf that shared its entries with a neighbour.
    pub(crate) fn shifted(&self) {
        self.shifts.fetch_add(1, Relaxed);
    }
}
