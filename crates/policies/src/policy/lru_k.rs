//! `lru-k`: the page with the oldest K-th last reference is evicted.
//!
//! **Idea** — One reference proves little: a scan makes one too. The distance to the K-th last
//! reference distinguishes often used pages from pages used once, and forgets old fame.
//!
//! **Source** — gilbert 1.2.6 and 1.2.6.1; the correlated reference period and the retained
//! history as O'Neil, O'Neil and Weikum define them (SIGMOD 1993), which luan 4.5 uses, too.
//!
//! **State** — For each frame the times of its last K references, counted in references; a list of
//! the frames that know fewer; a lazy heap of the others by their K-th last one; with a correlated
//! period the list of the frames in it; with a history the ghosts. See `parts::kth`.
//!
//! **Invariants** — (1) A resident frame is in its correlated period, below, or in the heap. (2)
//! Frames in the heap know K references and those below fewer. (3) A key in the heap is not above
//! its frame's K-th last reference. (4) There are no more ghosts than `history` allows.
//!
//! **Cost** — Hit: shift K stamps, central; the first K may move the frame. Admit: link. Evict:
//! O(1) while frames are below, else O(log n), amortised over the hits. 8 K + 30 bytes per frame,
//! 8 more with a period; 8 (K − 1) + 28 bytes per ghost.
//!
//! **Deviations** — gilbert keeps all K·n references in one list, which gives the same victims in
//! O(1) but cannot insert a returning page in the middle, as a history must; his pseudo-references
//! are the list of the frames below. A refused frame counts as referenced now, as with him. He
//! found that the list stalls an engine whose pool is smaller than the data (1.3.4): once nearly
//! all frames know K references, the page loaded last is the next victim. Here a call offers no
//! more frames than the host lets it examine, and a live pool refuses the pages that its
//! starvation guard holds for an operation. History is bounded by a number of ghosts, not by an
//! age, as luan does it. With a correlated period, frames below are ordered by the end of their
//! period; if every frame is in its period, the one referenced least recently is evicted. Times
//! count the policy's events: hits, loads, refusals. From libCacheSim, WATT and the reference
//! model, K = 2, with and without history: none. For K = 3 the reference model is `below=lru`.
//!
//! **Defaults** — `k=2` (the catalog, luan); `below=fifo` (gilbert and libCacheSim);
//! `history=none`, `correlated=0`, so that results compare with other simulators.

use millpond_base::FrameId;

use crate::config::{Param, Part};
use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::Kth;
use crate::parts::kth::{Below, Period};

choice! {
    /// The order among pages with fewer than K references.
    pub enum BelowOrder {
        /// By time of load.
        Fifo = "fifo",
        /// By last reference.
        Lru = "lru",
    }
}

/// Number of pages remembered after they left: `none`, or a part of the pool, or `all`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Retained(pub Part);

impl Param for Retained {
    fn read(text: &str) -> Option<Self> {
        match text {
            "none" => Some(Retained(Part::Count(0))),
            text => Part::read(text).map(Retained),
        }
    }

    fn write(&self) -> String {
        match self.0 {
            Part::Count(0) => "none".to_string(),
            part => part.write(),
        }
    }

    fn takes() -> String {
        format!("none, or {}", Part::takes())
    }

    fn scaled(&self, share: f64) -> Retained {
        Retained(self.0.scaled(share))
    }
}

config! {
    /// Parameters of [`LruK`].
    pub struct LruKConfig {
        /// References known of each page.
        k: u8 = 2, in 1..=8;
        /// Order among pages with fewer than K references.
        below: BelowOrder = BelowOrder::Fifo;
        /// Evicted pages with remembered references.
        history: Retained = Retained(Part::Count(0));
        /// References after a reference to a page during which further references to it count as
        /// the same.
        correlated: u64 = 0, in 0..=1_000_000_000_000, counts references;
    }
}

/// Least recent K-th last reference.
pub struct LruK {
    order: Kth,
}

impl PolicySpec for LruK {
    const INFO: Info = Info {
        id: "lru-k",
        summary: "the K-th last reference decides; history and correlated period on request",
        family: Family::Mixed,
        class: Class::Two,
        age: Age::Some,
        references: References::Some,
        tier: Tier::First,
        live: true,
        frame_bytes: 46.0,
        ghost_bytes: 36.0,
        source: "gilbert 1.2.6.1, luan 4.5",
    };
    type Hook = CentralHook;
    type Config = LruKConfig;

    fn new(config: &LruKConfig, shape: &Shape) -> LruK {
        let below = match config.below {
            BelowOrder::Fifo => Below::Fifo,
            BelowOrder::Lru => Below::Lru,
        };
        let period = Period::References(config.correlated);
        let history = config.history.0.of(shape.frames);
        LruK { order: Kth::new(shape, config.k, below, period, history) }
    }

    fn ghosts_max(config: &LruKConfig, frames: u32) -> u64 {
        config.history.0.of(frames)
    }

    fn state_bytes(&self) -> usize {
        self.order.bytes()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.order.check(resident)
    }
}

impl Policy for LruK {
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
    use crate::config::{NoConfig, Spec};
    use crate::policy::Lru;
    use crate::testing::{TestPool, skewed};

    fn pool(spec: &str, frames: u32) -> TestPool<LruK> {
        TestPool::new(&Spec::parse(spec).unwrap().config().unwrap(), frames)
    }

    /// Returns the evicted pages, one by one, until none is left.
    fn departures(pool: &mut TestPool<LruK>) -> Vec<u64> {
        let mut gone = Vec::new();
        while let before = pool.pages()
            && pool.evict(1) == 1
        {
            let after = pool.pages();
            gone.extend(before.iter().filter(|p| !after.contains(p)));
        }
        gone
    }

    /// gilbert figure 1.7: LRU-3 with five frames. Page 10 is the figure's p0'.
    #[test]
    fn figure_1_7_is_reproduced() {
        let string = [4, 3, 2, 3, 2, 4, 2, 0, 4, 0, 3, 1];
        let mut fifo = pool("lru-k(k=3)", 5);
        fifo.run(string);
        fifo.reference(10);
        assert_eq!(fifo.pages(), [1, 2, 3, 4, 10]);
        fifo.reference(1);
        assert_eq!(departures(&mut fifo), [1, 10, 4, 3, 2]);
        let mut lru = pool("lru-k(k=3,below=lru)", 5);
        lru.run(string.into_iter().chain([10, 1]));
        assert_eq!(departures(&mut lru), [10, 1, 4, 3, 2]);
    }

    #[test]
    fn lru_1_is_lru() {
        let (mut one, mut lru) = (pool("lru-k(k=1)", 10), TestPool::<Lru>::new(&NoConfig {}, 10));
        for page in skewed(40, 3_000, 8) {
            assert_eq!(one.reference(page), lru.reference(page));
        }
    }

    /// Slow and obvious twin, with every page's references in a list, and the victim found by a
    /// scan.
    fn twin(k: usize, keeps: bool, period: u64, frames: usize, string: &[u64]) -> usize {
        use std::collections::HashMap;
        let mut hist: HashMap<u64, (Vec<u64>, u64)> = HashMap::new();
        let (mut resident, mut hits) = (Vec::new(), 0);
        for (now, &page) in (1u64..).zip(string) {
            if resident.contains(&page) {
                hits += 1;
                let (times, last) = hist.get_mut(&page).unwrap();
                if now - *last > period {
                    let held = *last - times[0];
                    times.iter_mut().for_each(|t| *t += held);
                    times.insert(0, now);
                    times.truncate(k);
                }
                *last = now;
                continue;
            }
            if resident.len() == frames {
                let order = |p: &u64| {
                    let (times, last) = &hist[p];
                    let kth = times.get(k - 1).copied().unwrap_or(0);
                    (now - last <= period, if now - last <= period { 0 } else { kth }, *last)
                };
                let at = (0..frames).min_by_key(|&i| order(&resident[i])).unwrap();
                let gone = resident.remove(at);
                if !keeps {
                    hist.remove(&gone);
                }
            }
            resident.push(page);
            let (times, last) = hist.entry(page).or_default();
            times.insert(0, now);
            times.truncate(k);
            *last = now;
        }
        hits
    }

    #[test]
    fn an_obvious_twin_has_the_same_hits() {
        for seed in 0..6 {
            let string = skewed(60, 3_000, seed);
            for (k, keeps, period) in [(2, false, 0), (2, true, 0), (3, true, 0), (2, true, 4)] {
                let history = if keeps { "all" } else { "none" };
                let spec = format!("lru-k(k={k},history={history},correlated={period},below=lru)");
                let hits = pool(&spec, 14).run(string.iter().copied());
                assert_eq!(hits, twin(k, keeps, period, 14, &string), "{spec}, seed {seed}");
            }
        }
    }

    #[test]
    fn a_bounded_history_forgets_the_page_that_left_first() {
        let mut pool = pool("lru-k(history=2)", 2);
        // 1, 2 and 3 leave in that order: 1 is forgotten, 2 and 3 come back with two references.
        pool.run([1, 2, 3, 4, 5]);
        pool.run([2, 3, 1]);
        assert_eq!(departures(&mut pool)[0], 1);
    }

    #[test]
    fn refusals_drops_and_tiny_pools_leave_it_whole() {
        for spec in [
            "lru-k",
            "lru-k(k=8,history=1)",
            "lru-k(k=1,history=all,correlated=3)",
            "lru-k(k=3,below=lru,history=2x,correlated=5)",
            "lru-k(correlated=1000000)",
        ] {
            crate::testing::survives_everything::<LruK>(spec);
        }
    }
}
