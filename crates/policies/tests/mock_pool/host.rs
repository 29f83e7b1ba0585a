//! The pool as an evicting policy sees it: every call holds the frame's try-latch.

use millpond_base::sync::atomic::Ordering::SeqCst;

use millpond_base::{FrameId, PageId};
use millpond_policies::contract::{Cooled, HitHook, Host, OfferOutcome, PageState, RefusalReason};

use super::header::NO_PAGE;
use super::pool::Pool;

/// One eviction's view of the pool. What it took enters the free list only after `evict` returned,
/// so that an open policy has unlinked a frame before it is admitted again.
pub struct LiveHost<'a, T: HitHook> {
    pub pool: &'a Pool<T>,
    pub taken: Vec<FrameId>,
    /// Frames whose write was begun.
    pub writes: Vec<FrameId>,
}

impl<T: HitHook> Host for LiveHost<'_, T> {
    fn offer(&mut self, frame: FrameId) -> OfferOutcome {
        let header = &self.pool.headers[frame.index()];
        let Some(latched) = header.try_latch() else {
            return OfferOutcome::Refused(RefusalReason::Latched);
        };
        if !header.resident.load(SeqCst) {
            return OfferOutcome::Refused(RefusalReason::Absent);
        }
        if header.pins.load(SeqCst) > 0 {
            return OfferOutcome::Refused(RefusalReason::Pinned);
        }
        if let Some(child) = header.children.lock().expect("no thread panicked").first() {
            return OfferOutcome::EvictChildFirst(*child);
        }
        if header.permanent.load(SeqCst) {
            return OfferOutcome::Refused(RefusalReason::Permanent);
        }
        if header.dirty.load(SeqCst) {
            if !header.writing.swap(true, SeqCst) {
                self.writes.push(frame);
            }
            return OfferOutcome::Refused(RefusalReason::Dirty);
        }
        let page = self.pool.take_out(frame);
        assert_ne!(page, NO_PAGE, "a resident frame has a page");
        latched.changed();
        self.taken.push(frame);
        OfferOutcome::Taken(PageId(page))
    }

    fn cool(&mut self, frame: FrameId) -> Cooled {
        let header = &self.pool.headers[frame.index()];
        let Some(_latched) = header.try_latch() else {
            return Cooled::Refused(RefusalReason::Latched);
        };
        if !header.resident.load(SeqCst) {
            return Cooled::Refused(RefusalReason::Absent);
        }
        if header.pins.load(SeqCst) > 0 {
            return Cooled::Refused(RefusalReason::Pinned);
        }
        if header.permanent.load(SeqCst) {
            return Cooled::Refused(RefusalReason::Permanent);
        }
        let children = header.children.lock().expect("no thread panicked");
        let is_hot = |c: &&FrameId| !self.pool.headers[c.index()].cooling.load(SeqCst);
        if let Some(child) = children.iter().find(is_hot) {
            return Cooled::CoolChildFirst(*child);
        }
        if header.cooling.swap(true, SeqCst) {
            return Cooled::Refused(RefusalReason::Changed);
        }
        Cooled::Yes
    }

    fn state(&self, frame: FrameId) -> PageState {
        let header = &self.pool.headers[frame.index()];
        if header.dirty.load(SeqCst) { PageState::Dirty } else { PageState::Clean }
    }
}
