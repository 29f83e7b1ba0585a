//! Verification of a loaded page.
//!
//! Checksum and page id reveal a damaged page, not an outdated one: a device that loses a write
//! leaves the older version, which is sound. A loaded page is therefore verified against its parent
//! ([`Kind::verify_child`](crate::pool::Kind::verify_child)), under the parent's exclusive latch,
//! before it can be reached: by its loader, or by the thread that attaches a ready page. A page
//! that does not fit is dropped, and the operation fails with an error that names both pages. A
//! page that is free as of the end of the log fails in the same way. It holds its content from the
//! time when it was freed, and belonged to its parent then.
//!
//! With a page table, a page can be reached as soon as it is loaded, even if its parent is no
//! longer in memory. A pool that waited for the parent would be of another kind than the one that
//! is compared with ours. A page that was loaded without its parent is marked, and verified by the
//! first thread that finds it. A page that does not fit stays marked, and is not read, until it is
//! evicted.

use std::ptr::NonNull;

use millpond_base::PageId;

use crate::page::{PageHeader, PageType};
use crate::pool::error::PoolError;
use crate::pool::frame::FrameHeader;
use crate::pool::jump::{Jump, Try};
use crate::pool::kind::{ANCHOR_STAMP, ANCHOR_SWIP, NoSwips};
use crate::pool::memory::frames::Frames;
use crate::pool::options::PoolStrategy;
use crate::pool::swip::Swip;
use crate::pool::translation::translation::{Place, Translation};

impl<M: PoolStrategy> Translation<M> {
    /// Checks that all swips of a page from storage are evicted, and refer to pages that can exist.
    /// A pointer would be followed.
    pub(super) fn verify(
        &self,
        frames: &Frames,
        frame: NonNull<FrameHeader>,
        page: PageId,
    ) -> Result<(), PoolError> {
        let view = frames.view(frame);
        let Some(kind) = self.kinds().of(view) else { return Ok(()) };
        let pages = self.pages();
        let mut bad = None;
        kind.swips(view, &mut |at| {
            let word = Swip(view.u64(at));
            if !word.is_evicted() || word.page().0 >= pages {
                bad = Some(at);
            }
            bad.is_none()
        });
        match bad {
            None => Ok(()),
            Some(at) => {
                self.distrust(page);
                let what = format!("the reference at byte {at} leads to no page of the store");
                Err(PoolError::Corrupt { page, what })
            }
        }
    }

    /// Verifies a page that was loaded without its parent, and found by the page table. The parent
    /// is latched exclusively by this thread.
    #[cold]
    pub(crate) fn verify_found(
        &self,
        frames: &Frames,
        parent: NonNull<FrameHeader>,
        at: usize,
        frame: NonNull<FrameHeader>,
        page: PageId,
        is_free: impl FnOnce() -> bool,
    ) -> Try<()> {
        debug_assert!(
            frames.header(parent).latch.is_exclusive(),
            "a child is verified below its parent"
        );
        let header = frames.header(frame);
        if !header.latch.try_exclusive() {
            return Err(Jump::Restart);
        }
        let is_it = header.page() == Some(page)
            && Swip(frames.view(parent).u64(at)) == Swip::evicted(page)
            && self.knows_swips_of(frames, parent);
        let result = match is_it {
            true => self.fits(frames, frame, page, (parent, at), is_free).map_err(Jump::failed),
            false => {
                Err(self.kinds().all_registered().map_or_else(Jump::failed, |()| Jump::Restart))
            }
        };
        if result.is_ok() {
            header.set_unverified(false);
        }
        header.latch.release_unchanged();
        result
    }

    /// Checks that a loaded page fits the page that refers to it. `is_free` returns whether the log
    /// knows that the page is free.
    #[inline(never)]
    pub(crate) fn fits(
        &self,
        frames: &Frames,
        frame: NonNull<FrameHeader>,
        page: PageId,
        place: Place,
        is_free: impl FnOnce() -> bool,
    ) -> Result<(), PoolError> {
        let (parent, at) = place;
        let (above, view) = (frames.view(parent), frames.view(frame));
        let mut result =
            self.kinds().of(above).map_or(Ok(()), |kind| kind.verify_child(above, at, view));
        if PageHeader::type_in(above) == PageType::ANCHOR && result.is_ok() {
            let stamp = above.u64(at + ANCHOR_STAMP - ANCHOR_SWIP);
            result = match (self.kinds().of(view), stamp) {
                (kind, 0) => kind.map_or(Ok(()), |kind| kind.verify_root(view)),
                (kind, stamp) => kind.unwrap_or(&NoSwips).verify_stamp(view, stamp),
            };
        }
        if result.is_ok() && is_free() {
            // With two pages of one id, one would overwrite the other.
            result = Err("it is free".to_string());
        }
        if result.is_err() {
            self.distrust(page);
        }
        let parent = frames.header(parent).page();
        result.map_err(|what| PoolError::Misfit { page, parent, what })
    }
}
