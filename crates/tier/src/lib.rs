//! The second tier: a cache of pages on a fast device, above a slow one (li 1, 3).
//!
//! [`SecondTier`] writes through: everything in it is on the slow device, too. [`BackTier`] writes
//! back, with a journal. Both are a [`Device`](millpond_device::Device), and neither knows the
//! store: pages are ranges of bytes with a [`Tag`](millpond_device::Tag). A look-aside cache, whose
//! storage is not a device, uses [`Asked`] and [`Ticket`].
#![deny(missing_docs)]

mod any_tier;
mod aside;
mod back_layout;
mod back_mark;
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
pub use back_mark::{BackMark, MARK_BYTES};
pub use counts::TierCounts;
pub use error::TierError;
pub use options::TierOptions;
pub use residency::Residency;
pub use second_tier::{Identity, SecondTier};
pub use write_back::{BackDevice, BackTier};
