//! Block devices below a store: files, memory, and simulated drives for tests.
//!
//! A [`Device`] reads, writes and syncs aligned blocks at byte offsets, several requests at once.
//! [`FileDevice`] is a file or a block device, accessed by io_uring or system calls, with direct
//! I/O where the file system allows it. Nothing here knows pages, a log or a policy.
#![deny(missing_docs)]

mod beside;
pub mod buffer;
pub mod device;
pub mod error;
pub mod file;
pub mod memory;
pub mod overlay;
mod process;
#[cfg(feature = "simulated")]
pub mod simulated;

pub use beside::{beside, real_path};
pub use buffer::{AlignedBuffer, BUFFER_ALIGNMENT};
pub use device::{Alignment, Device, ReadRequest, Tag, WriteRequest};
pub use error::{DeviceError, Errno, OpenFileError, Operation, kind_of};
pub use file::new_file::open_above_standard;
pub use file::{FileDevice, FileOptions, Submission};
pub use memory::MemoryDevice;
pub use overlay::OverlayDevice;
pub use process::{Life, Process};
#[cfg(feature = "simulated")]
pub use simulated::faulty::{Faults, FaultyDevice};
#[cfg(feature = "simulated")]
pub use simulated::plug::{Aim, Fault};
#[cfg(feature = "simulated")]
pub use simulated::power::PowerSupply;
#[cfg(feature = "simulated")]
pub use simulated::read_faults::{Misread, ReadFault, ReadFaultDevice, ReadFaults};
#[cfg(feature = "simulated")]
pub use simulated::slow::{SlowDevice, SlowProfile};
