//! `w-tinylfu`: a page enters the main cache only if it is used more than the victim.
//!
//! **Idea** — Count the recent uses of every page, resident or not, in a sketch of half a byte per
//! counter. New pages pass through a small LRU window; the page that leaves it contends with the
//! main cache's victim, and the more frequent of the two stays.
//!
//! **Source** — Einziger, Friedman & Manes, ACM TOS 2017.
//!
//! **State** — The window, the probation and the protected list over the frames, oldest at the
//! front; the list and the page of each frame; the sketch.
//!
//! **Invariants** — (1) The three lists together hold exactly the resident frames. (2) The
//! protected list is not longer than its limit. (3) After an admission neither is the window.
//!
//! **Cost** — Hit: relink and four counters, central. Admit: link. Evict: eight counters, unlink,
//! O(1). 17 bytes per frame and 8 for the sketch, rounded up to a power of two; no ghosts, the
//! sketch remembers for them.
//!
//! **Deviations** — The sketch's hashes are our own, and hits depend on them: they are within 4 %
//! of the Caffeine simulator's, mostly within 1 %. libCacheSim's are up to 13 % off either, for it
//! fills the main cache's upper segments with new pages. There is no doorkeeper, the Bloom filter
//! that keeps pages seen once out of the paper's sketch: ours counts every reference. A reference
//! raises all four of a page's counters, not only the least of them, so that estimates err upwards
//! a little more. There is no jitter against crafted collisions, and the window does not adapt.
//! The page in the main cache wins ties. A refused frame moves to the recent end of its list; if
//! the loser is refused, the winner is evicted, then any page that can be.
//!
//! **Defaults** — `window=1%`, `protected=80%`, `sample=10`: the paper's.

use millpond_base::{FrameId, PageId};

use crate::config::{Multiple, Part};
use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{FrameLists, Sketch, offer_in_turn};

config! {
    /// Parameters of [`WTinyLfu`].
    pub struct WTinyLfuConfig {
        /// Part of the pool for the window, at least one frame.
        window: Part = Part::Times(0.01);
        /// Part of the rest that is protected.
        protected: Part = Part::Times(0.8);
        /// References, as a multiple of the pool, after which all counts are halved.
        sample: Multiple = Multiple(10.0);
    }
}

const WINDOW: usize = 0;
const PROBATION: usize = 1;
const PROTECTED: usize = 2;

/// Window TinyLFU.
pub struct WTinyLfu {
    window_max: u32,
    protected_max: u32,
    lists: FrameLists<3>,
    page_of: Vec<u64>,
    sketch: Sketch,
}

impl WTinyLfu {
    #[inline(always)]
    fn estimate(&self, frame: FrameId) -> u32 {
        self.sketch.estimate(PageId(self.page_of[frame.index()]))
    }

    /// Returns the lists in the order in which they give a victim.
    #[inline(always)]
    fn order(&self) -> [usize; 3] {
        let window_first = [WINDOW, PROBATION, PROTECTED];
        let main_first = [PROBATION, PROTECTED, WINDOW];
        if self.lists.len(WINDOW) < self.window_max {
            return main_first;
        }
        match (self.lists.front(WINDOW), self.lists.front(PROBATION)) {
            (Some(candidate), Some(victim)) if self.estimate(candidate) > self.estimate(victim) => {
                main_first
            }
            _ => window_first,
        }
    }
}

impl PolicySpec for WTinyLfu {
    const INFO: Info = Info {
        id: "w-tinylfu",
        summary: "an LRU window before a segmented LRU that admits the more frequent page",
        family: Family::Mixed,
        class: Class::Three,
        age: Age::Last,
        references: References::All,
        tier: Tier::First,
        live: true,
        frame_bytes: 25.0,
        ghost_bytes: 0.0,
        source: "Einziger et al. TOS 2017",
    };
    type Hook = CentralHook;
    type Config = WTinyLfuConfig;

    fn new(config: &WTinyLfuConfig, shape: &Shape) -> WTinyLfu {
        let window_max = config.window.frames_of(shape.frames).max(1);
        WTinyLfu {
            window_max,
            protected_max: config.protected.frames_of(shape.frames - window_max),
            lists: FrameLists::new(shape.frames),
            page_of: vec![0; shape.frames as usize],
            sketch: Sketch::new(shape.frames, config.sample.of(shape.frames)),
        }
    }

    fn state_bytes(&self) -> usize {
        self.lists.bytes() + self.page_of.capacity() * size_of::<u64>() + self.sketch.bytes()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.lists.check(resident).map_err(|e| format!("invariant 1: {e}"))?;
        let (window, protected) = (self.lists.len(WINDOW), self.lists.len(PROTECTED));
        if protected > self.protected_max {
            return Err(format!("invariant 2: {protected} frames are protected"));
        }
        if window > self.window_max {
            return Err(format!("invariant 3: {window} frames are in the window"));
        }
        Ok(())
    }
}

impl Policy for WTinyLfu {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, access: &Access) {
        self.sketch.count(access.page);
        if self.lists.list_of(frame) == WINDOW {
            return self.lists.move_to_back(frame);
        }
        self.lists.move_to(PROTECTED, frame);
        if self.lists.len(PROTECTED) > self.protected_max
            && let Some(oldest) = self.lists.front(PROTECTED)
        {
            self.lists.move_to(PROBATION, oldest);
        }
    }

    #[inline(always)]
    fn miss(&mut self, access: &Access) -> GhostHit {
        self.sketch.count(access.page);
        GhostHit::NONE
    }

    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        frame: FrameId,
        access: &Access,
        _recall: GhostHit,
    ) {
        self.page_of[frame.index()] = access.page.0;
        self.lists.push_back(WINDOW, frame);
        if self.lists.len(WINDOW) > self.window_max
            && let Some(oldest) = self.lists.front(WINDOW)
        {
            self.lists.move_to(PROBATION, oldest);
        }
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        offer_in_turn(
            request,
            host,
            &mut (self, [0; 3]),
            |(lfu, refused)| {
                let open = |list: &usize| refused[*list] < lfu.lists.len(*list);
                lfu.lists.front(lfu.order().into_iter().find(open)?)
            },
            |(lfu, _), frame, _page| _ = lfu.lists.remove(frame),
            |(lfu, refused), frame, _why| lfu.lists.pass_over(frame, refused),
        )
    }

    fn forget(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        self.lists.remove(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestPool, survives_everything};

    #[test]
    fn a_scan_does_not_displace_pages_that_are_used_often() {
        let mut pool = TestPool::<WTinyLfu>::of("w-tinylfu", 100);
        for _ in 0..4 {
            pool.run(0..90);
        }
        // Fewer references than the sample, so nothing is forgotten.
        pool.run(1_000..1_400);
        assert!(pool.run(0..90) >= 85);
    }

    #[test]
    fn refusals_drops_and_tiny_pools_break_nothing() {
        for spec in [
            "w-tinylfu",
            "w-tinylfu(window=all)",
            "w-tinylfu(protected=0,sample=0)",
            "w-tinylfu(window=50%,protected=all)",
        ] {
            survives_everything::<WTinyLfu>(spec);
        }
    }
}
