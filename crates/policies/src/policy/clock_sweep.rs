//! `clock-sweep`: PostgreSQL's buffer replacement, a CLOCK with usage counts up to five.
//!
//! **Idea** — A few bits of frequency, bounded so that the hand never needs more than six rounds: a
//! pin adds one up to the bound, a pass of the hand subtracts one, and a frame at 0 is evicted.
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
//! **Deviations** — PostgreSQL's hand leaves pinned frames' counts alone. Ours sees a pin only when
//! it offers the frame, after wearing its count down. Its rings for scans and bulk writes are the
//! host's scan hints here. With `max=3, init=0` it is libCacheSim's clock with 2 bits.
//!
//! **Defaults** — `max=5, init=1`: PostgreSQL's. A page enters with one reference, its load.

use millpond_base::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::contract::{Access, Hit, HitHook, Zeroed};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::CountOn;
use crate::parts::usage_clock::{Usage, UsageClock, UsageRule, check_count};

config! {
    /// Parameters of [`ClockSweep`].
    pub struct ClockSweepConfig {
        /// The greatest usage count.
        max: u32 = 5, in 1..=255;
        /// The count of a page that was just loaded; never more than `max`.
        init: u32 = 1, in 0..=255;
    }
}

/// The parameters of the hit path.
#[derive(Clone, Copy, Default, Debug)]
pub struct ClockSweepParams {
    max: u32,
    init: u32,
}

/// PostgreSQL's clock sweep.
pub type ClockSweep = UsageClock<UsageCount>;

/// The hot half: a small count.
pub struct UsageCount;

impl HitHook for UsageCount {
    type Meta = AtomicU32;
    type Params = ClockSweepParams;
    const HIT: Hit = Hit::Meta;

    #[inline(always)]
    fn on_hit(count: &AtomicU32, params: &ClockSweepParams, _: &Access) {
        UsageCount::refer(count, params);
    }

    #[inline(always)]
    fn reset(count: &AtomicU32, params: &ClockSweepParams, _: &Access) {
        count.store(params.init, Relaxed);
    }

    fn zeroed(_: &Self::Params) -> Option<Zeroed<Self::Meta>> {
        Zeroed::fresh()
    }
}

impl UsageRule for UsageCount {
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
    type Config = ClockSweepConfig;

    fn read(config: &ClockSweepConfig) -> Usage<ClockSweepParams> {
        let params = ClockSweepParams { max: config.max, init: config.init.min(config.max) };
        Usage { params, step: 1, variant: CountOn::Fix }
    }

    #[inline(always)]
    fn count(count: &AtomicU32) -> &AtomicU32 {
        count
    }

    #[inline(always)]
    fn refer(count: &AtomicU32, params: &ClockSweepParams) {
        let value = count.load(Relaxed);
        if value < params.max {
            count.store(value + 1, Relaxed);
        }
    }

    fn check(count: &AtomicU32, params: &ClockSweepParams) -> Result<(), String> {
        check_count(count, params.max)
    }
}
