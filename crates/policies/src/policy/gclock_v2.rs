//! `gclock-v2`: a hand wears down usage counts; a hit sets its frame's count to R.
//!
//! **Idea** — CLOCK's bit becomes a count that a hit sets to R. It records the number of sweeps
//! since the last reference, up to R: a finer approximation of LRU, in which frequency does not
//! matter.
//!
//! **Source** — gilbert 1.2.10, 1.2.10.2; luan 4.3 (after Effelsberg and Härder 1984).
//!
//! **State** — A usage count beside each frame; the hand, a counter of frames passed.
//!
//! **Invariants** — (1) Only a frame whose count is 0 is offered. (2) No count exceeds the larger
//! of F and R.
//!
//! **Cost** — Hit: load, and a store if the count changes, in the frame's own metadata. Admit: one
//! store. Evict: a sweep; F and R pay for each step, so at most F/S steps per miss and R/S per
//! hit. 4 bytes per frame, no ghosts.
//!
//! **Deviations** — A round that can find no victim is skipped
//! ([`parts::sweep`](crate::parts::sweep)); the victims are the same. With `f=0, r=1, variant=fix`
//! it is CLOCK with the bit off on load, as in gilbert's text, and with `f=1, r=1` CLOCK with the
//! bit on.
//!
//! **Defaults** — F 25, R 5, S 1, `variant=unfix-full`: as gilbert runs it. His *x2* is `f=50,
//! r=10`; luan's GCLOCK is `f=5,r=5,s=1,variant=fix`.

use millpond_base::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::contract::{Access, Hit, HitHook, Zeroed};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::CountOn;
use crate::parts::usage_clock::{Usage, UsageClock, UsageRule, check_count};

config! {
    /// Parameters of [`GclockV2`].
    pub struct GclockV2Config {
        /// F: the count of a page that was just loaded.
        f: u32 = 25, in 0..=1 << 30;
        /// R: a reference sets the count to it.
        r: u32 = 5, in 0..=1 << 30;
        /// S: each pass of the hand subtracts it.
        s: u32 = 1, in 1..=1 << 30;
        /// Events that count as references.
        variant: CountOn = CountOn::UnfixFull;
    }
}

/// The parameters of the hit path.
#[derive(Clone, Copy, Default, Debug)]
pub struct V2Params {
    first: u32,
    set: u32,
}

/// Generalised CLOCK whose hits set.
pub type GclockV2 = UsageClock<Set>;

/// The hot half: a count.
pub struct Set;

impl HitHook for Set {
    type Meta = AtomicU32;
    type Params = V2Params;
    const HIT: Hit = Hit::Meta;
    const UNFIX: bool = true;

    #[inline(always)]
    fn on_hit(count: &AtomicU32, params: &V2Params, _: &Access) {
        Set::refer(count, params);
    }

    #[inline(always)]
    fn reset(count: &AtomicU32, params: &V2Params, _: &Access) {
        count.store(params.first, Relaxed);
    }

    fn zeroed(_: &Self::Params) -> Option<Zeroed<Self::Meta>> {
        Zeroed::fresh()
    }
}

impl UsageRule for Set {
    const INFO: Info = Info {
        id: "gclock-v2",
        summary: "a hand wears down usage counts; a hit sets to R its frame's",
        family: Family::Clock,
        class: Class::Two,
        age: Age::Last,
        references: References::Last,
        tier: Tier::First,
        live: true,
        frame_bytes: 4.0,
        ghost_bytes: 0.0,
        source: "gilbert 1.2.10.2, luan 4.3",
    };
    type Config = GclockV2Config;

    fn read(config: &GclockV2Config) -> Usage<V2Params> {
        let params = V2Params { first: config.f, set: config.r };
        Usage { params, step: config.s, variant: config.variant }
    }

    #[inline(always)]
    fn count(count: &AtomicU32) -> &AtomicU32 {
        count
    }

    #[inline(always)]
    fn refer(count: &AtomicU32, params: &V2Params) {
        // Reading first keeps a hot page's line shared between cores.
        if count.load(Relaxed) != params.set {
            count.store(params.set, Relaxed);
        }
    }

    fn check(count: &AtomicU32, params: &V2Params) -> Result<(), String> {
        check_count(count, params.first.max(params.set))
    }
}
