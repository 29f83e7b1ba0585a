//! A second tier, write-through or write-back.

use std::ops::Range;
use std::sync::Arc;

use millpond_device::Device;

use crate::counts::TierCounts;
use crate::residency::Residency;
use crate::second_tier::SecondTier;
use crate::write_back::BackTier;

/// A second tier.
#[derive(Clone, Debug)]
pub enum AnyTier {
    /// Writes go through to storage.
    Through(Arc<SecondTier>),
    /// Writes stay in the cache.
    Back(Arc<BackTier>),
}

impl AnyTier {
    /// Returns the tier's counters.
    pub fn counts(&self) -> TierCounts {
        match self {
            AnyTier::Through(tier) => tier.counts(),
            AnyTier::Back(tier) => tier.counts(),
        }
    }

    /// Returns the residency of `range` as consecutive runs that cover it: the end and the state of
    /// each run. Locks the tables once per page of the range.
    pub fn residency(&self, range: Range<u64>) -> Vec<(u64, Residency)> {
        match self {
            AnyTier::Through(tier) => tier.cache().residency(range),
            AnyTier::Back(tier) => tier.cache().residency(range),
        }
    }

    /// Delays the writes of copies of pages read, so that no reader waits for them.
    /// [`AnyTier::write_waiting`], which a background thread calls regularly, writes them, and so
    /// does the release of the tier. At most a few copies wait.
    pub fn let_copies_wait(&self) {
        match self {
            AnyTier::Through(tier) => tier.let_copies_wait(),
            AnyTier::Back(tier) => tier.let_copies_wait(),
        }
    }

    /// Writes the waiting copies if there are many; any number if `even_few`.
    pub fn write_waiting(&self, even_few: bool) {
        match self {
            AnyTier::Through(tier) => tier.write_waiting(even_few),
            AnyTier::Back(tier) => tier.write_waiting(even_few),
        }
    }

    /// Returns the tier as a device.
    pub fn device(&self) -> Arc<dyn Device> {
        match self {
            AnyTier::Through(tier) => tier.clone(),
            AnyTier::Back(tier) => tier.clone(),
        }
    }
}
