//! A second tier that writes back: what is written is in the cache, and on storage later.

mod attach;
mod back_device;
mod back_tier;
mod bell;
mod destage;
mod format;
mod journal;
mod reading;
mod tables;
mod writing;

pub use back_device::BackDevice;
pub use back_tier::BackTier;
