//! The second tier: a large cache on a fast device, between the pool and a slow one (li 1, 3).

mod any_tier;
mod back_layout;
mod cache;
mod copy;
mod counts;
mod directory;
mod dirty;
mod error;
mod frames;
mod options;
mod parts;
mod second_tier;
mod write_back;

pub use any_tier::AnyTier;
pub use counts::TierCounts;
pub use error::TierError;
pub use options::TierOptions;
pub use second_tier::{Identity, SecondTier};
pub use write_back::{BackDevice, BackTier};
