//! `lru-2-history`: LRU-2 with a correlated period and a retained history of fixed sizes.
//!
//! **Idea** — Both of LRU-2's tunables are times, which nobody knows how to set. Set them by space
//! instead, as 2Q does: the quarter of the cache that was referenced last is in its correlated
//! period, and the history remembers half as many evicted pages as the cache has frames.
//!
//! **Source** — luan 4.5, with the sizes of 4.6; the algorithm is O'Neil, O'Neil and Weikum's
//! (SIGMOD 1993).
//!
//! **State** — For each frame its last two uncorrelated references and the last of all; the list
//! of the frames in their correlated period by recency; a list of the frames that know one
//! reference; a lazy heap of those that know two; the ghosts. See `parts::kth`.
//!
//! **Invariants** — (1) A resident frame is in its correlated period, below, or in the heap. (2)
//! Frames in the heap know two references, those below one. (3) A key in the heap is not above its
//! frame's second last reference. (4) There are no more ghosts than `history` allows.
//!
//! **Cost** — Hit: relink, central; O(log n) if the frame was in the heap. Admit: link. Evict:
//! O(1) while frames are below, else O(log n). 54 bytes per frame, 36 per ghost.
//!
//! **Deviations** — luan names a heap for the pages in their correlated period. Its content has no
//! order, so a list serves. The paper does not define these pages; here they are the ones
//! referenced last. The correlated period is therefore the time in which that many pages are
//! referenced. A refused frame is in its period again.
//!
//! **Defaults** — `correlated=25%`, `history=50%` of the cache, luan's.

use millpond_base::FrameId;

use crate::config::Part;
use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::Kth;
use crate::parts::kth::{Below, Period};

config! {
    /// Parameters of [`Lru2History`].
    pub struct Lru2HistoryConfig {
        /// Frames whose pages are in their correlated period.
        correlated: Part = Part::Times(0.25);
        /// Evicted pages with remembered references.
        history: Part = Part::Times(0.5);
    }
}

/// LRU-2 with both of its periods measured in pages.
pub struct Lru2History {
    order: Kth,
}

impl PolicySpec for Lru2History {
    const INFO: Info = Info {
        id: "lru-2-history",
        summary: "LRU-2 with a correlated period and a retained history, sized as 2Q's queues",
        family: Family::Mixed,
        class: Class::Three,
        age: Age::Some,
        references: References::Some,
        tier: Tier::First,
        live: true,
        frame_bytes: 54.0,
        ghost_bytes: 36.0,
        source: "luan 4.5",
    };
    type Hook = CentralHook;
    type Config = Lru2HistoryConfig;

    fn new(config: &Lru2HistoryConfig, shape: &Shape) -> Lru2History {
        let period = Period::Pages(config.correlated.frames_of(shape.frames));
        let history = config.history.of(shape.frames);
        Lru2History { order: Kth::new(shape, 2, Below::Lru, period, history) }
    }

    fn ghosts_max(config: &Lru2HistoryConfig, frames: u32) -> u64 {
        config.history.of(frames)
    }

    fn state_bytes(&self) -> usize {
        self.order.bytes()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.order.check(resident)
    }
}

impl Policy for Lru2History {
    #[inline(always)]
    fn hit(&mut self, _: Frames<'_, CentralHook>, frame: FrameId, _: &Access) {
        self.order.hit(frame.0);
    }

    #[inline(always)]
    fn miss(&mut self, access: &Access) -> GhostHit {
        self.order.miss(access.page);
        GhostHit::NONE
    }

    #[inline(always)]
    fn admit(&mut self, _: Frames<'_, CentralHook>, frame: FrameId, access: &Access, _: GhostHit) {
        self.order.admit(frame.0, access.page);
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        self.order.evict(request, host)
    }

    fn forget(&mut self, _: Frames<'_, CentralHook>, frame: FrameId) {
        self.order.remove(frame.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Spec;
    use crate::policy::LruK;
    use crate::testing::{TestPool, skewed};

    /// luan 5.1: the pollution ratio of a sequential scan is the parameter, 25 %.
    #[test]
    fn a_scan_pollutes_as_much_of_the_cache_as_its_correlated_part() {
        let mut pool = TestPool::<Lru2History>::new(&Lru2HistoryConfig::default(), 100);
        pool.run((0..100).chain(0..100).chain(0..100));
        pool.run(1_000..2_000);
        let scanned = pool.pages().iter().filter(|p| **p >= 1_000).count();
        assert!(scanned == 25 || scanned == 26, "{scanned} of 100");
    }

    /// luan 3.2.1: each page read several times in a row costs what reading it once costs.
    #[test]
    fn correlated_references_change_nothing() {
        let string = skewed(80, 3_000, 4);
        let mut once = TestPool::<Lru2History>::new(&Lru2HistoryConfig::default(), 20);
        let mut thrice = TestPool::<Lru2History>::new(&Lru2HistoryConfig::default(), 20);
        for page in string {
            let hit = once.reference(page);
            assert_eq!(thrice.run([page, page, page]), 2 + usize::from(hit));
        }
    }

    #[test]
    fn without_a_correlated_part_it_is_lru_2_with_that_history() {
        let config: Lru2HistoryConfig =
            Spec::parse("x(correlated=0%,history=50%)").unwrap().config().unwrap();
        let mut ours = TestPool::<Lru2History>::new(&config, 16);
        let config = Spec::parse("x(history=50%)").unwrap().config().unwrap();
        let mut lru_2 = TestPool::<LruK>::new(&config, 16);
        for page in skewed(60, 3_000, 9) {
            assert_eq!(ours.reference(page), lru_2.reference(page));
        }
    }

    #[test]
    fn refusals_drops_and_tiny_pools_leave_it_whole() {
        for spec in ["x", "x(correlated=all,history=all)", "x(correlated=1,history=1)"] {
            crate::testing::survives_everything::<Lru2History>(spec);
        }
    }
}
