//! Systems without direct I/O, advice and syncs of ranges: files go through the page cache.

use std::fs::{File, Metadata};

use crate::device::Alignment;
use crate::error::Errno;

/// No flag opens a file for direct I/O.
pub(crate) const DIRECT: Option<i32> = None;

/// Returns `None`: direct I/O does not exist.
pub(crate) fn direct_alignment(_: &File) -> Option<Alignment> {
    None
}

/// Does nothing: advice does not exist.
pub(crate) fn expect_random_reads(_: &File) {}

/// Makes all written bytes durable: on a Mac, where `fsync` leaves them in the drive's cache, by
/// `F_FULLFSYNC`.
pub(crate) fn sync_data(file: &File) -> Result<(), Errno> {
    rustix::io::retry_on_intr(|| {
        #[cfg(target_vendor = "apple")]
        return rustix::fs::fcntl_fullfsync(file);
        #[cfg(not(target_vendor = "apple"))]
        return rustix::fs::fsync(file);
    })
    .map_err(Errno::from)
}

/// Returns `false`: syncs of ranges do not exist.
pub(crate) fn knows_ranges(_: &File) -> bool {
    false
}

/// Returns `None`: a list of locks does not exist.
pub(crate) fn place_in_locks(_: &Metadata) -> Option<String> {
    None
}

/// Returns `false`: wake-ups cannot be changed.
#[cfg(feature = "simulated")]
pub(crate) fn wake_punctually() -> bool {
    false
}
