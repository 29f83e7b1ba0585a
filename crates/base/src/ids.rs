//! Ids of pages, frames, log positions and moments.

use std::fmt;

/// Logical time of a replacement policy: references or evictions since the run began, according to
/// the policy's `TickSource`. Wraps at 2³²; differences are taken with wrapping arithmetic.
pub type Tick = u32;

/// Identifies a page of the store, resident or not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PageId(pub u64);

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Identifies a buffer frame: a dense index below the number of frames.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FrameId(pub u32);

impl FrameId {
    /// The value that names no frame. A pool has fewer than 2³²−1 frames.
    pub const NONE: FrameId = FrameId(u32::MAX);

    /// Returns the frame as an index into a per-frame array.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Log sequence number: a position in the log, in bytes. Traces carry it where it is known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Lsn(pub u64);
