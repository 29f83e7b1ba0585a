//! `random`: a uniformly random frame.
//!
//! **Idea** — Remember nothing, pay nothing: any page may be evicted.
//!
//! **Source** — gilbert 1.2.1; watt 2.
//!
//! **State** — A random generator.
//!
//! **Invariants** — (1) Every resident frame is equally likely to be offered.
//!
//! **Cost** — Hit and admit: nothing. Evict: one draw per offer, as many at once as are wanted. No
//! bytes per frame, no ghosts.
//!
//! **Deviations** — Draws that meet a free or refused frame are repeated until the host's bound,
//! instead of choosing among the resident ones only; the distribution is the same.
//!
//! **Defaults** — No parameters; the seed is the run's.

use millpond_base::FrameId;

use crate::config::NoConfig;
use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, Host, NoHook, OpenPolicy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::Random as Generator;
use crate::parts::offers::offer_sampled;

/// A uniformly random frame.
pub struct Random {
    generator: Generator,
}

impl PolicySpec for Random {
    const INFO: Info = Info {
        id: "random",
        summary: "a uniformly random frame, no state",
        family: Family::Random,
        class: Class::One,
        age: Age::Ignored,
        references: References::Ignored,
        tier: Tier::First,
        live: true,
        frame_bytes: 0.0,
        ghost_bytes: 0.0,
        source: "gilbert 1.2.1, watt 2",
    };
    const IS_RANDOM: bool = true;
    type Hook = NoHook;
    type Config = NoConfig;

    fn new(_config: &NoConfig, shape: &Shape) -> Random {
        Random { generator: Generator::new(shape.seed) }
    }

    fn state_bytes(&self) -> usize {
        0
    }
}

impl OpenPolicy for Random {
    #[inline(always)]
    fn admit(&self, _: Frames<'_, NoHook>, _: FrameId, _: &Access, _: GhostHit) {}

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &self,
        frames: Frames<'_, NoHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        offer_sampled(request, host, |count| self.generator.sample(count, frames.len()))
    }

    #[inline(always)]
    fn evict_alone<H: Host + ?Sized>(
        &mut self,
        frames: Frames<'_, NoHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        offer_sampled(request, host, |count| self.generator.sample_alone(count, frames.len()))
    }

    fn forget(&self, _: Frames<'_, NoHook>, _: FrameId) {}
}
