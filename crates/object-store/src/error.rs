//! Errors of opening a cache.

use millpond_device::{DeviceError, OpenFileError};
use millpond_tier::TierError;

use crate::options::PART_BYTES;

/// A cache that cannot be opened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenCacheError {
    /// The part size is not allowed.
    #[error(
        "parts of {bytes} bytes: a part is a power of two from {} to {} bytes",
        PART_BYTES.start(),
        PART_BYTES.end()
    )]
    Part {
        /// The requested size.
        bytes: u32,
    },
    /// The policy does not exist, or does not work in a second tier.
    #[error("{0}")]
    Policy(String),
    /// The cache's file cannot be opened, or another process has it.
    #[error("the cache's file cannot be opened: {0}")]
    File(OpenFileError),
    /// The cache's device failed.
    #[error("the cache's file cannot be used: {0}")]
    Device(DeviceError),
    /// The cache's file has no room, or it holds something else.
    #[error("{0}")]
    Tier(TierError),
}

impl From<TierError> for OpenCacheError {
    fn from(error: TierError) -> OpenCacheError {
        OpenCacheError::Tier(error)
    }
}
