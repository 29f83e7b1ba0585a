//! `s3-fifo`: three FIFO queues, of which a small one keeps one-hit wonders out of the main one.
//!
//! **Idea** — Most pages are used once. A small queue evicts them quickly. Pages used again while
//! they are in it, or soon after they left it, move to the main queue, where a small counter gives
//! each page one more round per use.
//!
//! **Source** — Yang et al., SOSP 2023.
//!
//! **State** — The small and the main queue over the frames, the ghost queue of pages that left the
//! small one, oldest at the front; a counter beside each frame. With `dirty_rounds`, each frame's
//! extra rounds for being dirty since its last use.
//!
//! **Invariants** — (1) The two queues together hold exactly the resident frames. (2) The ghost
//! queue is not longer than its limit. (3) No counter is above `max`. (4) No frame had more extra
//! rounds for being dirty than `dirty_rounds`.
//!
//! **Cost** — Hit: raise a counter in the frame's own metadata unless it is at its most, no latch.
//! Miss: one lookup among the ghosts. Admit: link. Evict: a sweep, amortised one frame per counted
//! hit, and `dirty_rounds` frames more per dirty victim. 10 bytes per frame, 20 per ghost;
//! `dirty_rounds` takes one byte per frame more.
//!
//! **Deviations** — The two oracles agree in hardly any cell, for three reasons. While the pool
//! fills up for the first time, libCacheSim puts new pages into the main queue once the small one
//! is full (`fill=main`), Caffeine into the small one always (`fill=small`, as the paper). Caffeine
//! tests its threshold by >, so that our `threshold=2` is its 1. And it evicts from the main queue
//! besides when a page joins a full one, where demand paging evicts a single page. Hits equal
//! libCacheSim's in every cell from 20 frames on, below which its small queue admits nothing; with
//! `fill=small` they are within 0.8 % of Caffeine's, mostly within 0.1 %. A refused frame moves to
//! the end of its queue; a queue whose frames were all refused yields to the other. `dirty_rounds`
//! is ours, after LRU-WSR (watt 2.2): the policy asks the host for a page's dirty state when its
//! turn comes, so a page that was written back is evicted like a clean one.
//!
//! **Defaults** — `small=10%`, `ghost=90%`, `threshold=2`, `max=3`: the paper's; `fill=main` as
//! in libCacheSim, which its authors maintain; `dirty_rounds=0`: the paper knows of no writes.

use millpond_base::sync::atomic::{AtomicU8, Ordering::Relaxed};
use millpond_base::{FrameId, PageId};

use crate::config::Part;
use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, Host, PageState, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{Counted, FrameLists, Ghosts, List};

choice! {
    /// The queue for new pages while the pool fills up for the first time.
    pub enum Fill {
        /// The small queue.
        Small = "small",
        /// The small queue until it is full, then the main queue.
        Main = "main",
    }
}

config! {
    /// Parameters of [`S3Fifo`].
    pub struct S3FifoConfig {
        /// Length of the small queue, at least one frame.
        small: Part = Part::Times(0.1);
        /// Pages remembered after they left the small queue.
        ghost: Part = Part::Times(0.9);
        /// Hits in the small queue that move a page to the main queue.
        threshold: u8 = 2, in 1..=255;
        /// Upper limit of counted hits.
        max: u8 = 3, in 1..=255;
        /// Queue for new pages while the pool fills up for the first time.
        fill: Fill = Fill::Main;
        /// Extra rounds in the main queue for a dirty page with counter 0 before its eviction.
        dirty_rounds: u8 = 0, in 0..=15;
    }
}

const SMALL: usize = 0;
const MAIN: usize = 1;
/// The page has a ghost.
const REMEMBERED: GhostHit = GhostHit(1);

/// Three static FIFO queues.
pub struct S3Fifo {
    frames: u32,
    small_max: u32,
    ghosts_max: u64,
    threshold: u8,
    max: u8,
    fills_main: bool,
    dirty_rounds: u8,
    /// Extra rounds of each frame for being dirty; empty without `dirty_rounds`.
    dirty_had: Vec<u8>,
    queues: FrameLists<2>,
    ghosts: Ghosts<()>,
    left: List,
}

impl S3Fifo {
    /// Returns the queue for the next victim, which stays the same until it has given one.
    #[inline(always)]
    fn longer(&self) -> usize {
        let main_max = self.frames - self.small_max;
        let main_is_long = self.queues.len(MAIN) > main_max || self.queues.is_empty(SMALL);
        if main_is_long { MAIN } else { SMALL }
    }

    /// Spares the frame at the front of `from` if it earned another round or the main queue;
    /// returns `true` if so.
    #[inline(always)]
    fn spare<H: Host + ?Sized>(
        &mut self,
        count: &AtomicU8,
        from: usize,
        at: FrameId,
        host: &H,
    ) -> bool {
        let uses = count.load(Relaxed);
        if from == SMALL && uses >= self.threshold {
            count.store(0, Relaxed);
            self.queues.move_to(MAIN, at);
        } else if from == MAIN && uses > 0 {
            count.store(uses - 1, Relaxed);
            self.queues.move_to_back(at);
            self.forget_rounds(at);
        } else {
            return from == MAIN && self.dirty_rounds > 0 && self.spare_dirty(at, host);
        }
        true
    }

    /// Spares the unused frame at the front of the main queue if it is dirty and has a round left;
    /// returns `true` if so.
    fn spare_dirty<H: Host + ?Sized>(&mut self, at: FrameId, host: &H) -> bool {
        let had = &mut self.dirty_had[at.index()];
        if *had >= self.dirty_rounds || host.state(at) != PageState::Dirty {
            return false;
        }
        *had += 1;
        self.queues.move_to_back(at);
        true
    }

    #[inline(always)]
    fn forget_rounds(&mut self, frame: FrameId) {
        if self.dirty_rounds > 0 {
            self.dirty_had[frame.index()] = 0;
        }
    }

    #[inline(always)]
    fn remember(&mut self, page: PageId) {
        if self.ghosts_max > 0 {
            self.ghosts.push(&mut self.left, page, ());
            if self.ghosts.len() as u64 > self.ghosts_max {
                self.ghosts.drop_front(&mut self.left);
            }
        }
    }
}

impl PolicySpec for S3Fifo {
    const INFO: Info = Info {
        id: "s3-fifo",
        summary: "a small FIFO before a main one with counters, and ghosts",
        family: Family::Arrival,
        class: Class::Three,
        age: Age::First,
        references: References::Some,
        tier: Tier::First,
        live: true,
        frame_bytes: 10.0,
        ghost_bytes: 20.0,
        source: "Yang et al. SOSP 2023",
    };
    type Hook = Counted;
    type Config = S3FifoConfig;

    fn new(config: &S3FifoConfig, shape: &Shape) -> S3Fifo {
        let ghosts_max = config.ghost.of(shape.frames);
        let counted = if config.dirty_rounds > 0 { shape.frames as usize } else { 0 };
        S3Fifo {
            frames: shape.frames,
            small_max: config.small.frames_of(shape.frames).max(1),
            ghosts_max,
            threshold: config.threshold,
            max: config.max,
            fills_main: config.fill == Fill::Main,
            dirty_rounds: config.dirty_rounds,
            dirty_had: vec![0; counted],
            queues: FrameLists::new(shape.frames),
            ghosts: Ghosts::new(shape.pages_dense, ghosts_max.min(u64::from(shape.frames)) + 1),
            left: List::new(),
        }
    }

    fn params(&self) -> u8 {
        self.max
    }

    fn ghosts_max(config: &S3FifoConfig, frames: u32) -> u64 {
        config.ghost.of(frames)
    }

    #[inline(always)]
    fn will_reference(&self, page: PageId) {
        self.ghosts.prefetch(page);
    }

    fn state_bytes(&self) -> usize {
        self.queues.bytes() + self.ghosts.bytes() + self.dirty_had.capacity()
    }

    fn check(&self, frames: Frames<'_, Counted>, resident: &[FrameId]) -> Result<(), String> {
        self.queues.check(resident).map_err(|e| format!("invariant 1: {e}"))?;
        self.left.check(&self.ghosts.links)?;
        if self.ghosts.len() as u64 > self.ghosts_max {
            return Err(format!("invariant 2: {} ghosts", self.ghosts.len()));
        }
        if let Some(frame) = self.dirty_had.iter().position(|had| *had > self.dirty_rounds) {
            return Err(format!("invariant 4: the rounds of frame {frame}"));
        }
        match resident.iter().find(|f| frames.meta(**f).load(Relaxed) > self.max) {
            Some(frame) => Err(format!("invariant 3: the counter of frame {}", frame.0)),
            None => Ok(()),
        }
    }
}

impl Policy for S3Fifo {
    #[inline(always)]
    fn miss(&mut self, access: &Access) -> GhostHit {
        let Some(ghost) = self.ghosts.find(access.page) else { return GhostHit::NONE };
        self.ghosts.drop_from(&mut self.left, ghost);
        REMEMBERED
    }

    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, Counted>,
        frame: FrameId,
        _access: &Access,
        ghost_hit: GhostHit,
    ) {
        let overflows = self.fills_main && self.queues.len(SMALL) >= self.small_max;
        let queue = if ghost_hit == REMEMBERED || overflows { MAIN } else { SMALL };
        self.forget_rounds(frame);
        self.queues.push_back(queue, frame);
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        frames: Frames<'_, Counted>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        self.fills_main = false;
        let (mut taken, mut steps, mut refused) = (0, 0, [0; 2]);
        let mut wanted = self.longer();
        while taken < request.frames && steps < request.steps_max {
            if self.queues.is_empty(wanted) {
                wanted = self.longer();
            }
            let Some(from) = self.queues.source(wanted, &refused) else { break };
            let Some(at) = self.queues.front(from) else { break };
            steps += 1;
            if self.spare(frames.meta(at), from, at, host) {
                // It may be offered when its turn comes again, which is worth another round.
                refused[MAIN] = 0;
                continue;
            }
            match host.take(at) {
                Ok((frame, page)) => {
                    taken += 1;
                    if self.queues.remove(frame) == SMALL {
                        self.remember(page);
                    }
                    wanted = self.longer();
                }
                Err(_why) => {
                    self.queues.move_to_back(at);
                    refused[from] += 1;
                }
            }
        }
        taken
    }

    fn forget(&mut self, _frames: Frames<'_, Counted>, frame: FrameId) {
        self.queues.remove(frame);
    }
}

#[cfg(test)]
mod tests {
    use millpond_base::Mark;

    use super::*;
    use crate::contract::RefusalReason;
    use crate::testing::{TestPool, survives_everything};

    #[test]
    fn one_hit_wonders_leave_by_the_small_queue_and_may_come_back_to_the_main_one() {
        let mut pool = TestPool::<S3Fifo>::of("s3-fifo(fill=small,small=20%)", 10);
        // 1 is used three times, all others once.
        pool.run([1, 1, 1]);
        pool.run(2..30);
        assert!(pool.reference(1));
        assert_eq!(pool.policy.queues.len(MAIN), 1);
        // 20 left lately: its ghost sends it to the main queue.
        assert!(!pool.reference(20) && pool.policy.queues.len(MAIN) == 2);
    }

    #[test]
    fn a_count_buys_as_many_rounds_in_the_main_queue() {
        let mut pool = TestPool::<S3Fifo>::of("s3-fifo(small=1)", 2);
        // The pool fills: 1 in the small queue, 2 in the main one, used twice.
        pool.run([1, 2, 2, 2]);
        pool.run([3, 4, 5]);
        assert_eq!(pool.pages(), [2, 5]);
    }

    /// Makes a pool of eight frames: 1 is in the small queue, the others are in the main one, 2 and
    /// 3 are dirty.
    fn with_dirty_pages(spec: &str) -> TestPool<S3Fifo> {
        let mut pool = TestPool::<S3Fifo>::of(spec, 8);
        pool.reference(1);
        [2, 3].into_iter().for_each(|page| assert!(!pool.access(page, Mark::WRITE, 0)));
        pool.run([4, 5, 6, 7, 8]);
        assert_eq!(pool.policy.queues.len(MAIN), 7);
        pool
    }

    #[test]
    fn a_dirty_page_gets_its_rounds_once_and_a_use_gives_them_again() {
        let mut pool = with_dirty_pages("s3-fifo(small=1)");
        assert_eq!(pool.evict(8), 8);
        assert_eq!(pool.host.gone, [1, 2, 3, 4, 5, 6, 7, 8], "without rounds: as they came");
        let mut pool = with_dirty_pages("s3-fifo(small=1,dirty_rounds=1)");
        assert_eq!(pool.evict(2), 2);
        assert_eq!(pool.host.gone, [1, 4], "2 and 3 are spared");
        // 2 had its round. 3 is used, which is worth one round, and has one more for being dirty. 5
        // is refused, and counts the times that 3 is skipped.
        assert!(pool.reference(3));
        pool.refuse(5, Some(RefusalReason::Latched));
        assert_eq!(pool.evict(5), 5);
        assert_eq!(pool.host.gone, [1, 4, 6, 7, 8, 2, 3]);
        assert_eq!(pool.host.offered.iter().filter(|frame| **frame == 4).count(), 3);
    }

    #[test]
    fn rounds_are_as_many_as_are_given() {
        // With k rounds, k of three passes over the dirty page leave it where it is.
        for rounds in 0..=3u8 {
            let spec = format!("s3-fifo(small=1,dirty_rounds={rounds})");
            let mut pool = TestPool::<S3Fifo>::of(&spec, 4);
            pool.reference(0);
            assert!(!pool.access(1, Mark::WRITE, 0));
            pool.run([2, 3]);
            pool.drop_page(0);
            // The dirty page is before the two clean ones, which are refused and go round.
            [2, 3].into_iter().for_each(|page| pool.refuse(page, Some(RefusalReason::Latched)));
            assert_eq!(pool.evict(1), 1);
            let latched = pool.host.offered.iter().filter(|frame| **frame >= 2).count();
            assert_eq!(latched, 2 * usize::from(rounds), "{spec}");
        }
    }

    #[test]
    fn a_page_written_back_meanwhile_goes_as_a_clean_one() {
        let mut pool = with_dirty_pages("s3-fifo(small=1,dirty_rounds=3)");
        pool.clean(2);
        assert_eq!(pool.evict(3), 3);
        assert_eq!(pool.host.gone, [1, 2, 4], "2 is clean now, 3 is not");
    }

    #[test]
    fn a_page_in_a_frame_used_before_gets_rounds_of_its_own() {
        let mut pool = with_dirty_pages("s3-fifo(small=1,dirty_rounds=1)");
        assert_eq!(pool.evict(2), 2);
        assert_eq!(pool.policy.dirty_had[1], 1);
        pool.drop_page(2);
        assert!(!pool.access(9, Mark::WRITE, 0));
        let frame = pool.frame_of(9).unwrap();
        assert_eq!(pool.policy.dirty_had[frame.index()], 0);
    }

    #[test]
    fn dirty_pages_only_give_a_victim_after_their_rounds() {
        for rounds in 0..4 {
            let spec = format!("s3-fifo(small=1,dirty_rounds={rounds})");
            let mut pool = TestPool::<S3Fifo>::of(&spec, 8);
            (0..8).for_each(|page| assert!(!pool.access(page, Mark::WRITE, 0)));
            (1..8).for_each(|page| pool.refuse(page, Some(RefusalReason::Dirty)));
            pool.refuse(4, None);
            assert_eq!((pool.evict(2), &pool.host.gone[..]), (2, &[0, 4][..]), "{spec}");
        }
    }

    #[test]
    fn refusals_drops_and_tiny_pools_break_nothing() {
        for spec in [
            "s3-fifo",
            "s3-fifo(fill=small,threshold=1)",
            "s3-fifo(small=all,ghost=0)",
            "s3-fifo(small=0,ghost=all,max=1)",
            "s3-fifo(dirty_rounds=1)",
            "s3-fifo(small=1,dirty_rounds=15,max=1)",
        ] {
            survives_everything::<S3Fifo>(spec);
        }
    }
}
