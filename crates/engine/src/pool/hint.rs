//! Page hints remember the frame in which a thread last held a page, so that the thread need not
//! descend to the page again.
//!
//! A hint promises nothing. It names a frame, the page in it and the version of its latch, which
//! grows whenever the page changes or leaves (invariant 6 of the pool). A page that is found at the
//! same version is therefore unchanged, byte for byte, and is at the same place in its structure.
//! Only a page in memory and out of the cooling stage is found: everything else is left to a
//! descent, which notifies the policy.

use millpond_base::{FrameId, PageId};

use crate::pool::frame::{FrameHeader, State};

/// The frame in which a page was found, and the page's version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageHint {
    frame: FrameId,
    page: PageId,
    version: u64,
}

impl PageHint {
    /// Returns a hint for the page in the frame of `header`, when its latch has `version`.
    #[inline]
    pub(in crate::pool) fn at(header: &FrameHeader, version: u64) -> Option<PageHint> {
        Some(PageHint { frame: header.id(), page: header.page()?, version })
    }

    /// Returns whether `other` names the same page in the same frame.
    #[inline]
    pub fn is_of_page_of(self, other: PageHint) -> bool {
        (self.frame, self.page) == (other.frame, other.page)
    }

    /// Returns the frame that held the page.
    #[inline]
    pub(in crate::pool) fn frame(self) -> FrameId {
        self.frame
    }

    /// Returns whether the frame of `header` still holds the page, unchanged and reachable.
    #[inline]
    pub(in crate::pool) fn fits(self, header: &FrameHeader) -> bool {
        header.latch.version_held() == self.version
            && header.page() == Some(self.page)
            && header.state() == State::Hot
            && !header.is_unverified()
    }
}
