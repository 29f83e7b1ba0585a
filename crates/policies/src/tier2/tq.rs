//! `tq`: the type queue: pages that were read are evicted first, pages written to make room stay.
//!
//! **Idea** — The type of a page's last request predicts its next one. A page that was read is in
//! the first tier now: low priority, by recency. A page that was written to make room will be read
//! here: high priority, and the page with the farthest predicted next read is evicted first. The
//! prediction uses the mean distance between such writes and the reads that followed.
//!
//! **Source** — li 3.3.4, algorithm 3.2.
//!
//! **State** — Low queue, high queue, out queue; per page the position of the first write since
//! the last read, and the sum and number of write-to-read distances.
//!
//! **Invariants** — (1) Exactly the resident frames are ranked. (2) A frame's class is the one of
//! its queue. (3) The out queue never exceeds its bound.
//!
//! **Cost** — Hit, admit and evict: O(log n) in one heap for both queues; RECOV hits nothing. 76
//! bytes per frame; 84 per ghost.
//!
//! **Deviations** — Choices that the source leaves open: A READ of a page in the low queue moves
//! it to the recent end (the text has LRU). A running average is the mean of all distances. A page
//! in the out queue that is written again before it was read returns with its first write's
//! position (only the first write counts). Equal predictions are evicted in order of arrival.
//! While the cache fills, READ and RECOV pages enter the low queue. An unwanted page that is
//! admitted is evicted before the low queue. A refused frame keeps its place.
//!
//! **Defaults** — Out queue as large as the cache: li 3.4.1. A write without a reason counts as
//! REPLACE.

use millpond_base::FrameId;

use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape, TimedCentralHook,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{TypeQueue, TypeQueueConfig};

/// The type queue.
pub struct Tq {
    queue: TypeQueue,
}

impl PolicySpec for Tq {
    const INFO: Info = Info {
        id: "tq",
        summary: "second tier: read pages go first, then the latest predicted read",
        family: Family::SecondTier,
        class: Class::Three,
        age: Age::Some,
        references: References::Some,
        tier: Tier::Second,
        live: false,
        frame_bytes: 76.0,
        ghost_bytes: 84.0,
        source: "li 3.3.4, algorithm 3.2",
    };
    type Hook = TimedCentralHook;
    type Config = TypeQueueConfig;

    fn new(config: &TypeQueueConfig, shape: &Shape) -> Tq {
        Tq { queue: TypeQueue::new(false, config.out, shape) }
    }

    fn ghosts_max(config: &TypeQueueConfig, frames: u32) -> u64 {
        TypeQueue::out_max(config.out, frames)
    }

    fn state_bytes(&self) -> usize {
        self.queue.bytes()
    }

    fn check(&self, _: Frames<'_, TimedCentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.queue.check(resident)
    }
}

impl Policy for Tq {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, TimedCentralHook>, frame: FrameId, access: &Access) {
        self.queue.hit(frame, access);
    }

    #[inline(always)]
    fn wants(&mut self, access: &Access) -> bool {
        self.queue.wants(access)
    }

    #[inline(always)]
    fn miss(&mut self, access: &Access) -> GhostHit {
        self.queue.miss(access)
    }

    #[inline(always)]
    fn admit(&mut self, _: Frames<'_, TimedCentralHook>, frame: FrameId, a: &Access, _: GhostHit) {
        self.queue.admit(frame, a);
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, TimedCentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        self.queue.evict(request, host)
    }

    fn forget(&mut self, _frames: Frames<'_, TimedCentralHook>, frame: FrameId) {
        self.queue.forget(frame);
    }
}
