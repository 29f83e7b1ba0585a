//! Devices, submission engines and the page store.

mod beside;
mod bitmap;
pub mod buffer;
pub mod copy;
pub mod counts;
pub mod device;
pub mod error;
pub mod file;
mod lock;
pub mod memory;
mod open;
pub mod overlay;
mod pause;
mod recover;
mod ring;
mod shrink;
pub mod simulated;
mod spill;
pub mod store;
pub mod store_error;

pub use beside::{beside, real_path};
pub use buffer::AlignedBuffer;
pub use counts::StoreCounts;
pub use device::{Alignment, Device, ReadRequest, WriteRequest};
pub use error::{DeviceError, Errno, OpenFileError, Operation};
pub use file::{FileDevice, FileOptions, Submission};
pub use memory::MemoryDevice;
pub use overlay::OverlayDevice;
pub use simulated::faulty::{Faults, FaultyDevice};
pub use simulated::power::{Aim, Fault, PowerSupply};
pub use simulated::read_faults::{Misread, ReadFault, ReadFaultDevice, ReadFaults};
pub use simulated::slow::{SlowDevice, SlowProfile};
pub use spill::{Blocks, Extent, SpillError, SpillFile, spill_path};
pub use store::{PageRead, PageStore, PageWrite};
pub use store_error::{
    AllocateError, CloseError, CreateError, FreeError, OpenError, ReadError, SyncError, WriteError,
};
