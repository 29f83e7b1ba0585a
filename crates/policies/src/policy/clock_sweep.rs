//! `clock-sweep`: PostgreSQL's buffer replacement, a CLOCK with usage counts up to five.
//!
//! **Idea** — A few bits of frequency, bounded so that the hand never needs more than six rounds:
//! a pin adds one up to the bound, a pass of the hand takes one, and 0 goes.
//!
//! **Source** — PostgreSQL, src/backend/storage/buffer/README and freelist.c: the clock-sweep
//! algorithm and its greatest usage count.
//!
//! **State** — A usage count beside each frame; the hand, a counter of frames passed.
//!
//! **Invariants** — (1) Only a frame whose count is 0 is offered. (2) No count exceeds `max`.
//!
//! **Cost** — Hit: a load, and a store while the count is below `max`. Admit: one store. Evict: a
//! sweep of at most `max` + 1 rounds, amortised one step per reference. 4 bytes per frame, no
//! ghosts.
//!
//! **Deviations** — PostgreSQL's hand leaves pinned frames' counts alone; ours learns of a pin only
//! when it offers the frame, and wears its count down before. Its rings for scans and bulk writes
//! are the host's scan hints here. With `max=3, init=0` it is libCacheSim's clock with 2 bits.
//!
//! **Defaults** — `max=5, init=1`: PostgreSQL's. A page enters with one reference, its load.

use millpond_base::FrameId;
use millpond_base::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::contract::{
    Access, Frames, Goal, Hit, Host, OpenPolicy, Recall, Rules, Shape, Touch, Why,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{Counts, Hand};

config! {
    /// Parameters of [`ClockSweep`].
    pub struct ClockSweepConfig {
        /// The greatest usage count.
        max: u32 = 5, in 1..=255;
        /// The count of a page that was just loaded; never more than `max`.
        init: u32 = 1, in 0..=255;
    }
}

/// What the hit path knows.
#[derive(Clone, Copy, Default, Debug)]
pub struct ClockSweepParams {
    max: u32,
    init: u32,
}

/// The hot half: a small count.
pub struct UsageCount;

impl Touch for UsageCount {
    type Meta = AtomicU32;
    type Params = ClockSweepParams;
    const HIT: Hit = Hit::Meta;

    #[inline(always)]
    fn touch(count: &AtomicU32, params: &ClockSweepParams, _: &Access) {
        let value = count.load(Relaxed);
        if value < params.max {
            count.store(value + 1, Relaxed);
        }
    }

    #[inline(always)]
    fn reset(count: &AtomicU32, params: &ClockSweepParams, _: &Access) {
        count.store(params.init, Relaxed);
    }
}

/// PostgreSQL's clock sweep.
pub struct ClockSweep {
    params: ClockSweepParams,
    hand: Hand,
}

struct Swept<'a>(Frames<'a, UsageCount>);

impl Counts for Swept<'_> {
    #[inline(always)]
    fn count(&self, frame: FrameId) -> &AtomicU32 {
        self.0.meta(frame)
    }

    fn refused(&self, _: FrameId, _: Why) {}
}

impl Rules for ClockSweep {
    const INFO: Info = Info {
        id: "clock-sweep",
        summary: "PostgreSQL's: usage counts up to 5, worn down by a hand",
        family: Family::Clock,
        class: Class::Two,
        age: Age::Some,
        references: References::Some,
        tier: Tier::First,
        live: true,
        frame_bytes: 4.0,
        ghost_bytes: 0.0,
        source: "PostgreSQL, freelist.c",
    };
    type Touch = UsageCount;
    type Config = ClockSweepConfig;

    fn new(config: &ClockSweepConfig, _shape: &Shape) -> ClockSweep {
        let params = ClockSweepParams { max: config.max, init: config.init.min(config.max) };
        ClockSweep { params, hand: Hand::new() }
    }

    fn params(&self) -> ClockSweepParams {
        self.params
    }

    fn state_bytes(&self) -> usize {
        0
    }

    fn check(&self, frames: Frames<'_, UsageCount>, resident: &[FrameId]) -> Result<(), String> {
        let most = self.params.max;
        match resident.iter().find(|&&frame| frames.meta(frame).load(Relaxed) > most) {
            Some(frame) => Err(format!("invariant 2: frame {frame:?} counts more than {most}")),
            None => Ok(()),
        }
    }
}

impl OpenPolicy for ClockSweep {
    #[inline(always)]
    fn admit(&self, _: Frames<'_, UsageCount>, _: FrameId, _: &Access, _: Recall) {}

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &self,
        frames: Frames<'_, UsageCount>,
        goal: &Goal,
        host: &mut H,
    ) -> u32 {
        self.hand.sweep(frames.len(), 1, goal, &Swept(frames), host)
    }

    fn forget(&self, _: Frames<'_, UsageCount>, _: FrameId) {}
}
