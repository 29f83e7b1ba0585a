//! What can go wrong in the pool.

use millpond_base::PageId;

/// An error of the buffer pool.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// The operating system did not give the pool's memory.
    #[error("no memory for a pool of {bytes} bytes ({reason}): set a smaller memory size")]
    Memory {
        /// Bytes that were asked for.
        bytes: u64,
        /// What the operating system said.
        reason: String,
    },
    /// Pages are 512 bytes (for tests) to 64 KiB, and a power of two.
    #[error("a page cannot have {page_size} bytes: take a power of two from 4096 to 65536")]
    PageSize {
        /// Bytes that were asked for.
        page_size: u64,
    },
    /// Nothing can be evicted: every frame is in use at this moment, or dirty and not writable.
    #[error("all {frames} frames are in use and none could be evicted: set a larger memory size")]
    Full {
        /// Frames of the pool.
        frames: u32,
    },
    /// A page does not hold what its parent says.
    #[error("page {page} is not what its parent says ({what}): run `check` on the store")]
    Corrupt {
        /// The page.
        page: PageId,
        /// What was found instead.
        what: String,
    },
}
