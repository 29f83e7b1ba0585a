//! The device over a file: opening and locking it, I/O by system calls or io_uring, and
//! syncing parts of it.

pub mod file_device;
pub mod file_open;
mod lock;
mod range_sync;
mod ring;

pub use file_device::FileDevice;
pub use file_open::{FileOptions, Submission};
