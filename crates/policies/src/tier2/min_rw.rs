//! `min-rw`: offline, the page whose next read is farthest ahead, without passing pages by.
//!
//! **Idea** — Bélády's rule for a cache that also sees writes: keep the pages that will be read
//! soonest. It has the fewest reads and, blind to dirty pages, many writes.
//!
//! **Source** — li 5.3 (MIN-RW; MIN-RD in its table 5.6).
//!
//! **State** — A heap of the resident frames by the position of their page's next read.
//!
//! **Invariants** — (1) Exactly the resident frames are ranked.
//!
//! **Cost** — Hit, admit, evict: O(log n). 28 bytes per frame, no ghosts.
//!
//! **Deviations** — Among pages that are never read again the one that was requested longest ago is
//! evicted. A refused frame keeps its place.
//!
//! **Defaults** — No parameters.

use std::cmp::Reverse;

use millpond_base::FrameId;

use crate::config::NoConfig;
use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::Ranking;

/// The page whose next read is farthest ahead.
pub struct MinRw {
    ranking: Ranking<(Reverse<u64>, u64)>,
    now: u64,
}

impl MinRw {
    #[inline(always)]
    fn rank(&mut self, frame: FrameId, access: &Access) {
        self.now += 1;
        self.ranking.set(frame.0, (Reverse(access.next_read), self.now));
    }
}

impl PolicySpec for MinRw {
    const INFO: Info = Info {
        id: "min-rw",
        summary: "second tier, offline: the page whose next read lies farthest ahead",
        family: Family::Offline,
        class: Class::Offline,
        age: Age::Ignored,
        references: References::Ignored,
        tier: Tier::Second,
        live: false,
        frame_bytes: 28.0,
        ghost_bytes: 0.0,
        source: "li 5.3",
    };
    const NEEDS_FUTURE: bool = true;
    type Hook = CentralHook;
    type Config = NoConfig;

    fn new(_config: &NoConfig, shape: &Shape) -> MinRw {
        MinRw { ranking: Ranking::new(shape.frames), now: 0 }
    }

    fn state_bytes(&self) -> usize {
        self.ranking.bytes()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.ranking.check_holds(resident)
    }
}

impl Policy for MinRw {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, access: &Access) {
        self.rank(frame, access);
    }

    #[inline(always)]
    fn admit(&mut self, _: Frames<'_, CentralHook>, frame: FrameId, access: &Access, _: GhostHit) {
        self.rank(frame, access);
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        self.ranking.evict(request, host, |_frame, _page| ()).0
    }

    fn forget(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        self.ranking.remove(frame.0);
    }
}
