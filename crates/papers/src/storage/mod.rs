//! Storage below a simulated first tier, in virtual time: a disk with an arm and a rotation, a
//! RAID-5 array with a write-back cache, an operating system's file cache, and the clients, page
//! cleaners and syncs that use them (li 4.4).
//!
//! The model is deterministic: the same requests take the same time on every machine.

mod actor;
mod array;
mod device;
mod disk;
mod file_cache;
mod meter;
mod queue;
mod raid;
mod request;
mod single;
mod system;

pub use array::{Array, ArraySpec};
pub use device::Device;
pub use disk::{Disk, DiskSpec};
pub use file_cache::FileCache;
pub use meter::Meter;
pub use queue::{Elevator, Queue};
pub use raid::{Part, Raid, StripeWrite};
pub use request::{Nanos, Request, SECTOR, merged};
pub use single::Single;
pub use system::{Requests, System, SystemOptions, SystemStat};
