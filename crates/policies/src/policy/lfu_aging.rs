//! `lfu-aging`: LFU whose counts are halved when their average exceeds a bound.
//!
//! **Idea** — A page that was used much once must not stay forever. When the average count exceeds
//! a bound, all counts are halved, so new references weigh more than old ones.
//!
//! **Source** — gilbert 1.2 (list of class 2), after Arlitt, Friedrich and Jin (2000); the halving
//! is Robinson and Devarakonda's (1990).
//!
//! **State** — One list of frames per count; the sum of all counts.
//!
//! **Invariants** — (1) Exactly the resident frames are counted. (2) The sum is the sum of their
//! counts.
//!
//! **Cost** — Hit, admit and evict: O(1); a halving is O(frames), once in about a_max/2 references
//! per frame. 12 bytes per frame and a little per distinct count, no ghosts.
//!
//! **Deviations** — Halves round up, so that no count becomes 0. If two counts become one, the
//! pages with the lesser count are evicted first, whatever their recency. Refusals as in `lfu`.
//!
//! **Defaults** — `a_max=10`: the sources leave it open; ours is low enough to act on database
//! traces. `max_refs`, Arlitt's bound of a single count, is off.

use millpond_base::FrameId;

use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{Buckets, Oldest};

config! {
    /// Parameters of [`LfuAging`].
    pub struct LfuAgingConfig {
        /// Average count above which all counts are halved.
        a_max: u32 = 10, in 2..=u32::MAX;
        /// Upper limit of a single count.
        max_refs: u32 = u32::MAX, in 1..=u32::MAX;
    }
}

/// LFU with halving.
pub struct LfuAging {
    lists: Buckets,
    config: LfuAgingConfig,
}

impl PolicySpec for LfuAging {
    const INFO: Info = Info {
        id: "lfu-aging",
        summary: "LFU whose counts are halved when their average grows",
        family: Family::Frequency,
        class: Class::Two,
        age: Age::Some,
        references: References::All,
        tier: Tier::First,
        live: true,
        frame_bytes: 12.0,
        ghost_bytes: 0.0,
        source: "gilbert 1.2; Arlitt et al. 2000",
    };
    type Hook = CentralHook;
    type Config = LfuAgingConfig;

    fn new(config: &LfuAgingConfig, shape: &Shape) -> LfuAging {
        let lists = Buckets::new(shape.frames);
        LfuAging { lists, config: config.clone() }
    }

    fn state_bytes(&self) -> usize {
        self.lists.bytes()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.lists.check(resident)
    }
}

impl Policy for LfuAging {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, _access: &Access) {
        self.lists.raise(frame.0, self.config.max_refs);
        if self.lists.sum() > u64::from(self.config.a_max) * u64::from(self.lists.len()) {
            self.lists.halve();
        }
    }

    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        frame: FrameId,
        _access: &Access,
        _recall: GhostHit,
    ) {
        self.lists.add(frame.0, 1);
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        self.lists.evict(Oldest::First, request, host, |_, _| {})
    }

    fn forget(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        self.lists.remove(frame.0);
    }
}
