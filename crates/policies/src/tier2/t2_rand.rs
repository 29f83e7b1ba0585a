//! `t2-rand`: a uniformly random page, below a first tier.
//!
//! **Idea** — The point of comparison that costs nothing: every page is admitted, any page is
//! evicted.
//!
//! **Source** — li 3.4.1 (RAND).
//!
//! **State** — A random generator.
//!
//! **Invariants** — (1) Every resident frame is equally likely to be offered.
//!
//! **Cost** — Hit and admit: nothing. Evict: one draw per offer. No bytes per frame, no ghosts.
//!
//! **Deviations** — None. The source lets it act like its optimum while the cache fills and on
//! hits, so nothing happens then. It admits every page.
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

/// A uniformly random page.
pub struct T2Rand {
    generator: Generator,
}

impl PolicySpec for T2Rand {
    const INFO: Info = Info {
        id: "t2-rand",
        summary: "second tier: a uniformly random page, no state",
        family: Family::SecondTier,
        class: Class::One,
        age: Age::Ignored,
        references: References::Ignored,
        tier: Tier::Second,
        live: false,
        frame_bytes: 0.0,
        ghost_bytes: 0.0,
        source: "li 3.4.1",
    };
    const IS_RANDOM: bool = true;
    type Hook = NoHook;
    type Config = NoConfig;

    fn new(_config: &NoConfig, shape: &Shape) -> T2Rand {
        T2Rand { generator: Generator::new(shape.seed) }
    }

    fn state_bytes(&self) -> usize {
        0
    }
}

impl OpenPolicy for T2Rand {
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

    fn forget(&self, _: Frames<'_, NoHook>, _: FrameId) {}
}
