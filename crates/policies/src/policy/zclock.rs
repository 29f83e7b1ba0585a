//! `zclock`: CLOCK whose hand jumps at random.
//!
//! **Idea** — Random replacement with a second chance: a drawn frame whose usage bit is set loses
//! it and stays. No hand to share between threads.
//!
//! **Source** — gilbert 1.2.9.
//!
//! **State** — A usage bit beside each frame; a random generator.
//!
//! **Invariants** — (1) A frame whose bit is set is not offered. (2) Every frame is equally likely
//! to be examined.
//!
//! **Cost** — Hit: set a mark in the frame's own metadata if it is not set. Admit: one store.
//! Evict: draws until one is unmarked, about √frames of them if all are marked. 1 byte per frame,
//! no ghosts.
//!
//! **Deviations** — gilbert draws by SplitMix32; ours is the crate's generator, seeded. The host
//! refuses a drawn free frame, and the policy draws on, whatever the frame's bit is.
//!
//! **Defaults** — `variant=fix`, as gilbert runs it: hits mark, a loaded page enters unmarked.
//! `unfix` and `fix-unfix` end the loading access with the bit on; `full` also marks a frame that
//! could not be evicted.

use millpond_base::FrameId;

use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, HitOn, Host, OpenPolicy, PolicySpec, RefusalReason,
    Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::Random as Generator;
use crate::parts::mark::{MarkOn, MarkOnHit, second_chance};

config! {
    /// Parameters of [`Zclock`].
    pub struct ZclockConfig {
        /// Events that set the usage bit.
        variant: MarkOn = MarkOn::Fix;
    }
}

/// Second chance by a hand that jumps.
pub struct Zclock {
    variant: MarkOn,
    generator: Generator,
}

impl PolicySpec for Zclock {
    const INFO: Info = Info {
        id: "zclock",
        summary: "CLOCK whose hand jumps at random",
        family: Family::Clock,
        class: Class::Two,
        age: Age::Ignored,
        references: References::Last,
        tier: Tier::First,
        live: true,
        frame_bytes: 1.0,
        ghost_bytes: 0.0,
        source: "gilbert 1.2.9",
    };
    const IS_RANDOM: bool = true;
    type Hook = MarkOnHit;
    type Config = ZclockConfig;

    fn new(config: &ZclockConfig, shape: &Shape) -> Zclock {
        Zclock { variant: config.variant, generator: Generator::new(shape.seed) }
    }

    fn hit_on(&self) -> HitOn {
        self.variant.hit_on()
    }

    fn state_bytes(&self) -> usize {
        0
    }
}

impl OpenPolicy for Zclock {
    #[inline(always)]
    fn admit(&self, _: Frames<'_, MarkOnHit>, _: FrameId, _: &Access, _: GhostHit) {}

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &self,
        frames: Frames<'_, MarkOnHit>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        let hand = || FrameId(self.generator.below(frames.len()));
        let marks = |why| self.variant == MarkOn::Full && why != RefusalReason::Absent;
        second_chance(frames, request, host, hand, marks)
    }

    fn forget(&self, _: Frames<'_, MarkOnHit>, _: FrameId) {}
}
