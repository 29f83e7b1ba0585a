//! A mark that a hit leaves on its frame, and nothing else: the hot half of many clocks, and the
//! second chance that the simplest of them give by it.

use millpond_base::FrameId;
use millpond_base::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::contract::{Access, Frames, Goal, Hit, Host, Touch, TouchOn, Why, Zeroed};

choice! {
    /// Which events set a usage bit (gilbert 1.2.8).
    pub enum MarkOn {
        /// Hits, when they begin.
        Fix = "fix",
        /// Accesses, when they end.
        Unfix = "unfix",
        /// Both.
        FixUnfix = "fix-unfix",
        /// Both, and refusals.
        Full = "full",
    }
}

impl MarkOn {
    /// The ends of an access that count.
    pub fn touch_on(self) -> TouchOn {
        match self {
            MarkOn::Fix => TouchOn::Fix,
            MarkOn::Unfix => TouchOn::Unfix,
            MarkOn::FixUnfix | MarkOn::Full => TouchOn::Both,
        }
    }
}

/// The hot half: a hit sets a bit, a load clears it.
pub struct MarkTouch;

impl Touch for MarkTouch {
    type Meta = AtomicBool;
    type Params = ();
    const HIT: Hit = Hit::Meta;

    #[inline(always)]
    fn touch(mark: &AtomicBool, _: &(), _: &Access) {
        // Looking first keeps a hot page's line shared between cores.
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

/// The same for policies whose parameters say which end of an access counts.
pub struct MarkOnTouch;

impl Touch for MarkOnTouch {
    type Meta = AtomicBool;
    type Params = ();
    const HIT: Hit = Hit::Meta;
    const UNFIX: bool = true;

    #[inline(always)]
    fn touch(mark: &AtomicBool, params: &(), access: &Access) {
        MarkTouch::touch(mark, params, access);
    }

    #[inline(always)]
    fn reset(mark: &AtomicBool, params: &(), access: &Access) {
        MarkTouch::reset(mark, params, access);
    }

    fn zeroed(_: &Self::Params) -> Option<Zeroed<Self::Meta>> {
        Zeroed::fresh()
    }
}

/// Whether the mark is set; it is clear afterwards.
#[inline(always)]
pub fn take_mark(mark: &AtomicBool) -> bool {
    let set = mark.load(Relaxed);
    if set {
        mark.store(false, Relaxed);
    }
    set
}

/// Goes where `hand` points: a marked frame loses its mark and stays, another is offered, and
/// marked if it is refused for what `marks` says. Says how many were taken.
#[inline(always)]
pub fn second_chance<H: Host + ?Sized>(
    frames: Frames<'_, MarkOnTouch>,
    goal: &Goal,
    host: &mut H,
    mut hand: impl FnMut() -> FrameId,
    marks: impl Fn(Why) -> bool,
) -> u32 {
    let (mut taken, mut steps) = (0, 0);
    while taken < goal.frames && steps < goal.steps_max {
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
