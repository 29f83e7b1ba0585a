//! `lru-io`: clean pages first, by the type of their last request, then LRU among dirty ones.
//!
//! **Idea** — A clean page costs no write when it is evicted, and nothing to return if it is
//! written next. So clean pages are evicted before dirty ones, by the last request, the best
//! predictor of a write first: READ, then RECOV, REPLACE, SYNCH. Dirty pages are evicted by
//! recency.
//!
//! **Source** — li 5.5.2, algorithm 5.2.
//!
//! **State** — Per page the type and the time of its last request; all resident frames in one
//! heap, keyed by class (the clean types, then dirty) and time.
//!
//! **Invariants** — (1) Exactly the resident frames are ranked. (2) A frame's key is its last
//! request's type and time, or dirty and that time.
//!
//! **Cost** — Hit, admit, evict: O(log n). 28 bytes per frame, no ghosts.
//!
//! **Deviations** — One heap instead of four trees and a list, with the same victims. A READ of a
//! dirty page renews its time and its type, by the source's first step. A refused frame keeps its
//! place.
//!
//! **Defaults** — No parameters. A write without a reason counts as REPLACE.

use millpond_base::FrameId;

use crate::config::NoConfig;
use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{Hint, Ranking};

/// Class of dirty pages, after those of the four types.
const DIRTY: u64 = 4;
const CLASS_SHIFT: u32 = 56;
const TIME: u64 = (1 << CLASS_SHIFT) - 1;

/// Clean pages first, by type, then the least recently used dirty one.
pub struct LruIo {
    ranking: Ranking<u64>,
    /// Type of the last request in the high bits, its time in the low bits.
    last: Vec<u64>,
    now: u64,
}

impl LruIo {
    #[inline(always)]
    fn requested(&mut self, frame: FrameId, access: &Access, was_dirty: bool) {
        self.now += 1;
        let last = (Hint::of(access.mark) as u64) << CLASS_SHIFT | self.now;
        self.last[frame.index()] = last;
        let is_dirty = was_dirty || access.mark.is_write();
        self.ranking.set(frame.0, if is_dirty { DIRTY << CLASS_SHIFT | self.now } else { last });
    }
}

impl PolicySpec for LruIo {
    const INFO: Info = Info {
        id: "lru-io",
        summary: "second tier: clean pages first, by their last request's type, then lru",
        family: Family::SecondTier,
        class: Class::Two,
        age: Age::Last,
        references: References::Last,
        tier: Tier::Second,
        live: false,
        frame_bytes: 28.0,
        ghost_bytes: 0.0,
        source: "li 5.5.2, algorithm 5.2",
    };
    type Hook = CentralHook;
    type Config = NoConfig;

    fn new(_config: &NoConfig, shape: &Shape) -> LruIo {
        let last = vec![0; shape.frames as usize];
        LruIo { ranking: Ranking::new(shape.frames), last, now: 0 }
    }

    fn state_bytes(&self) -> usize {
        self.ranking.bytes() + self.last.capacity() * 8
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.ranking.check_holds(resident)?;
        for frame in resident {
            let last = self.last[frame.index()];
            let dirty = DIRTY << CLASS_SHIFT | (last & TIME);
            if self.ranking.key(frame.0).is_none_or(|key| key != last && key != dirty) {
                return Err(format!("invariant 2: the key of {frame:?} is not its last request"));
            }
        }
        Ok(())
    }
}

impl Policy for LruIo {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, access: &Access) {
        let was_dirty = self.ranking.key(frame.0).is_some_and(|k| k >> CLASS_SHIFT == DIRTY);
        self.requested(frame, access, was_dirty);
    }

    #[inline(always)]
    fn admit(&mut self, _: Frames<'_, CentralHook>, frame: FrameId, access: &Access, _: GhostHit) {
        self.requested(frame, access, false);
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

    #[inline(always)]
    fn cleaned(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        if self.ranking.key(frame.0).is_some() {
            self.ranking.set(frame.0, self.last[frame.index()]);
        }
    }
}
