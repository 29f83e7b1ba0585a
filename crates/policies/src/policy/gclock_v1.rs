//! `gclock-v1`: a hand wears down usage counts; a hit adds R to its frame's.
//!
//! **Idea** — CLOCK's bit becomes a count: a hit adds to it, the hand takes from it, and what is
//! worn down to 0 goes. Large R weighs how often a page is used, large S how lately.
//!
//! **Source** — gilbert 1.2.10, 1.2.10.1 (after Effelsberg and Härder 1984).
//!
//! **State** — A usage count beside each frame; the hand, a counter of frames passed.
//!
//! **Invariants** — (1) Only a frame whose count is 0 is offered. (2) No count exceeds `max`.
//!
//! **Cost** — Hit: load, and a store if the count changes, in the frame's own metadata. Admit: one
//! store. Evict: a sweep; each step is paid by what F and R put in, so F/S steps per miss and R/S
//! per hit at most. 4 bytes per frame, no ghosts.
//!
//! **Deviations** — A count never exceeds `max`. Hits that race may lose one increment: a count is
//! an estimate, and a locked addition per hit would cost more than it tells. With `f=0, r=1, max=3,
//! variant=fix` it is libCacheSim's clock with 2 bits, hit for hit. A round that can find no victim
//! is skipped ([`parts::sweep`](crate::parts::sweep)); the victims are the same.
//!
//! **Defaults** — F 25, R 5, S 1, `variant=fix-full`, no cap: as gilbert runs it. His *x2* is
//! `f=50,r=10`.

use millpond_base::FrameId;
use millpond_base::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::contract::{
    Access, Frames, Goal, Hit, Host, OpenPolicy, Recall, Rules, Shape, Touch, TouchOn, Why,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{CountOn, Counts, Hand};

config! {
    /// Parameters of [`GclockV1`].
    pub struct GclockV1Config {
        /// F: the count of a page that was just loaded.
        f: u32 = 25, in 0..=1 << 30;
        /// R: what a reference adds.
        r: u32 = 5, in 0..=1 << 30;
        /// S: what a pass of the hand takes.
        s: u32 = 1, in 1..=1 << 30;
        /// Which events count as references.
        variant: CountOn = CountOn::FixFull;
        /// What a count cannot exceed.
        max: u32 = u32::MAX, in 1..=u32::MAX;
    }
}

/// What the hit path knows.
#[derive(Clone, Copy, Default, Debug)]
pub struct V1Params {
    first: u32,
    add: u32,
    max: u32,
}

impl V1Params {
    /// A reference.
    #[inline(always)]
    fn refer(&self, count: &AtomicU32) {
        let value = count.load(Relaxed);
        let more = value.saturating_add(self.add).min(self.max);
        // Looking first keeps the line of a page whose count is full shared between cores.
        if more != value {
            count.store(more, Relaxed);
        }
    }
}

/// The hot half: a count.
pub struct Add;

impl Touch for Add {
    type Meta = AtomicU32;
    type Params = V1Params;
    const HIT: Hit = Hit::Meta;
    const UNFIX: bool = true;

    #[inline(always)]
    fn touch(count: &AtomicU32, params: &V1Params, _: &Access) {
        params.refer(count);
    }

    #[inline(always)]
    fn reset(count: &AtomicU32, params: &V1Params, _: &Access) {
        count.store(params.first, Relaxed);
    }
}

/// Generalised CLOCK whose hits add.
pub struct GclockV1 {
    params: V1Params,
    step: u32,
    variant: CountOn,
    hand: Hand,
}

struct Swept<'a> {
    frames: Frames<'a, Add>,
    policy: &'a GclockV1,
}

impl Counts for Swept<'_> {
    #[inline(always)]
    fn count(&self, frame: FrameId) -> &AtomicU32 {
        self.frames.meta(frame)
    }

    fn refused(&self, frame: FrameId, why: Why) {
        if self.policy.variant.refusals() && why != Why::Absent {
            self.policy.params.refer(self.frames.meta(frame));
        }
    }
}

impl Rules for GclockV1 {
    const INFO: Info = Info {
        id: "gclock-v1",
        summary: "a hand wears down usage counts; a hit adds R to its frame's",
        family: Family::Clock,
        class: Class::Two,
        age: Age::Some,
        references: References::All,
        tier: Tier::First,
        live: true,
        frame_bytes: 4.0,
        ghost_bytes: 0.0,
        source: "gilbert 1.2.10.1",
    };
    type Touch = Add;
    type Config = GclockV1Config;

    fn new(config: &GclockV1Config, _shape: &Shape) -> GclockV1 {
        GclockV1 {
            params: V1Params { first: config.f.min(config.max), add: config.r, max: config.max },
            step: config.s,
            variant: config.variant,
            hand: Hand::new(),
        }
    }

    fn params(&self) -> V1Params {
        self.params
    }

    fn touch_on(&self) -> TouchOn {
        self.variant.touch_on()
    }

    fn state_bytes(&self) -> usize {
        0
    }

    fn check(&self, frames: Frames<'_, Add>, resident: &[FrameId]) -> Result<(), String> {
        let most = self.params.max;
        for &frame in resident {
            let count = frames.meta(frame).load(Relaxed);
            if count > most {
                return Err(format!("invariant 2: frame {frame:?} counts {count} of {most}"));
            }
        }
        Ok(())
    }
}

impl OpenPolicy for GclockV1 {
    #[inline(always)]
    fn admit(&self, _: Frames<'_, Add>, _: FrameId, _: &Access, _: Recall) {}

    #[inline(always)]
    fn evict<H: Host + ?Sized>(&self, frames: Frames<'_, Add>, goal: &Goal, host: &mut H) -> u32 {
        let swept = Swept { frames, policy: self };
        self.hand.sweep(frames.len(), self.step, goal, &swept, host)
    }

    fn forget(&self, _: Frames<'_, Add>, _: FrameId) {}
}
