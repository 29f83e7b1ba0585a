//! The policy contract: mutual guarantees of a replacement policy and its host.
//!
//! A policy has two halves. The *hot half* ([`HitHook`]) defines the effect of a hit on the frame's
//! own [`HitHook::Meta`]: a static function, through `&`, without a latch. The *cold half*
//! ([`Policy`], or [`OpenPolicy`] through `&self`) keeps order, hands and ghosts. It is called when
//! a page is admitted or evicted, and on every hit only if the policy needs that
//! ([`Hit::Central`]).
//!
//! The host (a simulator, a live pool) owns the page table, the frames and the free list. A policy
//! sees dense [`FrameId`]s and keys its ghosts by [`PageId`], so that one file serves every host.
//!
//! # Rules
//!
//! 1. A frame is *resident* for a policy from [`Policy::admit`] until the host returns
//!    [`OfferOutcome::Taken`] for it, or until [`Policy::forget`]; never both.
//! 2. [`Host::offer`] is called while the policy is borrowed, so a host never calls back into it.
//!    Revivals and drops during that time are delivered after `evict` returned. Until then the host
//!    refuses such a frame with [`RefusalReason::Absent`], which is no fault of the policy.
//! 3. A refusal leaves the frame resident. A policy unlinks only a taken frame, which is the frame
//!    that [`Host::take`] returns, not necessarily the offered one.
//! 4. [`Policy::hit`] is called for resident frames only; a host that batches hits checks first.
//! 5. [`Policy::miss`] is called once for each page that is about to be loaded, before `evict`.
//!    Ghosts are looked up there; its [`GhostHit`] is passed on to `evict` and `admit`. Several
//!    misses may be between `miss` and `admit` at once. A failed load loses the ghost that `miss`
//!    consumed.
//! 6. Ghosts are trimmed only after a frame was taken or admitted, never in anticipation of it.
//! 7. Frames are first handed out in ascending order, each for one page.
//! 8. On a load the host calls [`HitHook::reset`], then [`Policy::admit`], then, if the policy asks
//!    for unfix events, counts the end of the loading access as one.
//! 9. Every loop in `evict` examines at most [`EvictRequest::steps_max`] frames, whatever the host
//!    returns; a policy that gives up returns the number of frames taken so far.
//! 10. The same seed and the same calls give the same results.
//! 11. A frame is free again only after the call that released it returned: `evict` for a taken
//!     frame, `forget` for a dropped one. So a policy, including an open one, has unlinked a frame
//!     before the next page is admitted into it.
//! 12. A page can be hit, and its frame offered, only after `admit` returned. A hit or a revival is
//!     dropped if the page was evicted, or cools again, before the policy was notified: the host
//!     reads the frame's version again under the latch of its policy host.

use millpond_base::{FrameId, PageId, Tick};

use crate::config::Config;
pub use crate::frames::Frames;
pub use crate::hook::{
    Access, CentralHook, GhostHit, Hit, HitHook, HitOn, NEVER, NoHook, Screen, TickSource,
    TimedCentralHook,
};
pub use crate::host::{Cooled, Host, OfferOutcome, PageState, RefusalReason};
use crate::info::Info;
pub use crate::zeroed::Zeroed;

/// A request to evict: the number of frames to free, and the bound of the search.
#[derive(Clone, Copy, Debug)]
pub struct EvictRequest {
    /// Frames to free, at least 1.
    pub frames: u32,
    /// Frames that may be examined before giving up (rule 9). At least twice the pool's frames in a
    /// single-threaded host, so that a sweep that clears marks passes every frame again.
    pub steps_max: u32,
    /// The host's clock, selected by [`HitHook::TICK`].
    pub now: Tick,
    /// Page that needs the frame, with the [`GhostHit`] that [`Policy::miss`] returned for it;
    /// `None` if the host evicts ahead. The page belongs to the first frame of a batch.
    pub incoming: Option<(PageId, GhostHit)>,
}

/// The pool that a policy is created for.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Number of frames, at least 1.
    pub frames: u32,
    /// Approximate number of page ids, if they are dense (0, 1, 2, …), so that ghosts may be
    /// growing arrays; `None` if ids are arbitrary and ghosts must hash.
    pub pages_dense: Option<u64>,
    /// Seed of every random choice.
    pub seed: u64,
}

/// The common part of both kinds of cold half: name, types, construction, invariant check.
pub trait PolicySpec: Sized + Send + 'static {
    /// The policy's row in the catalog.
    const INFO: Info;
    /// `true` if the policy needs to know [`Access::next`].
    const NEEDS_FUTURE: bool = false;
    /// `true` if the policy draws from [`Shape::seed`]. If not, one run gives the result for every
    /// seed.
    const IS_RANDOM: bool = false;
    /// The hot half.
    type Hook: HitHook;
    /// The parameters.
    type Config: Config;

    /// Creates a policy for an empty pool. The parameters are valid; a value that does not fit the
    /// pool's size (a window larger than the pool) is clamped.
    fn new(config: &Self::Config, shape: &Shape) -> Self;

    /// Returns the hit path's parameters.
    fn params(&self) -> <Self::Hook as HitHook>::Params {
        Default::default()
    }

    /// Returns the end of an access that counts as the reference. Called once, and only if
    /// [`HitHook::UNFIX`].
    fn hit_on(&self) -> HitOn {
        HitOn::Fix
    }

    /// Returns the evictions per tick of [`TickSource::PerEviction`], at least 1; called once.
    fn evictions_per_tick(&self) -> u32 {
        u32::MAX
    }

    /// Returns the maximum number of ghosts of a pool of `frames` frames, for hosts that charge for
    /// them.
    fn ghosts_max(_config: &Self::Config, _frames: u32) -> u64 {
        0
    }

    /// Announces that `page` will be referenced soon, as a host that reads a trace knows. The
    /// policy may prefetch the entry that a miss would look up. This hint changes no result.
    #[inline(always)]
    fn will_reference(&self, _page: PageId) {}

    /// Returns the bytes of state outside the frames' `Meta`: lists, heaps, ghosts, hands.
    fn state_bytes(&self) -> usize;

    /// Verifies the policy's numbered invariants against the resident frames.
    ///
    /// # Errors
    /// A description of the broken invariant. Tests call it after each step.
    fn check(&self, _frames: Frames<'_, Self::Hook>, _resident: &[FrameId]) -> Result<(), String> {
        Ok(())
    }
}

/// The cold half of a policy that one thread uses at a time.
pub trait Policy: PolicySpec {
    /// Receives a hit of a resident frame; only for [`Hit::Central`], at the end of the access that
    /// [`PolicySpec::hit_on`] selects.
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, Self::Hook>, _frame: FrameId, _access: &Access) {}

    /// Revives a cooling frame that was hit and is hot again; called only with [`HitHook::COOLS`].
    #[inline(always)]
    fn revive(&mut self, _frames: Frames<'_, Self::Hook>, _frame: FrameId) {}

    /// Returns `true` if the missed page should be cached at all. Only hosts that can bypass the
    /// cache call it, before `miss`. Other hosts admit every page, and the policy then places an
    /// unwanted page where its next victim is.
    #[inline(always)]
    fn wants(&mut self, _access: &Access) -> bool {
        true
    }

    /// Looks up the ghost of a page that missed and will be loaded.
    #[inline(always)]
    fn miss(&mut self, _access: &Access) -> GhostHit {
        GhostHit::NONE
    }

    /// Admits the page that was loaded into `frame`.
    fn admit(
        &mut self,
        frames: Frames<'_, Self::Hook>,
        frame: FrameId,
        access: &Access,
        ghost_hit: GhostHit,
    );

    /// Finds victims; returns the number of taken frames.
    fn evict<H: Host + ?Sized>(
        &mut self,
        frames: Frames<'_, Self::Hook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32;

    /// Forgets the page in `frame`, which was dropped without the policy's decision; no ghost
    /// remains.
    fn forget(&mut self, frames: Frames<'_, Self::Hook>, frame: FrameId);

    /// Notes that the dirty page in `frame` was written back and stays resident, now clean.
    #[inline(always)]
    fn cleaned(&mut self, _frames: Frames<'_, Self::Hook>, _frame: FrameId) {}
}

/// The cold half of a policy that any number of threads use at once. Every `OpenPolicy` is also a
/// [`Policy`].
pub trait OpenPolicy: PolicySpec + Sync {
    /// See [`Policy::miss`].
    #[inline(always)]
    fn miss(&self, _access: &Access) -> GhostHit {
        GhostHit::NONE
    }

    /// See [`Policy::revive`].
    #[inline(always)]
    fn revive(&self, _frames: Frames<'_, Self::Hook>, _frame: FrameId) {}

    /// See [`Policy::admit`].
    fn admit(
        &self,
        frames: Frames<'_, Self::Hook>,
        frame: FrameId,
        access: &Access,
        ghost_hit: GhostHit,
    );

    /// See [`Policy::evict`].
    fn evict<H: Host + ?Sized>(
        &self,
        frames: Frames<'_, Self::Hook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32;

    /// Evicts like `evict`, for a host that has the policy to itself, such as a simulator. Plain
    /// instructions may replace the locked ones of `evict`, but the victims must be the same.
    #[inline(always)]
    fn evict_alone<H: Host + ?Sized>(
        &mut self,
        frames: Frames<'_, Self::Hook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        // The full name is needed: on `&mut self`, a plain call is `Policy::evict`, which calls
        // this method.
        OpenPolicy::evict(self, frames, request, host)
    }

    /// See [`Policy::forget`].
    fn forget(&self, frames: Frames<'_, Self::Hook>, frame: FrameId);

    /// See [`Policy::cleaned`].
    #[inline(always)]
    fn cleaned(&self, _frames: Frames<'_, Self::Hook>, _frame: FrameId) {}
}

impl<P: OpenPolicy> Policy for P {
    #[inline(always)]
    fn miss(&mut self, access: &Access) -> GhostHit {
        OpenPolicy::miss(self, access)
    }

    #[inline(always)]
    fn revive(&mut self, frames: Frames<'_, P::Hook>, frame: FrameId) {
        OpenPolicy::revive(self, frames, frame);
    }

    #[inline(always)]
    fn admit(
        &mut self,
        frames: Frames<'_, P::Hook>,
        frame: FrameId,
        access: &Access,
        ghost_hit: GhostHit,
    ) {
        OpenPolicy::admit(self, frames, frame, access, ghost_hit);
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        frames: Frames<'_, P::Hook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        OpenPolicy::evict_alone(self, frames, request, host)
    }

    #[inline(always)]
    fn forget(&mut self, frames: Frames<'_, P::Hook>, frame: FrameId) {
        OpenPolicy::forget(self, frames, frame);
    }

    #[inline(always)]
    fn cleaned(&mut self, frames: Frames<'_, P::Hook>, frame: FrameId) {
        OpenPolicy::cleaned(self, frames, frame);
    }
}
