//! Usage counts with weights by the page's place in its tree, shared by the DGCLOCKs.

use millpond_base::Mark;
use millpond_base::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::sweep::CountOn;
use super::usage_clock::Usage;
use crate::contract::Access;

/// Maximum of counts, so that none can overflow.
pub const COUNT_MAX: u32 = 1 << 30;

config! {
    /// Weights by type, for both DGCLOCKs.
    pub struct TypedUsageConfig {
        /// F of a page outside B-trees: the count of a page that was just loaded.
        f: u32 = 25, in 0..=COUNT_MAX;
        /// F of a root.
        f_root: u32 = 25, in 0..=COUNT_MAX;
        /// F of a root's child.
        f_root_1: u32 = 10, in 0..=COUNT_MAX;
        /// F of deeper pages.
        f_deep: u32 = 5, in 0..=COUNT_MAX;
        /// R of a page outside B-trees: a reference adds it to the count, or sets the count to it.
        r: u32 = 5, in 0..=COUNT_MAX;
        /// R of a root.
        r_root: u32 = 5, in 0..=COUNT_MAX;
        /// R of a root's child.
        r_root_1: u32 = 2, in 0..=COUNT_MAX;
        /// R of deeper pages.
        r_deep: u32 = 1, in 0..=COUNT_MAX;
        /// S: each pass of the hand subtracts it.
        s: u32 = 1, in 1..=COUNT_MAX;
        /// Events that count as references.
        variant: CountOn = CountOn::FixFull;
    }
}

impl TypedUsageConfig {
    /// Returns the parameters of the hit path and the sweep.
    pub fn usage(&self) -> Usage<Weights> {
        let params = Weights {
            f: [self.f, self.f_root, self.f_root_1, self.f_deep],
            r: [self.r, self.r_root, self.r_root_1, self.r_deep],
        };
        Usage { params, step: self.s, variant: self.variant }
    }
}

/// Returns the index of a page's weight among the four.
#[inline(always)]
fn class_of(mark: Mark) -> u32 {
    match (mark.kind().is_btree(), mark.depth()) {
        (false, _) => 0,
        (true, 0) => 1,
        (true, 1) => 2,
        (true, _) => 3,
    }
}

/// F and R by type.
#[derive(Clone, Copy, Default, Debug)]
pub struct Weights {
    f: [u32; 4],
    r: [u32; 4],
}

/// A frame's count and its page's type.
#[derive(Default, Debug)]
pub struct TypedCount {
    /// The usage count.
    pub count: AtomicU32,
    class: AtomicU32,
}

zeros!(TypedCount { count, class });

impl TypedCount {
    /// Returns R of the page's type.
    #[inline(always)]
    pub fn r(&self, weights: &Weights) -> u32 {
        weights.r[self.class.load(Relaxed) as usize & 3]
    }

    /// Returns R of the type in this reference, which is the page's type from now on: a root
    /// that was split is a root no more.
    #[inline(always)]
    pub fn r_of(&self, weights: &Weights, access: &Access) -> u32 {
        let class = class_of(access.mark);
        if self.class.load(Relaxed) != class {
            self.class.store(class, Relaxed);
        }
        weights.r[class as usize & 3]
    }

    /// Records the load of a page.
    #[inline(always)]
    pub fn reset(&self, weights: &Weights, access: &Access) {
        let class = class_of(access.mark);
        self.class.store(class, Relaxed);
        self.count.store(weights.f[class as usize & 3], Relaxed);
    }

    /// Verifies that the type is one of the four.
    ///
    /// # Errors
    /// The type is not one of the four.
    pub fn check(&self) -> Result<(), String> {
        match self.class.load(Relaxed) {
            class if class > 3 => Err(format!("invariant 2: its page is of type {class}")),
            _ => Ok(()),
        }
    }
}
