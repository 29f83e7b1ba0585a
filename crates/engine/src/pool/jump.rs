//! Early ends of a mini-transaction: restart, wait for a page, or fail.
//!
//! A data structure's operation is written as a mini-transaction that never blocks and never does
//! I/O. When it meets a conflict, or a page that is not in memory, it gives up with a [`Jump`]. All
//! its guards are dropped and its epoch is left; only then does the pool wait or read (leanstore
//! IV-G). Then the operation starts from scratch, with a new mini-transaction.

use std::ptr::NonNull;

use millpond_base::{Mark, PageId};

use crate::pool::error::PoolError;
use crate::pool::frame::FrameHeader;

/// The result of a step of a mini-transaction.
pub type Try<T> = Result<T, Jump>;

/// Reason why a mini-transaction cannot continue.
#[derive(Debug)]
pub enum Jump {
    /// Another thread changed bytes that were read, or holds a latch: start again.
    Restart,
    /// Something has to be done between mini-transactions first.
    Cold(Box<Cold>),
}

/// Work to do between two mini-transactions.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cold {
    /// A page must be read from storage.
    Load(Load),
    /// Number of free frames, and of page ids, needed before the next mini-transaction.
    Room(u32),
    /// The operation failed for good.
    Failed(PoolError),
}

/// Reads that were ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ordered {
    /// Number of reads.
    pub reads: u32,
    /// Number of swips, from the first on, whose pages are in memory or on their way.
    pub passed: usize,
}

/// A missing page and the location of its swip.
#[derive(Debug)]
pub struct Load {
    /// The missing page.
    pub page: PageId,
    /// The frame that held its swip; checked again under its latch.
    pub parent: NonNull<FrameHeader>,
    /// The page in that frame; `None` for an anchor.
    pub parent_page: Option<PageId>,
    /// Version of the parent's latch when the swip was read.
    pub version: u64,
    /// Byte offset of the swip in the parent's page.
    pub at: usize,
    /// The reference that missed.
    pub mark: Mark,
}

// `Load::parent` is an address to compare and to latch through the pool
// that returned it, whose frames are never unmapped while the pool lives.
impl Jump {
    /// Returns the error for a validated swip that refers to no page. Its structure never writes
    /// such a page.
    #[cold]
    pub(in crate::pool) fn null_swip(page: Option<PageId>, at: usize) -> Jump {
        let what = format!("no page is referred to at byte {at}");
        Jump::failed(PoolError::Corrupt { page: page.unwrap_or_default(), what })
    }

    /// Returns whether a page has to be read first.
    pub fn is_load(&self) -> bool {
        matches!(self, Jump::Cold(cold) if matches!(**cold, Cold::Load(_)))
    }

    /// Returns the jump for `frames` free frames, needed before the next mini-transaction.
    #[cold]
    pub fn room(frames: u32) -> Jump {
        Jump::Cold(Box::new(Cold::Room(frames)))
    }

    /// Returns the jump that fails the operation with `error`.
    #[cold]
    pub fn failed(error: PoolError) -> Jump {
        Jump::Cold(Box::new(Cold::Failed(error)))
    }

    /// Returns the jump for the page of an evicted swip.
    #[cold]
    pub fn load(load: Load) -> Jump {
        Jump::Cold(Box::new(Cold::Load(load)))
    }
}
