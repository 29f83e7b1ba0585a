//! `cart`: CAR that does not mistake a burst of references for lasting interest.
//!
//! **Idea** — Two references close together prove little. A page is new (S, short-term) until it is
//! used again outside a window of adaptive length, or while it is a ghost; only long-term pages (L)
//! reach the second clock.
//!
//! **Source** — Bansal & Modha, FAST 2004; luan 4.9.
//!
//! **State** — T1 and T2 over the frames, B1 and B2 over ghosts, the hands at their fronts; beside
//! each frame its clock, its filter bit and a mark; nS, nL; the targets p of |T1| and q of |B1|.
//!
//! **Invariants** — (1) T1 and T2 together hold exactly the resident frames. (2) nS and nL count
//! the resident frames by their filter bit, and T2 holds only L. (3) Frames and ghosts together
//! are at most 2c, c being the number of frames. (4) 0 ≤ p ≤ c.
//!
//! **Cost** — Hit: set a mark, no latch. Miss: one lookup among the ghosts. Admit: link, one ghost
//! dropped. Evict: a sweep, amortised one frame per hit. 11 bytes per frame, 28 per ghost.
//!
//! **Deviations** — A marked S page becomes L when |T1| ≥ min(p + 1, |B1|) in the paper and when
//! |T1| ≥ max(p + 1, |B1|) in the Caffeine simulator, the only other implementation; `filter`
//! chooses. With `max` hits equal Caffeine's in every cell. A refused frame gets one more round of
//! its clock; a clock whose frames were all refused yields to the other one. A child that the host
//! takes instead of the offered frame becomes a ghost by its filter bit: S in B1, L in B2.
//!
//! **Defaults** — `filter=max` and `adaptation=integer`: as in the oracle.

use millpond_base::{FrameId, PageId};

use crate::contract::{Access, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{Adaptation, FrameLists, Ghosts, List, MarkHook, take_mark};

choice! {
    /// Condition under which a short-term page that was used again becomes long-term.
    pub enum Filter {
        /// |T1| ≥ min(p + 1, |B1|).
        Min = "min",
        /// |T1| ≥ max(p + 1, |B1|).
        Max = "max",
    }
}

config! {
    /// Parameters of [`Cart`].
    pub struct CartConfig {
        /// Steps of the target: real or whole numbers.
        adaptation: Adaptation = Adaptation::Integer;
        /// Length of the first clock from which a second use counts.
        filter: Filter = Filter::Max;
    }
}

/// T1 and B1.
const FIRST: usize = 0;
/// T2 and B2.
const SECOND: usize = 1;
/// The page has a ghost.
const REMEMBERED: GhostHit = GhostHit(1);

/// Clock with adaptive replacement and temporal filtering.
pub struct Cart {
    frames: u32,
    adaptation: Adaptation,
    filter: Filter,
    target: f64,
    target_left: u32,
    clocks: FrameLists<2>,
    is_long: Vec<bool>,
    short: u32,
    long: u32,
    ghosts: Ghosts<u8>,
    left: [List; 2],
}

impl Cart {
    fn widen_left(&mut self) {
        let (t1, t2) = (self.clocks.len(FIRST), self.clocks.len(SECOND));
        let long_ones = u64::from(t1) + u64::from(t2) + u64::from(self.left[SECOND].len());
        if long_ones >= u64::from(self.frames) + u64::from(self.short) {
            self.target_left = (self.target_left + 1).min((2 * self.frames).saturating_sub(t1));
        }
    }

    /// Moves a used frame at the hand of the second clock to the first one.
    #[inline(always)]
    fn rescue(&mut self, at: FrameId) {
        self.clocks.move_to(FIRST, at);
        self.widen_left();
    }

    /// Keeps a used frame at the hand of the first clock for another round; the frame may pass the
    /// filter.
    #[inline(always)]
    fn go_round(&mut self, at: FrameId) {
        self.clocks.move_to_back(at);
        let left = f64::from(self.left[FIRST].len());
        let window = match self.filter {
            Filter::Min => (self.target + 1.0).min(left),
            Filter::Max => (self.target + 1.0).max(left),
        };
        if f64::from(self.clocks.len(FIRST)) >= window && !self.is_long[at.index()] {
            self.is_long[at.index()] = true;
            self.short -= 1;
            self.long += 1;
        }
    }

    /// Moves an unused long-term frame at the hand of the first clock to the second clock.
    #[inline(always)]
    fn go_over(&mut self, at: FrameId) {
        self.clocks.move_to(SECOND, at);
        let least = self.frames.saturating_sub(self.clocks.len(FIRST));
        self.target_left = self.target_left.saturating_sub(1).max(least);
    }

    /// Moves a hand that finds no victim yet by one step; returns `false` when both fronts are
    /// candidates.
    #[inline(always)]
    fn sweep(&mut self, frames: Frames<'_, MarkHook>) -> bool {
        if let Some(at) = self.clocks.front(SECOND)
            && take_mark(frames.meta(at))
        {
            self.rescue(at);
            return true;
        }
        let Some(at) = self.clocks.front(FIRST) else { return false };
        if take_mark(frames.meta(at)) {
            self.go_round(at);
            return true;
        }
        if self.is_long[at.index()] {
            self.go_over(at);
            return true;
        }
        false
    }

    /// Removes `frame`; returns `true` if its page was long-term.
    fn unlink(&mut self, frame: FrameId) -> bool {
        self.clocks.remove(frame);
        let is_long = self.is_long[frame.index()];
        *(if is_long { &mut self.long } else { &mut self.short }) -= 1;
        is_long
    }

    /// Adapts the targets to the incoming page's ghost, and forgets the ghost.
    #[inline(always)]
    fn adapt(&mut self, ghost: u32) -> usize {
        let list = usize::from(*self.ghosts.memory(ghost));
        let own = self.left[list].len();
        self.target = if list == FIRST {
            (self.target + self.adaptation.step(self.short, own)).min(f64::from(self.frames))
        } else {
            (self.target - self.adaptation.step(self.long, own)).max(0.0)
        };
        self.ghosts.drop_from(&mut self.left[list], ghost);
        list
    }

    /// Keeps at most as many ghosts as frames.
    #[inline(always)]
    fn trim(&mut self) {
        while self.ghosts.len() as u64 > u64::from(self.frames) {
            let from_first =
                self.left[FIRST].len() > self.target_left || self.left[SECOND].is_empty();
            let list = if from_first { FIRST } else { SECOND };
            if self.ghosts.drop_front(&mut self.left[list]).is_none() {
                return;
            }
        }
    }
}

impl PolicySpec for Cart {
    const INFO: Info = Info {
        id: "cart",
        summary: "CAR with a filter for bursts of references",
        family: Family::Adaptive,
        class: Class::Three,
        age: Age::Last,
        references: References::Some,
        tier: Tier::First,
        live: true,
        frame_bytes: 11.0,
        ghost_bytes: 28.0,
        source: "Bansal & Modha FAST 2004, luan 4.9",
    };
    type Hook = MarkHook;
    type Config = CartConfig;

    fn new(config: &CartConfig, shape: &Shape) -> Cart {
        Cart {
            frames: shape.frames,
            adaptation: config.adaptation,
            filter: config.filter,
            target: 0.0,
            target_left: 0,
            clocks: FrameLists::new(shape.frames),
            is_long: vec![false; shape.frames as usize],
            short: 0,
            long: 0,
            ghosts: Ghosts::new(shape.pages_dense, u64::from(shape.frames) + 1),
            left: [List::new(); 2],
        }
    }

    fn ghosts_max(_config: &CartConfig, frames: u32) -> u64 {
        2 * u64::from(frames)
    }

    #[inline(always)]
    fn will_reference(&self, page: PageId) {
        self.ghosts.prefetch(page);
    }

    fn state_bytes(&self) -> usize {
        self.clocks.bytes() + self.is_long.capacity() + self.ghosts.bytes()
    }

    fn check(&self, _frames: Frames<'_, MarkHook>, resident: &[FrameId]) -> Result<(), String> {
        self.clocks.check(resident).map_err(|e| format!("invariant 1: {e}"))?;
        self.left.iter().try_for_each(|l| l.check(&self.ghosts.links))?;
        let long = resident.iter().filter(|f| self.is_long[f.index()]).count();
        let short_second = self.clocks.iter(SECOND).any(|f| !self.is_long[f.index()]);
        if long != self.long as usize || resident.len() - long != self.short as usize {
            return Err(format!("invariant 2: nS {}, nL {}, {long} L", self.short, self.long));
        }
        if short_second {
            return Err("invariant 2: a short-term frame is in T2".to_string());
        }
        let all = resident.len() + self.ghosts.len();
        if all as u64 > 2 * u64::from(self.frames) {
            return Err(format!("invariant 3: {all} frames and ghosts"));
        }
        if !(0.0..=f64::from(self.frames)).contains(&self.target) {
            return Err(format!("invariant 4: p is {}", self.target));
        }
        Ok(())
    }
}

impl Policy for Cart {
    #[inline(always)]
    fn miss(&mut self, access: &Access) -> GhostHit {
        if self.ghosts.find(access.page).is_some() { REMEMBERED } else { GhostHit::NONE }
    }

    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, MarkHook>,
        frame: FrameId,
        access: &Access,
        ghost_hit: GhostHit,
    ) {
        let ghost = self.ghosts.find(access.page).filter(|_| ghost_hit == REMEMBERED);
        let list = ghost.map(|ghost| self.adapt(ghost));
        if ghost_hit != REMEMBERED {
            self.trim();
        }
        self.clocks.push_back(FIRST, frame);
        self.is_long[frame.index()] = ghost_hit == REMEMBERED;
        *(if ghost_hit == REMEMBERED { &mut self.long } else { &mut self.short }) += 1;
        if list == Some(SECOND) {
            self.widen_left();
        }
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        frames: Frames<'_, MarkHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        let (mut taken, mut steps, mut refused) = (0, 0, [0; 2]);
        while taken < request.frames && steps < request.steps_max {
            steps += 1;
            if self.sweep(frames) {
                // The frame may be offered when the hand comes round, which is worth another round.
                refused = [0; 2];
                continue;
            }
            let too_long = f64::from(self.clocks.len(FIRST)) >= self.target.max(1.0);
            let wanted = if too_long { FIRST } else { SECOND };
            let Some(from) = self.clocks.source(wanted, &refused) else { break };
            let Some(victim) = self.clocks.front(from) else { break };
            match host.take(victim) {
                Ok((frame, page)) => {
                    taken += 1;
                    let list = if self.unlink(frame) { SECOND } else { FIRST };
                    self.ghosts.push(&mut self.left[list], page, list as u8);
                }
                Err(_why) => {
                    self.clocks.move_to_back(victim);
                    refused[from] += 1;
                }
            }
        }
        taken
    }

    fn forget(&mut self, _frames: Frames<'_, MarkHook>, frame: FrameId) {
        self.unlink(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestPool, survives_everything};

    #[test]
    fn a_page_that_comes_back_as_a_ghost_is_long_term() {
        let mut pool = TestPool::<Cart>::of("cart", 4);
        pool.run([1, 2, 3, 4, 5]);
        assert_eq!((pool.pages(), pool.policy.long), (vec![2, 3, 4, 5], 0));
        pool.reference(1);
        assert_eq!((pool.policy.long, pool.policy.target), (1, 1.0));
        assert_eq!(pool.policy.clocks.len(SECOND), 0);
        // The hand meets 1 when the short-term pages before it are evicted, and moves it over.
        pool.run(10..14);
        assert_eq!(pool.policy.clocks.len(SECOND), 1);
        assert!(pool.reference(1));
    }

    #[test]
    fn refusals_drops_and_tiny_pools_break_nothing() {
        for spec in ["cart", "cart(filter=min)", "cart(adaptation=real)"] {
            survives_everything::<Cart>(spec);
        }
    }
}
