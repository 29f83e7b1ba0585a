//! `age-scan`: a hand walks over the pool and evicts pages older than a threshold.
//!
//! **Idea** — LRU without a list: stamp pages when they are used, walk over the memory from time to
//! time, and take pages that were not used for long enough. The order among the old ones does not
//! matter much.
//!
//! **Source** — watt 2.1, on WiredTiger; WiredTiger's description of its eviction.
//!
//! **State** — A stamp beside each frame; the hand; a queue of candidates from the last walk,
//! sorted by age. See `parts::sorted`.
//!
//! **Invariants** — (1) A resident frame has a stamp. (2) The queue names each frame once at most.
//! (3) A candidate that was used since the walk is not offered.
//!
//! **Cost** — Hit: one store in the frame's own metadata, no latch. Admit: one store. Evict: one
//! addition and a comparison, and for each walk `walk` frames, of which at least the share `least`
//! and up to all become victims. 20 bytes per frame, no ghosts.
//!
//! **Deviations** — WiredTiger walks trees, has several queues, and scores pages by kind; here
//! frames are walked in their order, with one queue. Its clock counts walks, this one references.
//! If too few pages are older than the threshold, the oldest of the walk are evicted, so that there
//! is always a victim. A refused frame counts as used just now, and the walks of that eviction also
//! take young pages. A permanently refused frame is skipped until it is used again.
//!
//! **Defaults** — `age=1x`: a page is old if it was not used during as many references as the pool
//! has frames, the least age at which LRU would evict. `walk=300`, the size of WiredTiger's walk;
//! `least=10%` of it, as WiredTiger's minimum.

use std::cell::Cell;

use millpond_base::sync::atomic::{AtomicU64, Ordering::Relaxed};
use millpond_base::{FrameId, Share};

use crate::config::Part;
use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, Host, OpenPolicy, PolicySpec, RefusalReason, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::sorted::{ABSENT, Candidate, LastStamp, LastStamps, Sorted, Stamps, recency};

config! {
    /// Parameters of [`AgeScan`].
    pub struct AgeScanConfig {
        /// References since its last use that make a page old: a part of the pool's frames, or a
        /// number.
        age: Part = Part::Times(1.0);
        /// Frames that the hand passes at a time.
        walk: u32 = 300, in 1..=1_000_000_000, counts frames;
        /// Share of the passed frames that become candidates even if they are not old, at least one
        /// frame.
        least: Share = Share(0.1), in Share(0.0)..=Share(1.0);
    }
}

/// A walk for old pages.
pub struct AgeScan {
    sorted: Sorted,
    hand: AtomicU64,
    age: u32,
    walk: u32,
    least: usize,
}

struct View<'a> {
    scan: &'a AgeScan,
    stamps: LastStamps<'a>,
    /// `true` once this eviction met a refusal; from then on it takes any frame.
    refused: Cell<bool>,
}

impl Stamps for View<'_> {
    fn collect(&self, candidates: &mut Vec<Candidate>) {
        let (frames, walk) = (self.stamps.frames.len(), self.scan.walk);
        // More than one walk is needed only if the first found only free and permanent frames.
        for _ in 0..frames.div_ceil(walk) {
            let from = self.scan.hand.fetch_add(walk.into(), Relaxed);
            let passed = (from..from + u64::from(walk)).map(|at| (at % u64::from(frames)) as u32);
            candidates.extend(passed.filter_map(|frame| self.stamps.candidate(frame)));
            if !candidates.is_empty() {
                break;
            }
        }
        if self.refused.get() {
            return;
        }
        candidates.sort_unstable_by_key(|c| c.order);
        let now = self.stamps.now;
        let threshold = recency(now.wrapping_sub(self.scan.age), now).into();
        let old = candidates.partition_point(|c| c.order <= threshold);
        candidates.truncate(old.max(self.scan.least));
    }

    #[inline(always)]
    fn is_current(&self, frame: FrameId, stamp: u32) -> bool {
        self.stamps.is_current(frame, stamp)
    }

    #[inline(always)]
    fn taken(&self, frame: FrameId, stamp: u32) {
        self.stamps.taken(frame, stamp);
    }

    fn refused(&self, frame: FrameId, why: RefusalReason) {
        self.refused.set(true);
        self.stamps.refused(frame, why);
    }
}

impl PolicySpec for AgeScan {
    const INFO: Info = Info {
        id: "age-scan",
        summary: "a hand walks over the pool for pages older than a threshold (WiredTiger)",
        family: Family::Recency,
        class: Class::Two,
        age: Age::Last,
        references: References::Last,
        tier: Tier::First,
        live: true,
        frame_bytes: 20.0,
        ghost_bytes: 0.0,
        source: "watt 2.1; WiredTiger",
    };
    type Hook = LastStamp;
    type Config = AgeScanConfig;

    fn new(config: &AgeScanConfig, shape: &Shape) -> AgeScan {
        let walk = config.walk.clamp(1, shape.frames.max(1));
        AgeScan {
            sorted: Sorted::new(shape.frames, 1.0),
            hand: AtomicU64::new(0),
            age: config.age.of(shape.frames).min(1 << 31) as u32,
            walk,
            least: ((f64::from(walk) * config.least.0) as usize).max(1),
        }
    }

    fn state_bytes(&self) -> usize {
        self.sorted.bytes()
    }

    fn check(&self, frames: Frames<'_, LastStamp>, resident: &[FrameId]) -> Result<(), String> {
        self.sorted.check()?;
        match resident.iter().find(|f| frames.meta(**f).load(Relaxed) == ABSENT) {
            Some(frame) => Err(format!("invariant 1: frame {} has no stamp", frame.0)),
            None => Ok(()),
        }
    }
}

impl OpenPolicy for AgeScan {
    #[inline(always)]
    fn admit(&self, _: Frames<'_, LastStamp>, _: FrameId, _: &Access, _: GhostHit) {}

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &self,
        frames: Frames<'_, LastStamp>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        if frames.is_empty() {
            return 0;
        }
        self.sorted.evict(
            request,
            host,
            &View {
                scan: self,
                stamps: LastStamps { frames, now: request.now },
                refused: Cell::new(false),
            },
        )
    }

    fn forget(&self, frames: Frames<'_, LastStamp>, frame: FrameId) {
        frames.meta(frame).store(ABSENT, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{NoConfig, Spec};
    use crate::policy::Lru;
    use crate::testing::{TestPool, skewed};

    fn pool(spec: &str, frames: u32) -> TestPool<AgeScan> {
        TestPool::new(&Spec::parse(spec).unwrap().config().unwrap(), frames)
    }

    #[test]
    fn pages_used_within_the_threshold_stay_while_there_are_older_ones() {
        let mut pool = pool("x(age=20,walk=40)", 40);
        pool.run((0..40).chain(0..10));
        pool.run((100..110).flat_map(|p| [p, p - 100]));
        let (pages, hot) = (pool.pages(), 0..10);
        assert!(hot.into_iter().all(|p| pages.contains(&p)), "{pages:?}");
    }

    #[test]
    fn walks_over_the_whole_pool_for_the_oldest_page_are_lru() {
        let (mut ours, mut lru) = (pool("x(age=all,least=0%)", 15), lru(15));
        for page in skewed(50, 2_000, 3) {
            assert_eq!(ours.reference(page), lru.reference(page));
        }
    }

    fn lru(frames: u32) -> TestPool<Lru> {
        TestPool::new(&NoConfig {}, frames)
    }

    #[test]
    fn refusals_drops_and_tiny_pools_leave_it_whole() {
        for spec in ["x", "x(walk=1)", "x(age=0,walk=3)", "x(age=all,walk=5,least=0%)"] {
            crate::testing::survives_everything::<AgeScan>(spec);
        }
    }
}
