//! The device over a file: opening and locking it, I/O by system calls or io_uring, and
//! syncing parts of it.

pub mod file_device;
pub mod file_open;
mod gate;
mod lock;
pub mod new_file;
mod opening;
mod options;
mod range_sync;
#[cfg_attr(not(target_os = "linux"), path = "no_ring.rs")]
mod ring;
pub(crate) mod system;

pub use file_device::FileDevice;
pub use options::{FileOptions, Submission};
