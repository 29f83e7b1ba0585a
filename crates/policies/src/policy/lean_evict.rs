//! `lean-evict`: random pages cool in a queue; a page that is not referenced while cooling is
//! evicted.
//!
//! **Idea** — Find cold pages instead of tracking hot ones: move random pages into a cooling stage.
//! A hot page costs nothing per hit; its first hit saves a cooling page.
//!
//! **Source** — leanstore III-B, IV-C; gilbert 1.2.15, algorithm 1.16; watt 4.1.
//!
//! **State** — The set of hot frames, to draw from; the cooling stage, a FIFO queue; one state per
//! frame.
//!
//! **Invariants** — (1) Each resident frame is hot, or in the stage, or known to be not evictable,
//! and no other frame is any of these. (2) Frames enter the stage at its back, and only if the host
//! lets them cool; only the stage's front is offered. (3) The stage holds no more than its share of
//! the pool, except for frames that entered while all of it was refused. (4) A permanently refused
//! frame is neither drawn nor offered again while its page stays.
//!
//! **Cost** — Hit: nothing; on a cooling frame, an unlink. Admit: O(1). Evict: one draw and one
//! offer in the long run. 17 bytes per frame, no ghosts.
//!
//! **Deviations** — Hot frames are drawn from a set, where leanstore and gilbert draw any frame and
//! draw again if it is cooling: the distribution is the same, and a stage of 100 % still ends. If
//! every frame in the stage is refused temporarily, one more enters each time; otherwise a stage
//! full of pages under write would hide all others. leanstore also refills when a page is swizzled;
//! here a saved page is replaced at the next eviction. The stage is filled from the first eviction
//! on; the WATT authors' simulator starts when the hot share of the pool is used up. The difference
//! is within the noise of the draws.
//!
//! **Defaults** — `cooling=10%` and `refill=continuous` (leanstore VI-B); gilbert runs
//! `cooling=2.5%,refill=half`, watt's simulations `cooling=30%`. `second_chance=true` is the other
//! form in the WATT authors' simulator: a page that is hit keeps its place in the queue and is
//! saved when it reaches the front.

use millpond_base::FrameId;

use crate::config::Part;
use crate::contract::{
    Access, Cooled, EvictRequest, Frames, GhostHit, Hit, HitHook, Host, Policy, PolicySpec,
    RefusalReason, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{FrameSet, Links, List, Random as Generator};

choice! {
    /// Moment at which the cooling stage is filled up.
    pub enum Refill {
        /// On every request for a frame.
        Continuous = "continuous",
        /// On a request for a frame while the stage is less than half full.
        Half = "half",
    }
}

config! {
    /// Parameters of [`LeanEvict`].
    pub struct LeanEvictConfig {
        /// The cooling stage: the part of the pool that is cooling, at least one frame.
        cooling: Part = Part::Times(0.1);
        /// Moment at which the cooling stage is filled up.
        refill: Refill = Refill::Continuous;
        /// Leaves a page that is hit during cooling in the queue, and saves it at the front instead
        /// of at once.
        second_chance: bool = false;
    }
}

/// The hot half: a hit only revives a cooling frame.
pub struct CoolingHook;

impl HitHook for CoolingHook {
    type Meta = ();
    type Params = ();
    const HIT: Hit = Hit::Nothing;
    const COOLS: bool = true;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Absent,
    Hot,
    Cooling,
    /// Cooling, and hit since then; only with `second_chance`.
    Saved,
    NotEvictable,
}

/// LeanStore's replacement.
pub struct LeanEvict {
    stage_max: u32,
    refill: Refill,
    second_chance: bool,
    generator: Generator,
    states: Vec<State>,
    hot: FrameSet,
    links: Links,
    stage: List,
    /// Offers refused since the last taken frame.
    refused_in_row: u32,
    /// Maximum frames of the stage now: its share, or more after it was refused as a whole.
    limit: u32,
}

impl PolicySpec for LeanEvict {
    const INFO: Info = Info {
        id: "lean-evict",
        summary: "random pages cool in a queue; those not touched meanwhile go",
        family: Family::Random,
        class: Class::Two,
        age: Age::Last,
        references: References::Last,
        tier: Tier::First,
        live: true,
        frame_bytes: 17.0,
        ghost_bytes: 0.0,
        source: "leanstore III-B, IV-C; gilbert 1.2.15",
    };
    const IS_RANDOM: bool = true;
    type Hook = CoolingHook;
    type Config = LeanEvictConfig;

    fn new(config: &LeanEvictConfig, shape: &Shape) -> LeanEvict {
        let stage_max = config.cooling.frames_of(shape.frames).max(1);
        LeanEvict {
            stage_max,
            refill: config.refill,
            second_chance: config.second_chance,
            generator: Generator::new(shape.seed),
            states: vec![State::Absent; shape.frames as usize],
            hot: FrameSet::new(shape.frames),
            links: Links::new(shape.frames),
            stage: List::new(),
            refused_in_row: 0,
            limit: stage_max,
        }
    }

    fn state_bytes(&self) -> usize {
        self.states.capacity() + self.hot.bytes() + self.links.bytes()
    }

    fn check(&self, _frames: Frames<'_, CoolingHook>, resident: &[FrameId]) -> Result<(), String> {
        self.stage.check(&self.links)?;
        let known = self.states.iter().filter(|s| **s != State::Absent).count();
        if known != resident.len()
            || resident.iter().any(|f| self.states[f.index()] == State::Absent)
        {
            return Err(format!("invariant 1: {known} known, {} resident", resident.len()));
        }
        let mut staged = vec![false; self.states.len()];
        self.stage.iter(&self.links).for_each(|f| staged[f as usize] = true);
        for (frame, state) in self.states.iter().enumerate() {
            let is_hot = self.hot.has(frame as u32);
            let is_staged = matches!(state, State::Cooling | State::Saved);
            if is_hot != (*state == State::Hot) || is_staged != staged[frame] {
                return Err(format!("invariant 1: frame {frame} is {state:?}"));
            }
        }
        if self.stage.len() > self.limit {
            return Err(format!("invariant 3: {} of {}", self.stage.len(), self.limit));
        }
        Ok(())
    }
}

impl LeanEvict {
    /// Removes `frame` from its present place and puts it into `state`.
    #[inline(always)]
    fn put(&mut self, frame: u32, state: State) {
        match std::mem::replace(&mut self.states[frame as usize], state) {
            State::Hot => {
                self.hot.remove(frame);
            }
            State::Cooling | State::Saved => self.stage.remove(&mut self.links, frame),
            State::Absent | State::NotEvictable => {}
        }
        match state {
            State::Hot => {
                self.hot.insert(frame);
            }
            State::Cooling | State::Saved => self.stage.push_back(&mut self.links, frame),
            State::Absent | State::NotEvictable => {}
        }
    }

    /// Lets one random hot frame cool, or the child that must cool first.
    #[inline(always)]
    fn cool_one<H: Host + ?Sized>(&mut self, host: &mut H) {
        const DEPTH_MAX: usize = 8;
        let drawn = self.generator.below_alone(self.hot.len());
        let Some(mut frame) = self.hot.at(drawn) else { return };
        for _ in 0..DEPTH_MAX {
            match host.cool(FrameId(frame)) {
                Cooled::Yes => return self.put(frame, State::Cooling),
                Cooled::Refused(RefusalReason::Permanent) => {
                    return self.put(frame, State::NotEvictable);
                }
                Cooled::Refused(_) => return,
                Cooled::CoolChildFirst(child) if self.states[child.index()] == State::Hot => {
                    frame = child.0;
                }
                Cooled::CoolChildFirst(_) => return,
            }
        }
    }

    /// Returns the number of frames that the stage should hold now.
    #[inline(always)]
    fn target(&mut self) -> u32 {
        let held = self.stage.len();
        if held <= self.stage_max {
            self.limit = self.stage_max;
        }
        if held > 0 && self.refused_in_row >= held {
            self.limit = self.limit.max(held + 1);
            return held + 1;
        }
        match self.refill {
            Refill::Half if 2 * u64::from(held) >= u64::from(self.stage_max) => held,
            _ => self.stage_max,
        }
    }

    /// Fills the stage up if it is due; returns the number of examined frames.
    #[inline(always)]
    fn fill<H: Host + ?Sized>(&mut self, steps_max: u32, host: &mut H) -> u32 {
        let (target, mut steps) = (self.target(), 0);
        // Hot frames that may not cool must not prevent offers of cooling ones.
        let wanted = target.saturating_sub(self.stage.len());
        let steps_max = wanted.saturating_mul(4).saturating_add(8).min(steps_max);
        while self.stage.len() < target && !self.hot.is_empty() && steps < steps_max {
            steps += 1;
            self.cool_one(host);
        }
        steps
    }

    /// Offers the front of the stage; returns `true` if a frame was taken.
    #[inline(always)]
    fn offer_front<H: Host + ?Sized>(&mut self, host: &mut H) -> bool {
        let Some(front) = self.stage.front() else { return false };
        if self.states[front as usize] == State::Saved {
            self.put(front, State::Hot);
            return false;
        }
        if let Some(second) = self.links.next(front) {
            host.will_offer(FrameId(second));
        }
        match host.take(FrameId(front)) {
            Ok((frame, _page)) => {
                self.put(frame.0, State::Absent);
                self.refused_in_row = 0;
                return true;
            }
            Err(RefusalReason::Permanent) => self.put(front, State::NotEvictable),
            Err(_) => {
                self.refused_in_row = self.refused_in_row.saturating_add(1);
                self.put(front, State::Cooling);
            }
        }
        false
    }
}

impl Policy for LeanEvict {
    #[inline(always)]
    fn revive(&mut self, _frames: Frames<'_, CoolingHook>, frame: FrameId) {
        match self.states[frame.index()] {
            State::Cooling if self.second_chance => self.states[frame.index()] = State::Saved,
            State::Cooling => self.put(frame.0, State::Hot),
            _ => {}
        }
    }

    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, CoolingHook>,
        frame: FrameId,
        _access: &Access,
        _recall: GhostHit,
    ) {
        self.put(frame.0, State::Hot);
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, CoolingHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        let (mut taken, mut steps) = (0, 0);
        while taken < request.frames && steps < request.steps_max {
            steps += self.fill(request.steps_max - steps, host);
            if self.stage.is_empty() && self.hot.is_empty() {
                break;
            }
            steps = steps.saturating_add(1);
            if self.offer_front(host) {
                taken += 1;
            } else if host.has_enough() {
                break;
            }
        }
        taken
    }

    fn forget(&mut self, _frames: Frames<'_, CoolingHook>, frame: FrameId) {
        self.put(frame.0, State::Absent);
    }
}

#[cfg(test)]
mod tests {
    use millpond_base::Mark;

    use super::*;
    use crate::testing::TestPool;

    fn with(cooling: f64, refill: Refill, second_chance: bool, frames: u32) -> TestPool<LeanEvict> {
        let cooling = Part::Times(cooling);
        TestPool::new(&LeanEvictConfig { cooling, refill, second_chance }, frames)
    }

    fn filled(mut pool: TestPool<LeanEvict>) -> TestPool<LeanEvict> {
        (0..pool.metas.len() as u64).for_each(|page| assert!(!pool.access(page, Mark::READ, 0)));
        pool
    }

    /// Returns the page that would be evicted next.
    fn next(pool: &TestPool<LeanEvict>) -> u64 {
        let front = pool.policy.stage.front().unwrap();
        pool.host.frames[front as usize].page.unwrap()
    }

    #[test]
    fn a_cooling_page_that_is_hit_is_saved_and_the_others_go_in_turn() {
        let mut pool = filled(with(0.5, Refill::Half, false, 20));
        assert!(pool.policy.stage.is_empty(), "nothing cools while frames are free");
        pool.access(100, Mark::READ, 0);
        assert_eq!(pool.policy.stage.len(), 9, "ten cooled, one went");
        let saved = next(&pool);
        pool.access(saved, Mark::READ, 0);
        assert_eq!(pool.policy.stage.len(), 8);
        for page in 200..204 {
            let victim = next(&pool);
            pool.access(page, Mark::READ, 0);
            assert_eq!(pool.host.gone.last(), Some(&victim));
        }
        assert_eq!(pool.policy.stage.len(), 4, "not yet refilled: it was not less than half full");
        pool.access(204, Mark::READ, 0);
        assert_eq!(pool.policy.stage.len(), 9, "refilled");
        assert!(pool.frame_of(saved).is_some());
    }

    #[test]
    fn with_a_second_chance_a_saved_page_keeps_its_place_until_it_is_in_front() {
        let mut pool = filled(with(0.5, Refill::Half, true, 20));
        pool.access(100, Mark::READ, 0);
        let saved = next(&pool);
        pool.access(saved, Mark::READ, 0);
        assert_eq!((pool.policy.stage.len(), next(&pool)), (9, saved));
        pool.access(101, Mark::READ, 0);
        assert!(pool.frame_of(saved).is_some());
        assert_eq!(pool.policy.stage.len(), 7);
    }

    #[test]
    fn what_was_refused_for_good_is_not_asked_again_and_what_can_go_is_found() {
        for (cooling, refill) in [(0.0, Refill::Half), (0.3, Refill::Continuous)] {
            let mut pool = filled(with(cooling, refill, false, 30));
            (1..30).for_each(|page| pool.refuse(page, Some(RefusalReason::Permanent)));
            assert_eq!(pool.evict(1), 1);
            assert_eq!(pool.host.gone, [0]);
            assert_eq!(pool.evict(1), 0);
            let offers = pool.host.offered.len();
            assert_eq!(pool.evict(1), 0);
            assert_eq!(pool.host.offered.len(), offers);
        }
    }

    #[test]
    fn temporary_refusals_in_the_stage_go_round_and_a_stage_of_everything_works() {
        let mut pool = filled(with(1.0, Refill::Continuous, false, 8));
        assert_eq!(pool.evict(1), 1);
        let pages = pool.pages();
        pages[1..].iter().for_each(|page| pool.refuse(*page, Some(RefusalReason::Latched)));
        assert_eq!(pool.evict(3), 1);
        assert_eq!(pool.pages(), pages[1..]);
    }

    #[test]
    fn a_stage_full_of_pages_being_written_hides_no_page_that_can_go() {
        let mut pool = filled(with(0.2, Refill::Half, false, 10));
        assert_eq!(pool.evict(1), 1);
        let staged = next(&pool);
        pool.access(77, Mark::READ, 0);
        pool.refuse(staged, Some(RefusalReason::Dirty));
        for _ in 0..9 {
            assert_eq!(pool.evict(1), 1);
        }
        assert_eq!(pool.pages(), [staged]);
        assert_eq!(pool.evict(1), 0);
    }
}
