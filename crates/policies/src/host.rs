//! The host's side of an eviction: the calls that a policy may make, and their results.

use millpond_base::{FrameId, PageId};

/// Reason that a host refused a frame (gilbert 1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusalReason {
    /// The frame holds no page now: it is free, or loading. Samplers offer such frames. Lists do so
    /// only for a page that was dropped a moment ago, before
    /// [`Policy::forget`](crate::contract::Policy::forget) is called for it (rule 2).
    Absent,
    /// The frame's latch is held, or could not be acquired immediately. Temporary.
    Latched,
    /// Another thread has it pinned. Temporary.
    Pinned,
    /// The page is dirty; its write was started. Temporary: offer it again later.
    Dirty,
    /// The page can never be evicted: metadata, a root.
    Permanent,
    /// The frame changed while it was examined. Temporary.
    Changed,
}

impl RefusalReason {
    /// Returns `true` if offering the frame again later can succeed.
    pub fn is_temporary(self) -> bool {
        self != RefusalReason::Permanent
    }
}

/// The outcome of an offered victim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OfferOutcome {
    /// The page is evicted and the frame is free. Holds the page's id, for ghosts.
    Taken(PageId),
    /// The page stays resident.
    Refused(RefusalReason),
    /// The named frame must be evicted first: it holds a swizzled child of the offered page.
    EvictChildFirst(FrameId),
}

/// Outcome of asking to let a frame cool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cooled {
    /// The frame cools from now on; a hit revives it
    /// ([`Policy::revive`](crate::contract::Policy::revive)).
    Yes,
    /// The frame stays hot.
    Refused(RefusalReason),
    /// The named frame must cool first: it holds a swizzled child.
    CoolChildFirst(FrameId),
}

/// The state of a page, which decides if its eviction costs a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageState {
    /// Evicting it costs no write.
    Clean,
    /// The page has changed since it was last written.
    Dirty,
    /// The page is dirty, but a request to make it durable comes before its next change, so writing
    /// it now costs nothing extra (li 5.2.2). Only a simulator that knows the future returns this
    /// state.
    PreClean,
}

/// The host's side of an eviction: the questions and actions open to a policy while it chooses.
pub trait Host {
    /// Offers `frame` as the victim. Rules 2 and 3 of the module hold.
    fn offer(&mut self, frame: FrameId) -> OfferOutcome;

    /// Asks to let `frame` cool. A host of policies without
    /// [`HitHook::COOLS`](crate::hook::HitHook::COOLS) refuses every frame.
    fn cool(&mut self, _frame: FrameId) -> Cooled {
        Cooled::Refused(RefusalReason::Permanent)
    }

    /// Returns the state of the page in `frame`, which decides if its eviction costs a write;
    /// `Clean` for a frame without one.
    fn state(&self, _frame: FrameId) -> PageState {
        PageState::Clean
    }

    /// Returns `true` if a policy should stop early: the host has refused enough dirty frames that
    /// the request is met once they are written. Called after a refusal, if at all.
    #[inline(always)]
    fn has_enough(&self) -> bool {
        false
    }

    /// Announces that `frame` will be offered soon, so that the host may prefetch its data.
    #[inline(always)]
    fn will_offer(&self, _frame: FrameId) {}

    /// Counts `frames` examined frames, offered ones included; for statistics only. Called by
    /// policies that examine more frames than they offer.
    #[inline(always)]
    fn count_examined(&mut self, _frames: u32) {}

    /// Offers `frame` and follows [`OfferOutcome::EvictChildFirst`] down to a child that can be
    /// evicted. Returns the taken frame and its page. If that is another frame, `frame` stays
    /// resident. A policy whose order hits do not change must then not keep offering it, since a
    /// root always has children.
    ///
    /// # Errors
    /// The refusal, or [`RefusalReason::Latched`] if children are nested deeper than 8 levels. A
    /// child that can never be evicted is reported as [`RefusalReason::Pinned`]. Its parent can be
    /// evicted once the child is elsewhere, so the policy must not exclude the parent permanently.
    #[inline(always)]
    fn take(&mut self, frame: FrameId) -> Result<(FrameId, PageId), RefusalReason> {
        const DEPTH_MAX: usize = 8;
        let mut offered = frame;
        for _ in 0..DEPTH_MAX {
            match self.offer(offered) {
                OfferOutcome::Taken(page) => return Ok((offered, page)),
                OfferOutcome::Refused(RefusalReason::Permanent) if offered != frame => {
                    return Err(RefusalReason::Pinned);
                }
                OfferOutcome::Refused(why) => return Err(why),
                OfferOutcome::EvictChildFirst(child) => offered = child,
            }
        }
        Err(RefusalReason::Latched)
    }
}
