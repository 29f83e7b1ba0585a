//! The second tier: a large cache on a fast device, between the pool and a slow one (li 1, 3).

mod any_tier;
mod aside;
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
mod residency;
mod second_tier;
mod waiting;
mod write_back;

pub use any_tier::AnyTier;
pub use aside::{Answer, Asked, Ticket};
pub use counts::TierCounts;
pub use error::TierError;
pub use options::TierOptions;
pub use residency::Residency;
pub use second_tier::{Identity, SecondTier};
pub use write_back::{BackDevice, BackTier};
