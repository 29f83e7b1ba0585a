//! `t2-mq`: the multi-queue below a first tier, blind to hints.
//!
//! **Idea** — A second tier sees little recency, since pages return after a long time. So count
//! their uses, keep a queue for each range of counts, and remember the counts of evicted pages.
//!
//! **Source** — li 3.3.3, 3.4 (MQ).
//!
//! **State** — Queues of frames by frequency, each by recency; per page a count and the time when
//! it sinks one queue; an out queue of counts.
//!
//! **Invariants** — (1) A resident frame is in exactly one queue. (2) Expiry times ascend in each
//! queue above the lowest. (3) The bit of a queue is set exactly if the queue is not empty. (4)
//! The out queue never exceeds its bound.
//!
//! **Cost** — Hit: relink; all queues are examined only when some page is due to sink. Evict: the
//! lowest queue by a bit set. 24 bytes per frame; 32 per ghost.
//!
//! **Deviations** — Reads and writes both count as uses. A refused frame moves to the back of its
//! queue.
//!
//! **Defaults** — 80 queues of one frequency each, life 20 million requests, out queue as large as
//! the cache: li 3.3.3. `queues=8,rank=log2,life=10000,out=4` is MQ as others run it.

use millpond_base::FrameId;

use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape, TimedCentralHook,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{MultiQueue, MultiQueueConfig};

/// The multi-queue, blind to hints.
pub struct T2Mq {
    queues: MultiQueue,
}

impl PolicySpec for T2Mq {
    const INFO: Info = Info {
        id: "t2-mq",
        summary: "second tier: queues by frequency with an out queue, blind to hints",
        family: Family::SecondTier,
        class: Class::Three,
        age: Age::Last,
        references: References::All,
        tier: Tier::Second,
        live: false,
        frame_bytes: 24.0,
        ghost_bytes: 32.0,
        source: "li 3.3.3, 3.4",
    };
    type Hook = TimedCentralHook;
    type Config = MultiQueueConfig;

    fn new(config: &MultiQueueConfig, shape: &Shape) -> T2Mq {
        T2Mq { queues: MultiQueue::new(config, shape) }
    }

    fn ghosts_max(config: &MultiQueueConfig, frames: u32) -> u64 {
        config.out_max(frames)
    }

    fn state_bytes(&self) -> usize {
        self.queues.bytes()
    }

    fn check(&self, _: Frames<'_, TimedCentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.queues.check(resident)
    }
}

impl Policy for T2Mq {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, TimedCentralHook>, frame: FrameId, access: &Access) {
        self.queues.hit(frame, access);
    }

    #[inline(always)]
    fn miss(&mut self, access: &Access) -> GhostHit {
        self.queues.ghost_hit(access.page)
    }

    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, TimedCentralHook>,
        frame: FrameId,
        access: &Access,
        ghost_hit: GhostHit,
    ) {
        self.queues.admit(frame, access, ghost_hit);
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, TimedCentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        self.queues.evict(request, host, |_frame| ())
    }

    fn forget(&mut self, _frames: Frames<'_, TimedCentralHook>, frame: FrameId) {
        self.queues.forget(frame);
    }
}
