//! A mark that a hit leaves on its frame: the hot half of many clocks, and the second chance of the
//! simplest ones.

use millpond_base::FrameId;
use millpond_base::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::contract::{
    Access, EvictRequest, Frames, Hit, HitHook, HitOn, Host, RefusalReason, Zeroed,
};

choice! {
    /// The events that set a usage bit (gilbert 1.2.8).
    pub enum MarkOn {
        /// Hits, when they begin.
        Fix = "fix",
        /// Accesses, when they end.
        Unfix = "unfix",
        /// The beginning of hits and the end of accesses.
        FixUnfix = "fix-unfix",
        /// The beginning of hits, the end of accesses, and refusals.
        Full = "full",
    }
}

impl MarkOn {
    /// Returns the ends of an access that count.
    pub fn hit_on(self) -> HitOn {
        match self {
            MarkOn::Fix => HitOn::Fix,
            MarkOn::Unfix => HitOn::Unfix,
            MarkOn::FixUnfix | MarkOn::Full => HitOn::Both,
        }
    }
}

/// The hot half: a hit sets a bit, a load clears it.
pub struct MarkHook;

impl HitHook for MarkHook {
    type Meta = AtomicBool;
    type Params = ();
    const HIT: Hit = Hit::Meta;

    #[inline(always)]
    fn on_hit(mark: &AtomicBool, _: &(), _: &Access) {
        // Reading first keeps a hot page's line shared between cores.
        if !mark.load(Relaxed) {
            mark.store(true, Relaxed);
        }
    }

    #[inline(always)]
    fn reset(mark: &AtomicBool, _: &(), _: &Access) {
        mark.store(false, Relaxed);
    }

    fn zeroed(_: &Self::Params) -> Option<Zeroed<Self::Meta>> {
        Zeroed::fresh()
    }
}

/// Like `MarkHook`, for policies whose parameters select the end of an access that counts.
pub struct MarkOnHit;

impl HitHook for MarkOnHit {
    type Meta = AtomicBool;
    type Params = ();
    const HIT: Hit = Hit::Meta;
    const UNFIX: bool = true;

    #[inline(always)]
    fn on_hit(mark: &AtomicBool, params: &(), access: &Access) {
        MarkHook::on_hit(mark, params, access);
    }

    #[inline(always)]
    fn reset(mark: &AtomicBool, params: &(), access: &Access) {
        MarkHook::reset(mark, params, access);
    }

    fn zeroed(_: &Self::Params) -> Option<Zeroed<Self::Meta>> {
        Zeroed::fresh()
    }
}

/// Clears the mark and returns `true` if it was set.
#[inline(always)]
pub fn take_mark(mark: &AtomicBool) -> bool {
    let set = mark.load(Relaxed);
    if set {
        mark.store(false, Relaxed);
    }
    set
}

/// Follows `hand`: a marked frame loses its mark and stays; an unmarked one is offered, and marked
/// if the host refuses it for a reason that `marks` accepts. Returns the number taken.
#[inline(always)]
pub fn second_chance<H: Host + ?Sized>(
    frames: Frames<'_, MarkOnHit>,
    request: &EvictRequest,
    host: &mut H,
    mut hand: impl FnMut() -> FrameId,
    marks: impl Fn(RefusalReason) -> bool,
) -> u32 {
    let (mut taken, mut steps) = (0, 0);
    while taken < request.frames && steps < request.steps_max {
        steps += 1;
        let frame = hand();
        let mark = frames.meta(frame);
        if take_mark(mark) {
            continue;
        }
        match host.take(frame) {
            Ok(_) => taken += 1,
            Err(why) if marks(why) => mark.store(true, Relaxed),
            Err(_) => {}
        }
    }
    taken
}
