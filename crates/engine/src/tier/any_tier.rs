//! A second tier of either kind.

use std::sync::Arc;

use crate::io::Device;
use crate::tier::counts::TierCounts;
use crate::tier::second_tier::SecondTier;
use crate::tier::write_back::BackTier;

/// A second tier.
#[derive(Clone, Debug)]
pub enum AnyTier {
    /// Writes go through.
    Through(Arc<SecondTier>),
    /// Writes stay.
    Back(Arc<BackTier>),
}

impl AnyTier {
    /// What it has done so far.
    pub fn counts(&self) -> TierCounts {
        match self {
            AnyTier::Through(tier) => tier.counts(),
            AnyTier::Back(tier) => tier.counts(),
        }
    }

    /// The tier as a device.
    pub fn device(&self) -> Arc<dyn Device> {
        match self {
            AnyTier::Through(tier) => tier.clone(),
            AnyTier::Back(tier) => tier.clone(),
        }
    }
}
