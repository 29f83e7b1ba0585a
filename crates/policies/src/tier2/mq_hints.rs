//! `mq-hints`: the multi-queue over the pages that leave the first tier.
//!
//! **Idea** — MQ, to which only pages written to make room (SYNCH, REPLACE) are shown: READ and
//! RECOV requests change nothing, since their pages are in the first tier.
//!
//! **Source** — li 3.3.3.
//!
//! **State** — As `t2-mq`, and a flag for the end of the cold start.
//!
//! **Invariants** — (1) A resident frame is in exactly one queue. (2) Expiry times ascend in each
//! queue above the lowest. (3) The bit of a queue is set exactly if the queue is not empty. (4)
//! The out queue never exceeds its bound. (5) The cold start's count is that of the resident
//! frames.
//!
//! **Cost** — As `t2-mq`; a hit with a negative hint costs nothing. 24 bytes per frame, 32 per
//! ghost.
//!
//! **Deviations** — While the cache fills, every page is treated as under MQ. An unwanted page
//! that is admitted enters at the front of the lowest queue with its count from the out queue: it
//! is the next victim, unless it is written to make room before. Requests that change nothing
//! still let time pass.
//!
//! **Defaults** — As `t2-mq` (li 3.3.3). A write without a reason counts as REPLACE.

use millpond_base::FrameId;

use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape, TimedCentralHook,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{ColdStart, Hint, MultiQueue, MultiQueueConfig};

/// The multi-queue over the pages that leave the first tier.
pub struct MqHints {
    queues: MultiQueue,
    start: ColdStart,
}

impl PolicySpec for MqHints {
    const INFO: Info = Info {
        id: "mq-hints",
        summary: "second tier: multi-queue over pages written to make room, others pass by",
        family: Family::SecondTier,
        class: Class::Three,
        age: Age::Last,
        references: References::Some,
        tier: Tier::Second,
        live: false,
        frame_bytes: 24.0,
        ghost_bytes: 32.0,
        source: "li 3.3.3",
    };
    type Hook = TimedCentralHook;
    type Config = MultiQueueConfig;

    fn new(config: &MultiQueueConfig, shape: &Shape) -> MqHints {
        MqHints { queues: MultiQueue::new(config, shape), start: ColdStart::new(shape.frames) }
    }

    fn ghosts_max(config: &MultiQueueConfig, frames: u32) -> u64 {
        config.out_max(frames)
    }

    fn state_bytes(&self) -> usize {
        self.queues.bytes()
    }

    fn check(&self, _: Frames<'_, TimedCentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.queues.check(resident)?;
        let (counted, there) = (self.start.resident() as usize, resident.len());
        if counted != there {
            return Err(format!("invariant 5: {counted} frames counted, {there} resident"));
        }
        Ok(())
    }
}

impl Policy for MqHints {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, TimedCentralHook>, frame: FrameId, access: &Access) {
        if Hint::of(access.mark).is_positive() {
            self.queues.hit(frame, access);
        }
    }

    #[inline(always)]
    fn wants(&mut self, access: &Access) -> bool {
        Hint::of(access.mark).is_positive() || !self.start.is_over()
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
        if Hint::of(access.mark).is_positive() || !self.start.is_over() {
            self.queues.admit(frame, access, ghost_hit);
        } else {
            self.queues.admit_as_victim(frame, ghost_hit);
        }
        self.start.came();
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, TimedCentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        self.start.evicting();
        let start = &mut self.start;
        self.queues.evict(request, host, |_frame| start.went())
    }

    fn forget(&mut self, _frames: Frames<'_, TimedCentralHook>, frame: FrameId) {
        self.queues.forget(frame);
        self.start.went();
    }
}
