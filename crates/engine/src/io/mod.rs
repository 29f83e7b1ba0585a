//! Devices, submission engines and the page store.

mod bitmap;
pub mod buffer;
pub mod counts;
pub mod device;
pub mod error;
pub mod file;
mod lock;
pub mod memory;
mod open;
mod ring;
pub mod store;
pub mod store_error;

pub use buffer::AlignedBuffer;
pub use counts::StoreCounts;
pub use device::{Alignment, Device, ReadRequest, WriteRequest};
pub use error::{DeviceError, Errno, OpenFileError, Operation};
pub use file::{FileDevice, FileOptions, Submission};
pub use memory::MemoryDevice;
pub use store::{PageRead, PageStore, PageWrite};
pub use store_error::{
    AllocateError, CloseError, CreateError, FreeError, OpenError, ReadError, SyncError, WriteError,
};
