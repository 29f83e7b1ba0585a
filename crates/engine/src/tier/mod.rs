//! The second tier: a large cache on a fast device, between the pool and a slow one (li 1, 3).

mod cache;
mod counts;
mod directory;
mod error;
mod frames;
mod parts;
mod second_tier;

pub use counts::TierCounts;
pub use error::TierError;
pub use second_tier::{Identity, SecondTier, TierOptions};
