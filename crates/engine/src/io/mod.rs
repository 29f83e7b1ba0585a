//! Devices, submission engines and the page store.

mod allocation;
mod back_mark;
mod batch;
mod beside;
pub mod buffer;
pub mod copy;
pub mod counts;
mod creation;
pub mod device;
pub mod error;
pub mod file;
mod map_write;
pub mod memory;
mod open;
pub mod overlay;
mod placement;
mod process;
mod recover;
mod shrink;
pub mod simulated;
mod spill;
mod spill_storage;
pub mod store;
pub mod store_error;
mod transfer;

pub use back_mark::{BackMark, MARK_BYTES};
pub use batch::{PageRead, PageWrite};
pub use beside::{beside, real_path};
pub use buffer::{AlignedBuffer, BUFFER_ALIGNMENT};
pub use counts::StoreCounts;
pub(crate) use creation::is_probe;
pub use device::{Alignment, Device, ReadRequest, Tag, WriteRequest};
pub(crate) use error::kind_of;
pub use error::{DeviceError, Errno, OpenFileError, Operation};
pub use file::new_file::open_above_standard;
pub use file::{FileDevice, FileOptions, Submission};
pub use map_write::NewMap;
pub(crate) use map_write::PlacesPin;
pub use memory::MemoryDevice;
pub(crate) use open::superblock_of;
pub use overlay::OverlayDevice;
pub use placement::map_read::{MapDamage, MapError};
pub use process::{Life, Process};
pub use simulated::faulty::{Faults, FaultyDevice};
pub use simulated::plug::{Aim, Fault};
pub use simulated::power::PowerSupply;
pub use simulated::read_faults::{Misread, ReadFault, ReadFaultDevice, ReadFaults};
pub use simulated::slow::{SlowDevice, SlowProfile};
pub use spill::{Blocks, Extent, SpillError, SpillFile, is_spill, spill_path};
pub use store::PageStore;
pub(crate) use store_error::named;
pub use store_error::{
    AllocateError, CloseError, CreateError, FreeError, OpenError, PackError, ReadError, SyncError,
    WriteError,
};
