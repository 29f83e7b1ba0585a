//! `car`: ARC whose two lists are clocks, so that a hit only sets a bit.
//!
//! **Idea** — ARC tunes itself, but relinks on each hit under a latch. Let T1 and T2 be clocks: a
//! hit marks the frame, and only the hand, when it looks for a victim, moves marked frames of T1 to
//! T2 and spares those of T2.
//!
//! **Source** — Bansal & Modha, FAST 2004; luan 4.9.
//!
//! **State** — T1 and T2 over the frames, B1 and B2 over ghosts, the hands at their fronts; which
//! clock each frame is in; a mark beside each frame; the target p of |T1|.
//!
//! **Invariants** — (1) T1 and T2 together hold exactly the resident frames. (2) |T1| + |B1| is at
//! most c and all four lists together at most 2c, c being the number of frames. (3) 0 ≤ p ≤ c.
//!
//! **Cost** — Hit: set a mark, no latch. Miss: one lookup among the ghosts. Admit: link, at most
//! two ghosts dropped. Evict: a sweep, amortised one frame per hit. 10 bytes per frame, 28 per
//! ghost.
//!
//! **Deviations** — None from the source; as there, p adapts after a frame was reclaimed. Hits
//! equal the Caffeine simulator's in every cell; libCacheSim's CAR falls below LRU on OLTP where
//! the paper reports a gain, and is no oracle. A refused frame gets one more round of its clock; a
//! clock whose frames were all refused yields to the other one.
//!
//! **Defaults** — `adaptation=integer`: as in the one credible oracle. The paper does not specify
//! if p is whole.

use millpond_base::{FrameId, PageId};

use crate::contract::{Access, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{Adaptation, FrameLists, Ghosts, List, MarkHook, take_mark};

config! {
    /// Parameters of [`Car`].
    pub struct CarConfig {
        /// Steps of the target: real or whole numbers.
        adaptation: Adaptation = Adaptation::Integer;
    }
}

/// T1 and B1.
const ONCE: usize = 0;
/// T2 and B2.
const AGAIN: usize = 1;
/// The page has a ghost.
const REMEMBERED: GhostHit = GhostHit(1);

/// Clock with adaptive replacement.
pub struct Car {
    frames: u32,
    adaptation: Adaptation,
    target: f64,
    clocks: FrameLists<2>,
    ghosts: Ghosts<u8>,
    left: [List; 2],
}

impl Car {
    /// Adapts the target to the incoming page's ghost, and forgets the ghost.
    #[inline(always)]
    fn adapt(&mut self, ghost: u32) {
        let list = usize::from(*self.ghosts.memory(ghost));
        let step = self.adaptation.step(self.left[1 - list].len(), self.left[list].len());
        self.target = if list == ONCE {
            (self.target + step).min(f64::from(self.frames))
        } else {
            (self.target - step).max(0.0)
        };
        self.ghosts.drop_from(&mut self.left[list], ghost);
    }

    /// Makes room among the ghosts for one more page in T1.
    #[inline(always)]
    fn trim(&mut self) {
        while self.clocks.len(ONCE) + self.left[ONCE].len() >= self.frames
            && self.ghosts.drop_front(&mut self.left[ONCE]).is_some()
        {}
        let resident = u64::from(self.clocks.len(ONCE) + self.clocks.len(AGAIN));
        while resident + self.ghosts.len() as u64 >= 2 * u64::from(self.frames)
            && self.ghosts.drop_front(&mut self.left[AGAIN]).is_some()
        {}
    }
}

impl PolicySpec for Car {
    const INFO: Info = Info {
        id: "car",
        summary: "ARC with clocks instead of lists: a hit only sets a bit",
        family: Family::Adaptive,
        class: Class::Three,
        age: Age::Last,
        references: References::Some,
        tier: Tier::First,
        live: true,
        frame_bytes: 10.0,
        ghost_bytes: 28.0,
        source: "Bansal & Modha FAST 2004, luan 4.9",
    };
    type Hook = MarkHook;
    type Config = CarConfig;

    fn new(config: &CarConfig, shape: &Shape) -> Car {
        Car {
            frames: shape.frames,
            adaptation: config.adaptation,
            target: 0.0,
            clocks: FrameLists::new(shape.frames),
            ghosts: Ghosts::new(shape.pages_dense, u64::from(shape.frames) + 1),
            left: [List::new(); 2],
        }
    }

    fn ghosts_max(_config: &CarConfig, frames: u32) -> u64 {
        2 * u64::from(frames)
    }

    #[inline(always)]
    fn will_reference(&self, page: PageId) {
        self.ghosts.prefetch(page);
    }

    fn state_bytes(&self) -> usize {
        self.clocks.bytes() + self.ghosts.bytes()
    }

    fn check(&self, _frames: Frames<'_, MarkHook>, resident: &[FrameId]) -> Result<(), String> {
        self.clocks.check(resident).map_err(|e| format!("invariant 1: {e}"))?;
        self.left.iter().try_for_each(|l| l.check(&self.ghosts.links))?;
        let first = self.clocks.len(ONCE) + self.left[ONCE].len();
        let all = resident.len() + self.ghosts.len();
        if first > self.frames || all as u64 > 2 * u64::from(self.frames) {
            return Err(format!("invariant 2: {first} once, {all} in all"));
        }
        if !(0.0..=f64::from(self.frames)).contains(&self.target) {
            return Err(format!("invariant 3: p is {}", self.target));
        }
        Ok(())
    }
}

impl Policy for Car {
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
        if ghost_hit != REMEMBERED {
            self.trim();
            return self.clocks.push_back(ONCE, frame);
        }
        match self.ghosts.find(access.page) {
            Some(ghost) => self.adapt(ghost),
            // The ghost is gone only if other pages were admitted since this one missed; it leaves
            // no room.
            None => self.trim(),
        }
        self.clocks.push_back(AGAIN, frame);
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
            let too_long = f64::from(self.clocks.len(ONCE)) >= self.target.max(1.0);
            let wanted = if too_long { ONCE } else { AGAIN };
            let Some(from) = self.clocks.source(wanted, &refused) else { break };
            let Some(at) = self.clocks.front(from) else { break };
            steps += 1;
            if take_mark(frames.meta(at)) {
                self.clocks.move_to(AGAIN, at);
                // It may be offered when the hand comes round, which is worth another round.
                refused[AGAIN] = 0;
                continue;
            }
            match host.take(at) {
                Ok((frame, page)) => {
                    taken += 1;
                    let list = self.clocks.remove(frame);
                    self.ghosts.push(&mut self.left[list], page, list as u8);
                }
                Err(_why) => {
                    self.clocks.move_to_back(at);
                    refused[from] += 1;
                }
            }
        }
        taken
    }

    fn forget(&mut self, _frames: Frames<'_, MarkHook>, frame: FrameId) {
        self.clocks.remove(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestPool, survives_everything};

    #[test]
    fn the_hand_moves_marked_frames_to_the_second_clock() {
        let mut pool = TestPool::<Car>::of("car", 4);
        pool.run([1, 2, 3, 4, 1, 2, 5]);
        assert_eq!(pool.pages(), [1, 2, 4, 5]);
        assert_eq!((pool.policy.clocks.len(ONCE), pool.policy.clocks.len(AGAIN)), (2, 2));
        // A ghost of B1 lets T1 grow.
        pool.reference(3);
        assert_eq!((pool.pages(), pool.policy.target), (vec![1, 2, 3, 5], 1.0));
    }

    #[test]
    fn refusals_drops_and_tiny_pools_break_nothing() {
        survives_everything::<Car>("car");
        survives_everything::<Car>("car(adaptation=real)");
    }
}
