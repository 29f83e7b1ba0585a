//! A second tier that writes back: a write goes to the cache, and later to storage.

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
