//! The policy contract: what a replacement policy promises its host, and the host it.
//!
//! A policy is split where the temperature changes. The *hot half* ([`HitHook`]) says what a hit
//! does to the frame's own [`HitHook::Meta`]: static, through `&`, without a latch. The *cold half*
//! ([`Policy`], or [`OpenPolicy`] through `&self`) keeps order, hands and ghosts, and is needed
//! when a page comes or goes, or on every hit of a policy that cannot do without
//! ([`Hit::Central`]).
//!
//! The host (a simulator, a live pool) owns the page table, the frames and the free list. A policy
//! sees dense [`FrameId`]s and keys its ghosts by [`PageId`], so that one file serves every world.
//!
//! # Rules
//!
//! 1. A frame is *resident* for a policy from [`Policy::admit`] until a host's
//!    [`OfferOutcome::Taken`], or until [`Policy::forget`]; never both.
//! 2. [`Host::offer`] is called while the policy is borrowed: a host never calls back into it.
//!    What has to be revived or forgotten meanwhile is told after `evict` returned; until then a
//!    host refuses such a frame with [`RefusalReason::Absent`], and that is no fault of the
//!    policy's.
//! 3. A refusal leaves the frame resident. A policy unlinks only what was taken, and it unlinks
//!    the frame that [`Host::take`] names, which need not be the one it offered.
//! 4. [`Policy::hit`] comes only for resident frames; a batched host checks first.
//! 5. [`Policy::miss`] comes once for each page that is about to be loaded, before `evict`. Ghosts
//!    are looked up there, and its [`GhostHit`] is carried to `evict` and `admit`. Several misses
//!    may be between `miss` and `admit` at once. A load that fails loses what `miss` consumed.
//! 6. Ghosts are trimmed only after something was taken or admitted, never in the hope of it.
//! 7. Frames are first handed out in ascending order, each for one page.
//! 8. On a load the host calls [`HitHook::reset`], then [`Policy::admit`], then, if the policy asks
//!    for unfix events, counts the end of the loading access as one.
//! 9. Every loop in `evict` is bounded by [`EvictRequest::steps_max`] frames looked at, whatever
//!    the host answers; a policy that gives up returns what it has.
//! 10. The same seed and the same calls give the same answers.
//! 11. A frame is free again only after the call that let it go returned: `evict` for one that was
//!     taken, `forget` for one that was dropped. So a policy, an open one too, has unlinked a
//!     frame before the next page is admitted into it.
//! 12. A page can be hit, and its frame be offered, only after `admit` returned. A hit or a
//!     revival that was overtaken before the policy could be told of it (the page left, or cools
//!     again) is not told at all: the host reads the frame's version again under the policy's seat.

use millpond_base::{FrameId, Mark, PageId, Tick};

use crate::config::Config;
pub use crate::frames::{Frames, Zeroed};
use crate::info::Info;

/// `Access::next` of a page that is never referenced again.
pub const NEVER: u64 = u64::MAX;

/// One reference to a page, as a policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The page.
    pub page: PageId,
    /// Operation, write reason, page kind, depth, scan.
    pub mark: Mark,
    /// The host's clock, as [`HitHook::TICK`] asks.
    pub now: Tick,
    /// Position in the trace of the page's next reference, or [`NEVER`]. Known only to policies
    /// with [`PolicySpec::NEEDS_FUTURE`]; 0 otherwise.
    pub next: u64,
    /// The same for the page's next *read*.
    pub next_read: u64,
}

/// What a hit costs, which decides how a live pool must seat the policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hit {
    /// Nothing at all happens.
    Nothing,
    /// Only the frame's own metadata is touched, without a latch.
    Meta,
    /// The policy itself must be told: a latch per hit, or a batch.
    Central,
}

/// Which clock a policy wants in [`Access::now`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TickSource {
    /// None: `now` is 0.
    None,
    /// One tick per reference.
    PerAccess,
    /// One tick per so many evictions: [`PolicySpec::evictions_per_tick`].
    PerEviction,
}

/// Which end of an access counts as the reference (gilbert 1.2.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HitOn {
    /// The fix, that is, the beginning. Loading a page is not a hit.
    Fix,
    /// The unfix, that is, the end. The loading access has one, too.
    Unfix,
    /// Both.
    Both,
}

/// What a miss told the policy of the page's past; its meaning is the policy's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GhostHit(pub u32);

impl GhostHit {
    /// The page is unknown.
    pub const NONE: GhostHit = GhostHit(0);
}

/// The hot half: what a hit does to its frame.
pub trait HitHook: Send + Sync + 'static {
    /// What is kept beside each frame; shared by concurrent hits, hence atomics inside.
    type Meta: Default + Send + Sync;
    /// Run-time parameters of the hit path, read once when a store or a simulation opens.
    type Params: Copy + Default + Send + Sync;
    /// What a hit costs.
    const HIT: Hit;
    /// Which clock is wanted.
    const TICK: TickSource = TickSource::None;
    /// Whether the policy cools frames ([`Host::cool`]), so that a hit may have to revive one.
    const COOLS: bool = false;
    /// Whether [`PolicySpec::hit_on`] may answer anything but [`HitOn::Fix`].
    const UNFIX: bool = false;
    /// Whether [`HitHook::on_hit`] looks at [`Access::page`]. If not, a host need not find it out.
    const READS_PAGE: bool = true;

    /// Whether [`HitHook::on_hit`] would change nothing. A live pool asks first, without
    /// [`Access::page`], and does nothing more if so: what nearly every hit comes to should be told
    /// here, in few instructions. Not asked of policies with a clock of references.
    #[inline(always)]
    fn is_noop(_meta: &Self::Meta, _params: &Self::Params, _access: &Access) -> bool {
        false
    }

    /// The frame was hit.
    #[inline(always)]
    fn on_hit(_meta: &Self::Meta, _params: &Self::Params, _access: &Access) {}

    /// A page was just loaded into the frame by this access; what was there is over.
    #[inline(always)]
    fn reset(_meta: &Self::Meta, _params: &Self::Params, _access: &Access) {}

    /// What a hit costs under these parameters; never more than [`HitHook::HIT`]. This and the next
    /// three differ from the constants only where the hot half is found at run time
    /// ([`AnyHook`](crate::any_hook::AnyHook)); elsewhere they vanish.
    #[inline(always)]
    fn hit_cost(_params: &Self::Params) -> Hit {
        Self::HIT
    }

    /// Which clock is wanted under these parameters.
    #[inline(always)]
    fn tick_source(_params: &Self::Params) -> TickSource {
        Self::TICK
    }

    /// Whether frames cool under these parameters.
    #[inline(always)]
    fn cools(_params: &Self::Params) -> bool {
        Self::COOLS
    }

    /// What a frame's `Meta` is before the first page comes.
    #[inline(always)]
    fn fresh(_params: &Self::Params) -> Self::Meta {
        Self::Meta::default()
    }

    /// Whether memory full of zeros is what [`HitHook::fresh`] makes under these parameters. A live
    /// pool then writes no frame's `Meta` when it opens; else it writes all of them, which touches
    /// its whole memory. `Zeroed::fresh()` says so of types with [`zeros!`](crate::zeros).
    fn zeroed(_params: &Self::Params) -> Option<Zeroed<Self::Meta>> {
        None
    }
}

/// The hot half of policies that keep nothing in the frame and hear every hit centrally.
pub struct CentralHook;

impl HitHook for CentralHook {
    type Meta = ();
    type Params = ();
    const HIT: Hit = Hit::Central;
}

/// The same with a clock of references.
pub struct TimedCentralHook;

impl HitHook for TimedCentralHook {
    type Meta = ();
    type Params = ();
    const HIT: Hit = Hit::Central;
    const TICK: TickSource = TickSource::PerAccess;
}

/// The hot half of policies that a hit never reaches.
pub struct NoHook;

impl HitHook for NoHook {
    type Meta = ();
    type Params = ();
    const HIT: Hit = Hit::Nothing;
}

/// Why a host refused a frame (gilbert 1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusalReason {
    /// The frame holds no page now: free, or loading. Samplers meet it; lists meet it only for a
    /// page that was dropped a moment ago, of which [`Policy::forget`] will tell (rule 2).
    Absent,
    /// Its latch is held, or could not be had at once. Temporary.
    Latched,
    /// Somebody has it fixed. Temporary.
    Pinned,
    /// It is dirty; its write was begun. Temporary: offer it again later.
    Dirty,
    /// It will never go: metadata, a root.
    Permanent,
    /// It changed while it was looked at. Temporary.
    Changed,
}

impl RefusalReason {
    /// Whether offering the frame again later can succeed.
    pub fn is_temporary(self) -> bool {
        self != RefusalReason::Permanent
    }
}

/// A host's answer to an offered victim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OfferOutcome {
    /// The page is out; the frame is free. The page's id, for ghosts.
    Taken(PageId),
    /// It stays.
    Refused(RefusalReason),
    /// This one must go first: it is a swizzled child of the offered page.
    EvictChildFirst(FrameId),
}

/// A host's answer to a frame that shall cool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cooled {
    /// It cools from now on; a hit revives it ([`Policy::revive`]).
    Yes,
    /// It stays hot.
    Refused(RefusalReason),
    /// This one must cool first: it is a swizzled child.
    CoolChildFirst(FrameId),
}

/// What the page in a frame owes to storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageState {
    /// Nothing: evicting it costs no write.
    Clean,
    /// Changed since it was last written.
    Dirty,
    /// Dirty, but a request to make it durable comes before its next change, so that writing it
    /// now costs nothing extra (li 5.2.2). Only a simulator with a future can tell.
    PreClean,
}

/// The other side of an eviction: what a policy may ask and do while it chooses.
pub trait Host {
    /// Offers `frame` as the victim. Rules 2 and 3 of the module hold.
    fn offer(&mut self, frame: FrameId) -> OfferOutcome;

    /// Asks to let `frame` cool. A host of policies without [`HitHook::COOLS`] agrees to nothing.
    fn cool(&mut self, _frame: FrameId) -> Cooled {
        Cooled::Refused(RefusalReason::Permanent)
    }

    /// What the page in `frame` owes to storage; `Clean` for a frame without one.
    fn state(&self, _frame: FrameId) -> PageState {
        PageState::Clean
    }

    /// Whether a policy should end early, with what it has: the host has refused so many dirty
    /// frames that, once they are written, it has what it wants. Asked after a refusal, if at all.
    #[inline(always)]
    fn has_enough(&self) -> bool {
        false
    }

    /// `frame` will be offered before long: what the host will look at may load meanwhile.
    #[inline(always)]
    fn will_offer(&self, _frame: FrameId) {}

    /// So many frames were looked at, those that were offered among them; for figures only. Told
    /// by policies that look at more than they offer.
    #[inline(always)]
    fn count_examined(&mut self, _frames: u32) {}

    /// Offers `frame` and follows [`OfferOutcome::EvictChildFirst`] down to a child that can go.
    /// Says which frame went and which page was in it. If it was another one, `frame` stays, and a
    /// policy whose order hits do not change must not offer it next for ever: a root always has
    /// children.
    ///
    /// # Errors
    /// The refusal, or [`RefusalReason::Latched`] where children lie deeper than 8 levels. A child
    /// that will never go is told as [`RefusalReason::Pinned`]: its parent may go once the child is
    /// elsewhere, so the policy must not give the parent up for ever.
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

/// What an eviction shall reach.
#[derive(Clone, Copy, Debug)]
pub struct EvictRequest {
    /// Frames wanted, at least 1.
    pub frames: u32,
    /// Frames that may be looked at before giving up (rule 9). At least twice the pool's frames
    /// in a single-threaded host, so that a sweep that clears marks comes round again.
    pub steps_max: u32,
    /// The host's clock, as [`HitHook::TICK`] asks.
    pub now: Tick,
    /// The page that needs the frame, with what [`Policy::miss`] recalled of it. None: the host
    /// evicts ahead. It counts for the first frame of a batch.
    pub incoming: Option<(PageId, GhostHit)>,
}

/// The pool that a policy is made for.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Number of frames, at least 1.
    pub frames: u32,
    /// Page ids are dense (0, 1, 2, …) and about so many: ghosts may be arrays that grow. None:
    /// ids are arbitrary, ghosts must hash.
    pub pages_dense: Option<u64>,
    /// Seed of every random choice.
    pub seed: u64,
}

/// What both kinds of cold half share: names, types, making, checking.
pub trait PolicySpec: Sized + Send + 'static {
    /// The policy's row in the catalog.
    const INFO: Info;
    /// Whether [`Access::next`] must be known.
    const NEEDS_FUTURE: bool = false;
    /// Whether it draws from [`Shape::seed`]: if not, one run says what any seed would.
    const IS_RANDOM: bool = false;
    /// The hot half.
    type Hook: HitHook;
    /// The parameters.
    type Config: Config;

    /// A policy for an empty pool. Parameters were validated; what does not fit the pool's size
    /// (a window larger than the pool) is clamped.
    fn new(config: &Self::Config, shape: &Shape) -> Self;

    /// The hit path's parameters.
    fn params(&self) -> <Self::Hook as HitHook>::Params {
        Default::default()
    }

    /// Which end of an access counts; asked once, and only if [`HitHook::UNFIX`].
    fn hit_on(&self) -> HitOn {
        HitOn::Fix
    }

    /// Evictions per tick of [`TickSource::PerEviction`], at least 1; asked once.
    fn evictions_per_tick(&self) -> u32 {
        u32::MAX
    }

    /// Ghosts that a pool of so many frames will keep at most, for hosts that charge for them.
    fn ghosts_max(_config: &Self::Config, _frames: u32) -> u64 {
        0
    }

    /// Bytes of state now held outside the frames' `Meta`: lists, heaps, ghosts, hands.
    fn state_bytes(&self) -> usize;

    /// Verifies the policy's numbered invariants against the frames that are resident.
    ///
    /// # Errors
    /// The invariant that is broken, in words. Tests call it after each step.
    fn check(&self, _frames: Frames<'_, Self::Hook>, _resident: &[FrameId]) -> Result<(), String> {
        Ok(())
    }
}

/// The cold half of a policy that one thread uses at a time.
pub trait Policy: PolicySpec {
    /// A resident frame was hit; only for [`Hit::Central`], at the end [`PolicySpec::hit_on`]
    /// names.
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, Self::Hook>, _frame: FrameId, _access: &Access) {}

    /// A cooling frame was hit and is hot again; only with [`HitHook::COOLS`].
    #[inline(always)]
    fn revive(&mut self, _frames: Frames<'_, Self::Hook>, _frame: FrameId) {}

    /// Whether the page that missed shall be cached at all. Asked before `miss`, and only by
    /// hosts that can pass a page by; the others admit whatever the answer would be, and a policy
    /// to which an unwanted page is admitted puts it where its next victim stands.
    #[inline(always)]
    fn wants(&mut self, _access: &Access) -> bool {
        true
    }

    /// A page missed and will be loaded; look up its ghost.
    #[inline(always)]
    fn miss(&mut self, _access: &Access) -> GhostHit {
        GhostHit::NONE
    }

    /// The page was loaded into `frame`.
    fn admit(
        &mut self,
        frames: Frames<'_, Self::Hook>,
        frame: FrameId,
        access: &Access,
        ghost_hit: GhostHit,
    );

    /// Finds victims; says how many were taken.
    fn evict<H: Host + ?Sized>(
        &mut self,
        frames: Frames<'_, Self::Hook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32;

    /// The page in `frame` was dropped without the policy's doing; no ghost remains.
    fn forget(&mut self, frames: Frames<'_, Self::Hook>, frame: FrameId);

    /// The dirty page in `frame` was written back and stays, clean.
    #[inline(always)]
    fn cleaned(&mut self, _frames: Frames<'_, Self::Hook>, _frame: FrameId) {}
}

/// The cold half of a policy that any number of threads use at once. Each is a [`Policy`], too.
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

    /// The same for a host that has the policy to itself, a simulator: whatever `evict` has to do
    /// with a locked instruction may be done with plain ones. The victims must be the same.
    #[inline(always)]
    fn evict_alone<H: Host + ?Sized>(
        &mut self,
        frames: Frames<'_, Self::Hook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        // By its full name: on `&mut self`, a plain call is `Policy::evict`, which calls this.
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
