//! The hot half of a policy: the effect of a hit on a frame's own metadata, and the type of a
//! reference.

use millpond_base::{Mark, PageId, Tick};

use crate::zeroed::Zeroed;

/// `Access::next` of a page that is never referenced again.
pub const NEVER: u64 = u64::MAX;

/// One reference to a page, as a policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The page.
    pub page: PageId,
    /// Operation, write reason, page kind, depth, scan.
    pub mark: Mark,
    /// The host's clock, selected by [`HitHook::TICK`].
    pub now: Tick,
    /// Position in the trace of the page's next reference, or [`NEVER`]. Known only to policies
    /// with [`PolicySpec::NEEDS_FUTURE`](crate::contract::PolicySpec::NEEDS_FUTURE); 0 otherwise.
    pub next: u64,
    /// Like `next`, for the page's next *read*.
    pub next_read: u64,
}

/// Cost of a hit, which decides the way in which a live pool delivers hits to the policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hit {
    /// A hit changes nothing.
    Nothing,
    /// Only the frame's own metadata is touched, without a latch.
    Meta,
    /// The policy itself receives every hit: a latch per hit, or a batch.
    Central,
}

/// Clock that a policy needs in [`Access::now`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TickSource {
    /// None: `now` is 0.
    None,
    /// One tick per reference.
    PerAccess,
    /// One tick per
    /// [`PolicySpec::evictions_per_tick`](crate::contract::PolicySpec::evictions_per_tick)
    /// evictions.
    PerEviction,
}

/// The end of an access that counts as the reference (gilbert 1.2.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HitOn {
    /// The fix, which is the start of an access. Loading a page is not a hit.
    Fix,
    /// The unfix, which is the end of an access. The loading access has one too.
    Unfix,
    /// Both.
    Both,
}

/// A policy's memory of a page that missed; only the policy interprets the number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GhostHit(pub u32);

impl GhostHit {
    /// The page has no ghost.
    pub const NONE: GhostHit = GhostHit(0);
}

/// The hot half: the effect of a hit on its frame.
pub trait HitHook: Send + Sync + 'static {
    /// The metadata kept beside each frame; concurrent hits share it, hence atomics inside.
    type Meta: Default + Send + Sync;
    /// Run-time parameters of the hit path, read once when a store or a simulation opens.
    type Params: Copy + Default + Send + Sync;
    /// Maximum cost of a hit.
    const HIT: Hit;
    /// Clock that the policy needs.
    const TICK: TickSource = TickSource::None;
    /// `true` if the policy cools frames ([`Host::cool`](crate::host::Host::cool)), so that a hit
    /// may have to revive one.
    const COOLS: bool = false;
    /// `true` if [`PolicySpec::hit_on`](crate::contract::PolicySpec::hit_on) may return anything
    /// but [`HitOn::Fix`].
    const UNFIX: bool = false;
    /// `true` if [`HitHook::on_hit`] reads [`Access::page`]. If not, a host need not look the page
    /// up.
    const READS_PAGE: bool = true;

    /// `true` if a frame has metadata that a hit or a load might change. If not, a host need not
    /// look for it.
    const KEEPS_META: bool = size_of::<Self::Meta>() > 0;

    /// Returns `true` if [`HitHook::on_hit`] would change nothing. If [`HitHook::screen`] returns
    /// [`Screen::AskFirst`], a live pool calls this first, without [`Access::page`], and does
    /// nothing more if it is true. So it should recognise nearly every hit, in few instructions.
    #[inline(always)]
    fn is_noop(_meta: &Self::Meta, _params: &Self::Params, _access: &Access) -> bool {
        false
    }

    /// Records a hit of the frame.
    #[inline(always)]
    fn on_hit(_meta: &Self::Meta, _params: &Self::Params, _access: &Access) {}

    /// Discards earlier metadata after this access loaded a page into the frame.
    #[inline(always)]
    fn reset(_meta: &Self::Meta, _params: &Self::Params, _access: &Access) {}

    /// Returns the first step of a live pool on a hit under these parameters.
    #[inline(always)]
    fn screen(_params: &Self::Params) -> Screen {
        match (Self::HIT, Self::TICK) {
            (Hit::Nothing, _) => Screen::Ignore,
            // Each reference advances the clock, so it must reach the policy.
            (_, TickSource::PerAccess) => Screen::Deliver,
            _ => Screen::AskFirst,
        }
    }

    /// Returns the cost of a hit under these parameters; never more than [`HitHook::HIT`]. This
    /// function and the next three differ from the constants only if the hot half is chosen at run
    /// time ([`AnyHook`](crate::any_hook::AnyHook)); otherwise they are compiled away.
    #[inline(always)]
    fn hit_cost(_params: &Self::Params) -> Hit {
        Self::HIT
    }

    /// Returns the clock that the policy needs under these parameters.
    #[inline(always)]
    fn tick_source(_params: &Self::Params) -> TickSource {
        Self::TICK
    }

    /// Returns `true` if frames cool under these parameters.
    #[inline(always)]
    fn cools(_params: &Self::Params) -> bool {
        Self::COOLS
    }

    /// Returns a frame's `Meta` before its first page is loaded.
    #[inline(always)]
    fn fresh(_params: &Self::Params) -> Self::Meta {
        Self::Meta::default()
    }

    /// Returns `Some` if zeroed memory equals the result of [`HitHook::fresh`] under these
    /// parameters. A live pool then writes no frame's `Meta` when it opens. Otherwise it writes
    /// all of them, which touches its whole memory. Types with [`zeros!`](crate::zeros) return
    /// `Zeroed::fresh()`.
    fn zeroed(_params: &Self::Params) -> Option<Zeroed<Self::Meta>> {
        None
    }
}

/// The first step of a live pool on a hit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Screen {
    /// The pool does nothing, since no hit reaches the policy.
    Ignore,
    /// The pool asks [`HitHook::is_noop`], and delivers the hit if that is false.
    AskFirst,
    /// The pool delivers the hit.
    Deliver,
}

/// The hot half of policies that keep nothing in the frame and receive every hit centrally.
pub struct CentralHook;

impl HitHook for CentralHook {
    type Meta = ();
    type Params = ();
    const HIT: Hit = Hit::Central;
}

/// Like `CentralHook`, with a clock of references.
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
