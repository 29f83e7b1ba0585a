//! `opt`: Bélády's MIN, the offline bound: the page that is needed last is evicted.
//!
//! **Idea** — With the future known, evicting the page whose next reference is farthest ahead costs
//! the fewest misses that any demand-paging policy can have.
//!
//! **Source** — gilbert 1.1; leanstore VI-B; Bélády 1966.
//!
//! **State** — A heap of the resident frames by next reference; a dirty flag per frame, for ties.
//!
//! **Invariants** — (1) The heap holds exactly the resident frames. (2) The frame on top is
//! referenced last of all; among pages that are never referenced again, a clean one is above a
//! dirty one, and then the one with the older last reference above the other.
//!
//! **Cost** — Hit: one sift, central. Admit: one sift. Evict: O(log n). 21 bytes per frame, no
//! ghosts. It needs the whole trace before the first reference.
//!
//! **Deviations** — MIN leaves ties open, and they cannot change hits, only writes; the rule of
//! invariant 2 saves writes where that is free. Hits equal libCacheSim's Belady, the WATT authors'
//! and the reference model's in every cell; with `bypass`, Caffeine's Clairvoyant and the reference
//! model's MIN with bypass. With this rule for ties the writes equal those of the
//! WATT authors' simulator, too.
//!
//! **Defaults** — `bypass=false`: every page that is referenced is loaded, as a buffer pool must.
//! `bypass=true` passes a page by when it would be the next victim itself; that is another, better
//! bound, for caches that may.

use millpond_base::FrameId;

use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, NEVER, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::Ranking;

config! {
    /// Parameters of [`Opt`].
    pub struct OptConfig {
        /// Lets a page bypass the cache if it would be the next victim itself.
        bypass: bool = false;
    }
}

/// Bit in the keys of pages with a next reference, which stay longer than those without.
const AGAIN: u64 = 1 << 63;
/// Bit in the keys of dirty pages that are never referenced again.
const DIRTY_NEVER: u64 = 1 << 62;

/// Returns the key of a page that is referenced again at `next`; later references give lesser keys.
#[inline(always)]
fn again(next: u64) -> u64 {
    AGAIN | (AGAIN - 1 - next.min(AGAIN - 1))
}

/// Bélády's MIN.
pub struct Opt {
    bypass: bool,
    ranking: Ranking<u64>,
    dirty: Vec<bool>,
    /// Number of last references so far, which orders pages that are never referenced again by age.
    lasts: u64,
}

impl PolicySpec for Opt {
    const INFO: Info = Info {
        id: "opt",
        summary: "Bélády's MIN: evicts the page whose next reference is farthest ahead",
        family: Family::Offline,
        class: Class::Offline,
        age: Age::Ignored,
        references: References::Ignored,
        tier: Tier::First,
        live: false,
        frame_bytes: 21.0,
        ghost_bytes: 0.0,
        source: "gilbert 1.1, leanstore VI-B",
    };
    const NEEDS_FUTURE: bool = true;
    type Hook = CentralHook;
    type Config = OptConfig;

    fn new(config: &OptConfig, shape: &Shape) -> Opt {
        Opt {
            bypass: config.bypass,
            ranking: Ranking::new(shape.frames),
            dirty: vec![false; shape.frames as usize],
            lasts: 0,
        }
    }

    fn state_bytes(&self) -> usize {
        self.ranking.bytes() + self.dirty.capacity()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.ranking.check_holds(resident)
    }
}

impl Opt {
    /// Returns a page's key; the heap's least key is that of the victim.
    #[inline(always)]
    fn key(&mut self, next: u64, dirty: bool) -> u64 {
        if next == NEVER {
            self.lasts += 1;
            return self.lasts | if dirty { DIRTY_NEVER } else { 0 };
        }
        again(next)
    }
}

impl Policy for Opt {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, access: &Access) {
        let dirty = &mut self.dirty[frame.index()];
        *dirty |= access.mark.is_write();
        let dirty = *dirty;
        let key = self.key(access.next, dirty);
        self.ranking.set(frame.0, key);
    }

    #[inline(always)]
    fn wants(&mut self, access: &Access) -> bool {
        if !self.bypass || self.ranking.len() < self.dirty.len() {
            return true;
        }
        // A page that is never referenced again is not worth any frame.
        let farthest = self.ranking.first().map_or(0, |(key, _)| key);
        access.next != NEVER && again(access.next) > farthest
    }

    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        frame: FrameId,
        access: &Access,
        _recall: GhostHit,
    ) {
        let dirty = access.mark.is_write();
        self.dirty[frame.index()] = dirty;
        let key = self.key(access.next, dirty);
        self.ranking.set(frame.0, key);
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

    fn cleaned(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        self.dirty[frame.index()] = false;
        if let Some(key) = self.ranking.key(frame.0)
            && key & AGAIN == 0
        {
            self.ranking.set(frame.0, key & !DIRTY_NEVER);
        }
    }
}

#[cfg(test)]
mod tests {
    use millpond_base::{Mark, PageId};

    use super::*;
    use crate::contract::RefusalReason;
    use crate::testing::TestPool;

    const R: Mark = Mark::READ;
    const W: Mark = Mark::WRITE;

    #[test]
    fn the_page_needed_last_goes_and_among_the_unneeded_the_oldest_clean_one() {
        let mut pool = TestPool::<Opt>::new(&OptConfig::default(), 4);
        pool.access(1, R, 20);
        pool.access(2, W, NEVER);
        pool.access(3, R, NEVER);
        pool.access(4, R, NEVER);
        pool.access(5, R, 30);
        pool.access(6, R, 25);
        pool.access(7, R, 26);
        pool.access(8, R, 27);
        assert_eq!(pool.host.gone, [3, 4, 2, 5]);
    }

    #[test]
    fn a_dirty_page_that_was_written_back_is_a_clean_one() {
        let mut pool = TestPool::<Opt>::new(&OptConfig::default(), 2);
        pool.access(1, W, NEVER);
        pool.access(2, R, NEVER);
        pool.clean(1);
        pool.access(3, R, NEVER);
        assert_eq!(pool.host.gone, [1]);
    }

    #[test]
    fn refused_frames_are_asked_again_next_time_and_the_next_best_goes() {
        let mut pool = TestPool::<Opt>::new(&OptConfig::default(), 3);
        (1..4).for_each(|page| assert!(!pool.access(page, R, 100 - page)));
        pool.refuse(1, Some(RefusalReason::Pinned));
        pool.refuse(2, Some(RefusalReason::Pinned));
        pool.access(4, R, 5);
        pool.refuse(1, None);
        pool.access(5, R, 6);
        assert_eq!(pool.host.gone, [3, 1]);
    }

    #[test]
    fn a_page_that_would_be_the_next_victim_is_passed_by() {
        let mut pool = TestPool::<Opt>::new(&OptConfig { bypass: true }, 2);
        let access = |next| Access { page: PageId(9), mark: R, now: 0, next, next_read: next };
        assert!(pool.policy.wants(&access(NEVER)), "a frame is free");
        pool.access(1, R, 10);
        pool.access(2, R, 20);
        assert!(pool.policy.wants(&access(19)));
        assert!(!pool.policy.wants(&access(21)));
        assert!(!pool.policy.wants(&access(NEVER)));
    }
}
