//! Errors of the pool.

use millpond_base::PageId;
use millpond_device::DeviceError;

use crate::io::{AllocateError, WriteError};

/// An error of any type from the storage below the pool.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct StorageError(pub std::sync::Arc<dyn std::error::Error + Send + Sync>);

/// Names the referring page for messages.
fn parent_name(parent: Option<PageId>) -> String {
    match parent {
        Some(parent) => format!("page {parent}"),
        None => "the structure whose root it is".to_string(),
    }
}

/// An error of the buffer pool.
///
/// ```
/// # use millpond::{Db, Error, Options, error::PoolError};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let ponds = db.raw_tree("ponds")?;
/// ponds.put(b"mill", b"deep")?;
/// // A closure that looks at a page cannot wait for that page.
/// let nested = ponds.read(b"mill", |_| ponds.put(b"mill", b"dry"))?;
/// assert!(nested.is_some_and(|done| matches!(done, Err(Error::Pool(PoolError::Held { .. })))));
/// # Ok(()) }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// The operating system did not provide the pool's memory.
    #[error("no memory for a pool of {bytes} bytes ({reason}): set a smaller memory size")]
    Memory {
        /// Bytes that were asked for.
        bytes: u64,
        /// The operating system's message.
        reason: String,
    },
    /// Pages are 512 bytes (for tests) to 64 KiB, and a power of two.
    #[error("a page cannot have {page_size} bytes: take a power of two from 4096 to 65536")]
    PageSize {
        /// Bytes that were asked for.
        page_size: u64,
    },
    /// The log failed: records that were not durable by then never will be.
    #[error(transparent)]
    Log(#[from] crate::log::LogError),
    /// Nothing can be evicted: every frame is in use at this moment, or dirty and not writable.
    #[error("all {frames} frames are in use and none could be evicted: set a larger memory size")]
    Full {
        /// Frames of the pool.
        frames: u32,
    },
    /// An operation restarted again and again, because pages that it needs together were evicted as
    /// soon as they were loaded. Happens only where `attempts_max` is set.
    #[error(
        "an operation never had its pages in memory together in {attempts} attempts: choose another \
         policy, set a larger memory size, or set no limit"
    )]
    Starved {
        /// Number of attempts.
        attempts: u32,
    },
    /// A pool of this few frames cannot hold a path and a split at the same time.
    #[error("a pool of {frames} frames is too small: at least {least} are needed")]
    TooSmall {
        /// Frames asked for.
        frames: u32,
        /// Least number of frames.
        least: u32,
    },
    /// Dirty pages could not be latched for writing, because operations were running.
    #[error("{dirty} pages are still being changed: end all operations before closing")]
    Busy {
        /// Dirty pages that remain.
        dirty: u32,
    },
    /// The operation needs a page that this thread itself holds, in a closure that reads or changes
    /// a value in place. Also returned if two threads each need a page that the other holds in this
    /// way.
    #[error(
        "a page stayed latched, and this thread itself holds {pages} in closures that read or \
         change values in place: do this when they have returned"
    )]
    Held {
        /// Pages that such closures of this thread hold.
        pages: u32,
    },
    /// The allocator had no memory for a value that is read.
    #[error("no memory for a value of {bytes} bytes: read it piece by piece (`reader`)")]
    NoRoom {
        /// Bytes of the value.
        bytes: u64,
    },
    /// The check of the calling thread ended a long call, for example because of a signal.
    #[error("the call was interrupted; what it had changed so far stays, and nothing is half done")]
    Interrupted,
    /// The operating system could not start a thread.
    #[error("no background thread could be started ({reason})")]
    Thread {
        /// The operating system's message.
        reason: String,
    },
    /// The storage below failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// This pool cannot host the replacement policy.
    #[error("the policy does not fit this pool: {reason}")]
    Policy {
        /// The reason, in words.
        reason: String,
    },
    /// Pages of a type refer to others, and the pool cannot find the swips. It could neither evict
    /// the pages that they refer to nor write them.
    #[error(
        "pages of type {page_type} refer to other pages, and their swips cannot be found: register \
         their `Kind` (`Pool::register`) before the first of them is used"
    )]
    Unregistered {
        /// The type, by its number in the page header.
        page_type: u8,
    },
    /// A page that was read from storage does not fit the page that refers to it: level, owner,
    /// keys or place differ. Its checksum and id are right, so one of the two pages is an older
    /// version of itself: a write was lost. The page was not made reachable; all pages except those
    /// below it can be used as before.
    #[error(
        "page {page} does not fit {}, which refers to it ({what}): a write of one of them was \
         lost, or they are damaged; run `check` on the store, and restore a backup or `salvage`",
        parent_name(*parent)
    )]
    Misfit {
        /// The page.
        page: PageId,
        /// The page that refers to it; `None` if it is the root of its structure.
        parent: Option<PageId>,
        /// The mismatch, in words.
        what: String,
    },
    /// A page has content that its structure never writes: a reference to no page, say, or content
    /// that does not fit its parent.
    #[error("page {page} does not fit its parent ({what}): run `check` on the store")]
    Corrupt {
        /// The page.
        page: PageId,
        /// Description of the content that was found instead.
        what: String,
    },
}

impl PoolError {
    /// Returns the error of a failure of the storage.
    pub(crate) fn storage(error: impl std::error::Error + Send + Sync + 'static) -> PoolError {
        PoolError::Storage(StorageError(std::sync::Arc::new(error)))
    }

    /// Returns whether a disk was full.
    pub(crate) fn is_disk_full(&self) -> bool {
        let PoolError::Storage(error) = self else { return false };
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&*error.0);
        while let Some(error) = cause {
            let device = error.downcast_ref::<DeviceError>();
            let device = device.or_else(|| match error.downcast_ref()? {
                AllocateError::Grow(error) => Some(error),
                _ => None,
            });
            let device = device.or_else(|| match error.downcast_ref()? {
                WriteError::Device { error, .. }
                | WriteError::NoPlace(error)
                | WriteError::Map(error) => Some(error),
                _ => None,
            });
            if let Some(error) = device {
                return error.is_disk_full();
            }
            cause = error.source();
        }
        false
    }

    /// Returns whether one page is unreadable, corrupt or stale. Operations that do not need that
    /// page are unaffected.
    pub(crate) fn is_about_a_page(&self) -> bool {
        matches!(self, PoolError::Storage(_) | PoolError::Corrupt { .. } | PoolError::Misfit { .. })
    }
}
