//! `tide`: S3-FIFO whose small queue swells and shrinks, and whose dirty pages stay longer.
//!
//! **Idea** — Ours. The time for which a new page must be watched before its eviction depends on
//! the workload and the pool: a fixed small queue is too long for one and too short for another. So
//! let the ghosts of both queues decide which of them is too short. A write costs more than a read,
//! so an unused dirty page is spared for some rounds before it is evicted.
//!
//! **Source** — The queues are S3-FIFO's (Yang et al., SOSP 2023), the adaptation is after ARC's
//! (Megiddo & Modha, FAST 2003), the rounds of dirty pages are after LRU-WSR (watt 2.2).
//!
//! **State** — The small and the main queue over the frames, oldest at the front; for each of them
//! a queue of ghosts; the target length of the small queue; a counter beside each frame, and its
//! extra rounds for being dirty since its last use.
//!
//! **Invariants** — (1) The two queues together hold exactly the resident frames. (2) No queue of
//! ghosts is longer than its limit. (3) No counter is above `max`. (4) No frame had more extra
//! rounds for being dirty than `dirty_rounds`. (5) The small queue's target is within `least` and
//! `most`, and at least one frame.
//!
//! **Cost** — Hit: raise a counter in the frame's own metadata unless it is at its most, no latch.
//! Miss: one lookup among the ghosts. Admit: link. Evict: a sweep, amortised one frame per counted
//! hit, and `dirty_rounds` frames more per dirty victim. 11 bytes per frame, 28 per ghost.
//!
//! **Deviations** — From S3-FIFO: One use in the small queue leads to the main one. A page with a
//! ghost of the main queue enters the small one, since it had its time. The small queue starts
//! short. There are fewer ghosts, so only pages that return soon skip the small queue. From ARC: As
//! there, a page in one list of ghosts moves the target by the ratio of the other list's length to
//! its own, at least by one frame. But it is the target of a FIFO of pages used once, and the lists
//! of ghosts have fixed lengths.
//!
//! **Defaults** — Chosen by the 90th percentile of the regret on the tuning half of the traces in
//! docs/reports/choosing/regret.md, before the other half was run.

use millpond_base::sync::atomic::{AtomicU8, Ordering::Relaxed};
use millpond_base::{FrameId, PageId, Share};

use crate::config::{ParamError, Part};
use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, Host, PageState, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{Counted, FrameLists, Ghosts, List};

config! {
    /// Parameters of [`Tide`].
    pub struct TideConfig {
        /// Length of the small queue at the beginning, at least one frame.
        small: Part = Part::Times(0.05);
        /// Share of the frames below which the small queue never shrinks.
        least: Share = Share(0.01);
        /// Share of the frames above which the small queue never grows.
        most: Share = Share(0.4);
        /// Pages remembered after they left the small queue.
        ghost: Part = Part::Times(0.35);
        /// Pages remembered after they left the main queue.
        main_ghost: Part = Part::Times(0.1);
        /// Hits in the small queue that move a page to the main queue.
        threshold: u8 = 1, in 1..=255;
        /// Upper limit of counted hits.
        max: u8 = 3, in 1..=255;
        /// Extra rounds in the main queue for a dirty page with counter 0 before its eviction.
        dirty_rounds: u8 = 3, in 0..=15;
    }
    check ordered;
}

fn ordered(config: &TideConfig) -> Result<(), ParamError> {
    if config.least.0 <= config.most.0 {
        return Ok(());
    }
    Err(ParamError::Impossible {
        name: "least".to_string(),
        value: crate::config::Param::write(&config.least),
        reason: "it must not be above 'most'".to_string(),
    })
}

const SMALL: usize = 0;
const MAIN: usize = 1;
/// The page has a ghost of the small queue.
const REMEMBERED: GhostHit = GhostHit(1);

/// Two FIFO queues, one with a length that the ghosts of both determine.
pub struct Tide {
    frames: u32,
    small: f64,
    bounds: (f64, f64),
    ghosts_max: [u64; 2],
    threshold: u8,
    max: u8,
    fills_main: bool,
    dirty_rounds: u8,
    /// Extra rounds of each frame for being dirty.
    dirty_had: Vec<u8>,
    queues: FrameLists<2>,
    /// Ghosts, each with the queue that its page left.
    ghosts: Ghosts<u8>,
    left: [List; 2],
}

impl Tide {
    /// Returns the queue for the next victim, which stays the same until it has given one.
    #[inline(always)]
    fn longer(&self) -> usize {
        let main_max = self.frames - self.small as u32;
        let main_is_long = self.queues.len(MAIN) > main_max || self.queues.is_empty(SMALL);
        if main_is_long { MAIN } else { SMALL }
    }

    /// Adapts the target to a returning page that left `queue` lately, since that queue was too
    /// short.
    #[inline(always)]
    fn adapt(&mut self, queue: usize) {
        let len = |queue: usize| f64::from(self.left[queue].len());
        let step = (len(1 - queue) / len(queue).max(1.0)).max(1.0);
        let wanted = if queue == SMALL { self.small + step } else { self.small - step };
        self.small = wanted.clamp(self.bounds.0, self.bounds.1);
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
        if from == SMALL {
            if uses < self.threshold {
                return false;
            }
            count.store(0, Relaxed);
            self.queues.move_to(MAIN, at);
            return true;
        }
        let had = &mut self.dirty_had[at.index()];
        if uses > 0 {
            count.store(uses - 1, Relaxed);
            *had = 0;
        } else if *had < self.dirty_rounds && host.state(at) == PageState::Dirty {
            *had += 1;
        } else {
            return false;
        }
        self.queues.move_to_back(at);
        true
    }

    #[inline(always)]
    fn remember(&mut self, page: PageId, from: usize) {
        if self.ghosts_max[from] > 0 {
            self.ghosts.push(&mut self.left[from], page, from as u8);
            if u64::from(self.left[from].len()) > self.ghosts_max[from] {
                self.ghosts.drop_front(&mut self.left[from]);
            }
        }
    }
}

impl PolicySpec for Tide {
    const INFO: Info = Info {
        id: "tide",
        summary: "S3-FIFO with a small queue sized by ghosts, whose dirty pages stay longer",
        family: Family::WriteAware,
        class: Class::Three,
        age: Age::First,
        references: References::Some,
        tier: Tier::First,
        live: true,
        frame_bytes: 11.0,
        ghost_bytes: 28.0,
        source: "ours; Yang et al. SOSP 2023, Megiddo & Modha FAST 2003",
    };
    type Hook = Counted;
    type Config = TideConfig;

    fn new(config: &TideConfig, shape: &Shape) -> Tide {
        let frames = f64::from(shape.frames);
        let bound = |share: Share| (share.0 * frames).clamp(1.0, frames.max(1.0));
        let bounds = (bound(config.least), bound(config.most));
        let ghosts_max = [config.ghost.of(shape.frames), config.main_ghost.of(shape.frames)];
        let room = |queue: usize| ghosts_max[queue].min(u64::from(shape.frames)) + 1;
        Tide {
            frames: shape.frames,
            small: f64::from(config.small.frames_of(shape.frames)).clamp(bounds.0, bounds.1),
            bounds,
            ghosts_max,
            threshold: config.threshold,
            max: config.max,
            fills_main: true,
            dirty_rounds: config.dirty_rounds,
            dirty_had: vec![0; shape.frames as usize],
            queues: FrameLists::new(shape.frames),
            ghosts: Ghosts::new(shape.pages_dense, room(SMALL) + room(MAIN)),
            left: [List::new(); 2],
        }
    }

    fn params(&self) -> u8 {
        self.max
    }

    fn ghosts_max(config: &TideConfig, frames: u32) -> u64 {
        config.ghost.of(frames).saturating_add(config.main_ghost.of(frames))
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
        for (list, most) in self.left.iter().zip(self.ghosts_max) {
            list.check(&self.ghosts.links)?;
            if u64::from(list.len()) > most {
                return Err(format!("invariant 2: {} ghosts", list.len()));
            }
        }
        if let Some(frame) = resident.iter().find(|f| frames.meta(**f).load(Relaxed) > self.max) {
            return Err(format!("invariant 3: the counter of frame {}", frame.0));
        }
        if let Some(frame) = self.dirty_had.iter().position(|had| *had > self.dirty_rounds) {
            return Err(format!("invariant 4: the rounds of frame {frame}"));
        }
        if !(self.bounds.0..=self.bounds.1).contains(&self.small) || self.small < 1.0 {
            return Err(format!("invariant 5: a small queue of {}", self.small));
        }
        Ok(())
    }
}

impl Policy for Tide {
    #[inline(always)]
    fn miss(&mut self, access: &Access) -> GhostHit {
        let Some(ghost) = self.ghosts.find(access.page) else { return GhostHit::NONE };
        let from = usize::from(*self.ghosts.memory(ghost));
        self.adapt(from);
        self.ghosts.drop_from(&mut self.left[from], ghost);
        if from == SMALL { REMEMBERED } else { GhostHit::NONE }
    }

    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, Counted>,
        frame: FrameId,
        _access: &Access,
        ghost_hit: GhostHit,
    ) {
        let overflows = self.fills_main && f64::from(self.queues.len(SMALL)) >= self.small;
        let queue = if ghost_hit == REMEMBERED || overflows { MAIN } else { SMALL };
        self.dirty_had[frame.index()] = 0;
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
                    let left = self.queues.remove(frame);
                    self.remember(page, left);
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
    use crate::testing::{TestPool, skewed, survives_everything};

    #[test]
    fn one_use_is_enough_and_a_scan_passes_by_the_main_queue() {
        let mut pool = TestPool::<Tide>::of("tide(small=4,ghost=0,main_ghost=0)", 20);
        pool.run(0..20);
        let kept: Vec<u64> = (4..20).collect();
        pool.run(kept.iter().copied());
        // Pages that are not used again leave by the small queue, in any number.
        pool.run(100..200);
        assert!(kept.iter().all(|page| pool.frame_of(*page).is_some()), "{:?}", pool.pages());
        // A page that is used in the small queue stays, and the one after it is evicted.
        pool.reference(198);
        pool.run(300..303);
        assert!(pool.frame_of(198).is_some() && pool.frame_of(199).is_none());
    }

    #[test]
    fn ghosts_of_the_small_queue_make_it_longer_and_those_of_the_main_one_shorter() {
        let spec = "tide(small=4,least=10%,most=50%,ghost=all,main_ghost=all)";
        let mut pool = TestPool::<Tide>::of(spec, 20);
        pool.run(0..20);
        assert_eq!(pool.policy.small, 4.0);
        pool.run(100..110);
        let small = pool.policy.left[SMALL].len();
        assert!(small > 0 && pool.policy.left[MAIN].is_empty());
        // It left the small queue, so it enters the main one.
        assert!(!pool.reference(100));
        assert_eq!((pool.policy.small, pool.policy.left[SMALL].len()), (5.0, small - 1));
        let frame = pool.frame_of(100).unwrap();
        assert_eq!(pool.policy.queues.list_of(frame), MAIN);
        let gone: Vec<u64> = (101..110).filter(|page| pool.frame_of(*page).is_none()).collect();
        gone.iter().for_each(|page| assert!(!pool.reference(*page)));
        assert!(!pool.policy.left[MAIN].is_empty(), "pages from the main queue left, too");
        assert!(pool.policy.small <= 10.0, "`most` holds");
        let before = pool.policy.small;
        let ghost = pool.policy.left[MAIN].front().unwrap();
        let page = pool.policy.ghosts.page(ghost);
        assert!(!pool.reference(page.0));
        assert!(pool.policy.small < before, "{} after {before}", pool.policy.small);
        let frame = pool.frame_of(page.0).unwrap();
        assert_eq!(pool.policy.queues.list_of(frame), SMALL, "it is watched again");
    }

    #[test]
    fn dirty_pages_are_passed_by_and_clean_ones_are_not() {
        for (rounds, gone) in [(0, [1, 2, 3]), (1, [3, 4, 5])] {
            let spec = format!("tide(small=1,dirty_rounds={rounds})");
            let mut pool = TestPool::<Tide>::of(&spec, 8);
            pool.reference(0);
            [1, 2].into_iter().for_each(|page| assert!(!pool.access(page, Mark::WRITE, 0)));
            pool.run(3..8);
            assert_eq!(pool.evict(4), 4);
            assert_eq!(pool.host.gone[1..], gone, "{spec}");
        }
        let mut pool = TestPool::<Tide>::of("tide(small=1)", 4);
        pool.reference(0);
        assert!(!pool.access(1, Mark::WRITE, 0));
        pool.run([2, 3]);
        pool.clean(1);
        assert_eq!((pool.evict(2), &pool.host.gone[..]), (2, &[0, 1][..]), "written back");
    }

    #[test]
    fn bounds_hold_whatever_comes_and_must_be_ordered() {
        let mut pool = TestPool::<Tide>::of("tide(least=10%,most=30%,ghost=2x,main_ghost=2x)", 30);
        let mut sizes = Vec::new();
        for page in skewed(200, 5_000, 3) {
            pool.reference(page);
            sizes.push(pool.policy.small);
        }
        let (low, high) =
            sizes.iter().fold((f64::MAX, 0.0_f64), |(l, h), s| (l.min(*s), h.max(*s)));
        assert!(low >= 3.0 && high <= 9.0 && low < high, "{low} to {high}");
        let spec = crate::config::Spec::parse("tide(least=30%,most=10%)").unwrap();
        let error = spec.config::<TideConfig>().map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("most"), "{error}");
    }

    #[test]
    fn refusals_drops_and_tiny_pools_break_nothing() {
        for spec in [
            "tide",
            "tide(least=0%,most=100%,ghost=all,main_ghost=all)",
            "tide(small=all,ghost=0,main_ghost=0,dirty_rounds=0)",
            "tide(small=0,threshold=255,max=1,dirty_rounds=15)",
        ] {
            survives_everything::<Tide>(spec);
        }
    }
}
