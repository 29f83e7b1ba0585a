//! `gclock-v1`: a hand wears down usage counts; a hit adds R to its frame's count.
//!
//! **Idea** — CLOCK's bit becomes a count: a hit adds to it, the hand subtracts from it, and a
//! frame at 0 is evicted. A large R weighs frequency, a large S recency.
//!
//! **Source** — gilbert 1.2.10, 1.2.10.1 (after Effelsberg and Härder 1984).
//!
//! **State** — A usage count beside each frame; the hand, a counter of frames passed.
//!
//! **Invariants** — (1) Only a frame whose count is 0 is offered. (2) No count exceeds `max`.
//!
//! **Cost** — Hit: load, and a store if the count changes, in the frame's own metadata. Admit: one
//! store. Evict: a sweep; F and R pay for each step, so at most F/S steps per miss and R/S per hit.
//! 4 bytes per frame, no ghosts.
//!
//! **Deviations** — A count never exceeds `max`. Racing hits may lose an increment: a count is an
//! estimate, and a locked addition per hit would cost more than it is worth. With
//! `f=0, r=1, max=3, variant=fix` it is libCacheSim's clock with 2 bits, hit for hit. A round that
//! can find no victim is skipped ([`parts::sweep`](crate::parts::sweep)); the victims are the same.
//!
//! **Defaults** — F 25, R 5, S 1, `variant=fix-full`, no cap: as gilbert runs it. His *x2* is
//! `f=50,r=10`.

use millpond_base::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::contract::{Access, Hit, HitHook, Zeroed};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::CountOn;
use crate::parts::usage_clock::{Usage, UsageClock, UsageRule, check_count};

config! {
    /// Parameters of [`GclockV1`].
    pub struct GclockV1Config {
        /// F: the count of a page that was just loaded.
        f: u32 = 25, in 0..=1 << 30;
        /// R: a reference adds it to the count.
        r: u32 = 5, in 0..=1 << 30;
        /// S: each pass of the hand subtracts it.
        s: u32 = 1, in 1..=1 << 30;
        /// Events that count as references.
        variant: CountOn = CountOn::FixFull;
        /// Upper limit of a count.
        max: u32 = u32::MAX, in 1..=u32::MAX;
    }
}

/// The parameters of the hit path.
#[derive(Clone, Copy, Default, Debug)]
pub struct V1Params {
    first: u32,
    add: u32,
    max: u32,
}

/// Generalised CLOCK whose hits add.
pub type GclockV1 = UsageClock<Add>;

/// The hot half: a count.
pub struct Add;

impl HitHook for Add {
    type Meta = AtomicU32;
    type Params = V1Params;
    const HIT: Hit = Hit::Meta;
    const UNFIX: bool = true;

    #[inline(always)]
    fn on_hit(count: &AtomicU32, params: &V1Params, _: &Access) {
        Add::refer(count, params);
    }

    #[inline(always)]
    fn reset(count: &AtomicU32, params: &V1Params, _: &Access) {
        count.store(params.first, Relaxed);
    }

    fn zeroed(_: &Self::Params) -> Option<Zeroed<Self::Meta>> {
        Zeroed::fresh()
    }
}

impl UsageRule for Add {
    const INFO: Info = Info {
        id: "gclock-v1",
        summary: "a hand wears down usage counts; a hit adds R to its frame's",
        family: Family::Clock,
        class: Class::Two,
        age: Age::Last,
        references: References::All,
        tier: Tier::First,
        live: true,
        frame_bytes: 4.0,
        ghost_bytes: 0.0,
        source: "gilbert 1.2.10.1",
    };
    type Config = GclockV1Config;

    fn read(config: &GclockV1Config) -> Usage<V1Params> {
        let params = V1Params { first: config.f.min(config.max), add: config.r, max: config.max };
        Usage { params, step: config.s, variant: config.variant }
    }

    #[inline(always)]
    fn count(count: &AtomicU32) -> &AtomicU32 {
        count
    }

    #[inline(always)]
    fn refer(count: &AtomicU32, params: &V1Params) {
        let value = count.load(Relaxed);
        let more = value.saturating_add(params.add).min(params.max);
        // Reading first keeps the line of a page with a full count shared between cores.
        if more != value {
            count.store(more, Relaxed);
        }
    }

    fn check(count: &AtomicU32, params: &V1Params) -> Result<(), String> {
        check_count(count, params.max)
    }
}
