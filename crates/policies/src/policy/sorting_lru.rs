//! `sorting-lru`: LRU by time stamps that are sorted occasionally.
//!
//! **Idea** — LRU's list makes every hit wait for a latch. Let a hit only write the time, and pay
//! when frames are needed: sort all stamps once, use the order for many evictions.
//!
//! **Source** — gilbert 1.2.4.2, algorithm 1.5.
//!
//! **State** — A stamp beside each frame; two lists of frames with the stamps they had when they
//! were sorted, one being consumed, one for the next sort. See `parts::sorted`.
//!
//! **Invariants** — (1) A resident frame has a stamp. (2) The list that is served names each frame
//! once at most. (3) An entry whose stamp is not its frame's any more is not offered.
//!
//! **Cost** — Hit: one store in the frame's own metadata, no latch. Admit: one store. Evict: one
//! addition and a comparison, and O(log n) amortised for the sorts. 20 bytes per frame, 16 more
//! while sorting; no ghosts.
//!
//! **Deviations** — Threads that find the list consumed while another one sorts yield and try
//! again, within their bound, instead of waiting on a mutex. The clock is the host's and wraps at
//! 2³²; a page unused for longer than that looks young. Without refusals the victims are exactly
//! LRU's for any `resort`, since pages used since a sort are newer than all others.
//!
//! **Defaults** — `resort=75%`, gilbert's. A temporarily refused frame counts as used; a
//! permanently refused one is not offered before it is used again. Both rules are his.

use millpond_base::sync::atomic::Ordering::Relaxed;
use millpond_base::{FrameId, Share};

use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, Host, OpenPolicy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::sorted::{ABSENT, LastStamp, LastStamps, Sorted};

config! {
    /// Parameters of [`SortingLru`].
    pub struct SortingLruConfig {
        /// Share of the sorted list that is consumed before it is re-sorted.
        resort: Share = Share(0.75), in Share(0.0)..=Share(1.0);
    }
}

/// LRU by sorted time stamps.
pub struct SortingLru {
    sorted: Sorted,
}

impl PolicySpec for SortingLru {
    const INFO: Info = Info {
        id: "sorting-lru",
        summary: "LRU by time stamps, sorted when frames are needed; hits take no latch",
        family: Family::Recency,
        class: Class::Two,
        age: Age::Last,
        references: References::Last,
        tier: Tier::First,
        live: true,
        frame_bytes: 20.0,
        ghost_bytes: 0.0,
        source: "gilbert 1.2.4.2",
    };
    type Hook = LastStamp;
    type Config = SortingLruConfig;

    fn new(config: &SortingLruConfig, shape: &Shape) -> SortingLru {
        SortingLru { sorted: Sorted::new(shape.frames, config.resort.0) }
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

impl OpenPolicy for SortingLru {
    #[inline(always)]
    fn admit(&self, _: Frames<'_, LastStamp>, _: FrameId, _: &Access, _: GhostHit) {}

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &self,
        frames: Frames<'_, LastStamp>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        self.sorted.evict(request, host, &LastStamps { frames, now: request.now })
    }

    fn forget(&self, frames: Frames<'_, LastStamp>, frame: FrameId) {
        frames.meta(frame).store(ABSENT, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::NoConfig;
    use crate::contract::RefusalReason;
    use crate::policy::Lru;
    use crate::testing::{TestPool, skewed};

    #[test]
    fn it_is_lru_however_seldom_it_sorts() {
        for resort in [0.0, 0.3, 0.75, 1.0] {
            for frames in [1, 2, 3, 20] {
                let config = SortingLruConfig { resort: Share(resort) };
                let mut ours = TestPool::<SortingLru>::new(&config, frames);
                let mut lru = TestPool::<Lru>::new(&NoConfig {}, frames);
                for page in skewed(60, 2_000, 2) {
                    assert_eq!(ours.reference(page), lru.reference(page), "{resort} {frames}");
                }
            }
        }
    }

    #[test]
    fn a_page_that_can_never_go_is_offered_again_only_after_it_is_used() {
        let mut pool = TestPool::<SortingLru>::new(&SortingLruConfig::default(), 4);
        pool.run(0..4);
        pool.refuse(0, Some(RefusalReason::Permanent));
        pool.run(10..30);
        assert_eq!(pool.host.offered.iter().filter(|f| **f == 0).count(), 1);
        pool.reference(0);
        pool.run(30..40);
        assert_eq!(pool.host.offered.iter().filter(|f| **f == 0).count(), 2);
    }

    #[test]
    fn refusals_drops_and_tiny_pools_leave_it_whole() {
        for spec in ["x", "x(resort=0%)", "x(resort=100%)"] {
            crate::testing::survives_everything::<SortingLru>(spec);
        }
    }
}
