//! A block device of bytes over a [`Device`](millpond_device::Device): requests of any
//! offset and length become blocks, which are the pages of a second tier.

mod backing;
mod error;
mod extents;
mod open;
mod ranges;
mod requests;
mod room;
mod syncs;
mod zeros;

pub use error::{OpenVolumeError, VolumeError};
pub use open::{CacheSpec, VolumeSpec};
pub use requests::{BLOCK_BYTES, Volume, VolumeCounts};
pub use room::Room;
