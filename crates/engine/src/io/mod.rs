//! The page store: pages of a store on a device, each at its place and with its checksum.

mod allocation;
mod batch;
pub mod copy;
pub mod counts;
mod creation;
mod map_write;
mod open;
mod placement;
mod recover;
mod shrink;
mod spill;
mod spill_storage;
pub mod store;
pub mod store_error;
mod transfer;

pub use batch::{PageRead, PageWrite};
pub use counts::StoreCounts;
pub(crate) use creation::is_probe;
pub use map_write::NewMap;
pub(crate) use map_write::PlacesPin;
pub(crate) use open::{store_file, superblock_of};
pub use placement::map_read::{MapDamage, MapError};
pub use spill::{Blocks, Extent, SpillError, SpillFile, is_spill, spill_path};
pub use store::PageStore;
pub(crate) use store_error::named;
pub use store_error::{
    AllocateError, CloseError, CreateError, FreeError, OpenError, PackError, ReadError, SyncError,
    WriteError,
};
