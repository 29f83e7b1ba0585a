//! How an attempt at an operation ends early: restart, wait for a page, or fail.
//!
//! A data structure's operation is written as an *attempt* that never blocks and never does I/O.
//! When it meets a conflict, or a page that is not in memory, it gives up with a [`Jump`]; all its
//! guards are dropped, its epoch is left, and only then does the pool wait or read
//! (leanstore IV-G). Then the attempt starts from scratch.

use std::ptr::NonNull;

use millpond_base::{Mark, PageId};

use crate::pool::error::PoolError;
use crate::pool::frame::FrameHeader;

/// The result of a step of an attempt.
pub type Try<T> = Result<T, Jump>;

/// Why an attempt cannot go on.
#[derive(Debug)]
pub enum Jump {
    /// Somebody changed what was read, or holds a latch: start again.
    Restart,
    /// Something has to be done outside the attempt first.
    Cold(Box<Cold>),
}

/// What has to be done outside the attempt.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cold {
    /// A page must be read from storage.
    Load(Load),
    /// So many free frames, and page ids, are needed before the next attempt.
    Room(u32),
    /// The operation failed for good.
    Failed(PoolError),
}

/// Which page is missing, and where its swip was when that was found out.
#[derive(Debug)]
pub struct Load {
    /// The missing page.
    pub page: PageId,
    /// The frame that holds its swip; looked at again under its latch.
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
// that made it, whose frames are never unmapped while the pool lives.
impl Jump {
    /// Whether a page has to be read first.
    pub fn is_load(&self) -> bool {
        matches!(self, Jump::Cold(cold) if matches!(**cold, Cold::Load(_)))
    }

    /// The attempt needs `frames` free frames before it starts again.
    #[cold]
    pub fn room(frames: u32) -> Jump {
        Jump::Cold(Box::new(Cold::Room(frames)))
    }

    /// The operation fails with `error`.
    #[cold]
    pub fn failed(error: PoolError) -> Jump {
        Jump::Cold(Box::new(Cold::Failed(error)))
    }

    /// The page of an evicted swip is needed.
    #[cold]
    pub fn load(load: Load) -> Jump {
        Jump::Cold(Box::new(Cold::Load(load)))
    }
}
