//! `tq-io`: the type queue that looks for clean pages first.
//!
//! **Idea** — Evicting a dirty page costs a write. So take clean pages first, of the high queue by
//! predicted read, then of the low queue by recency; only when all are dirty, do as `tq`.
//!
//! **Source** — li 5.5.2 (the extension of algorithm 3.2).
//!
//! **State** — As `tq`, and a dirty flag per page.
//!
//! **Invariants** — (1) Exactly the resident frames are ranked. (2) A frame's class is the one of
//! its queue and its state. (3) The out queue never exceeds its bound.
//!
//! **Cost** — As `tq`; a page that becomes dirty or clean is re-ranked. 76 bytes per frame, 84 per
//! ghost.
//!
//! **Deviations** — As `tq`. An unwanted page that is admitted is evicted before all others of its
//! state.
//!
//! **Defaults** — Out queue as large as the cache: li 3.4.1. A write without a reason counts as
//! REPLACE.

use millpond_base::FrameId;

use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape, TimedCentralHook,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{TypeQueue, TypeQueueConfig};

/// The type queue that looks for clean pages first.
pub struct TqIo {
    queue: TypeQueue,
}

impl PolicySpec for TqIo {
    const INFO: Info = Info {
        id: "tq-io",
        summary: "second tier: type queue, clean pages first",
        family: Family::SecondTier,
        class: Class::Three,
        age: Age::Some,
        references: References::Some,
        tier: Tier::Second,
        live: false,
        frame_bytes: 76.0,
        ghost_bytes: 84.0,
        source: "li 5.5.2",
    };
    type Hook = TimedCentralHook;
    type Config = TypeQueueConfig;

    fn new(config: &TypeQueueConfig, shape: &Shape) -> TqIo {
        TqIo { queue: TypeQueue::new(true, config.out, shape) }
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

impl Policy for TqIo {
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

    fn cleaned(&mut self, _frames: Frames<'_, TimedCentralHook>, frame: FrameId) {
        self.queue.cleaned(frame);
    }
}
