//! `arc`: two lists, pages seen once and pages seen again, and ghosts that say which should grow.
//!
//! **Idea** — Split the pool into a list T1 of pages seen once lately and a list T2 of pages seen
//! at least twice. Remember as many pages that left either list (B1, B2). A miss on a ghost of B1
//! says that T1 was too short, one on a ghost of B2 that T2 was: the target length p of T1 follows.
//!
//! **Source** — Megiddo & Modha, FAST 2003; luan 4.9.
//!
//! **State** — T1 and T2 over the frames, B1 and B2 over ghosts, oldest at the front; which list
//! each frame is in; p.
//!
//! **Invariants** — (1) T1 and T2 together hold exactly the resident frames. (2) After an
//! admission |T1| + |B1| is at most c and all four lists together are at most 2c, c being the
//! number of frames. (3) 0 ≤ p ≤ c.
//!
//! **Cost** — Hit: relink, central. Miss: one look-up among the ghosts. Admit: link, at most two
//! ghosts dropped. Evict: unlink, one ghost made, O(1). 9 bytes per frame, 28 per ghost.
//!
//! **Deviations** — The paper trims the ghosts before it replaces a page; here they are trimmed
//! when the page is admitted, so that a refused or failed load costs no memory of the past. The
//! same ghosts go either way, the one of case IV(A) without B1, which never becomes a ghost in the
//! paper, being made and dropped at once. A refused frame moves to the recent end of its own list,
//! since pinning says nothing of a second use; a list whose frames were all refused yields to the
//! other one. Hits equal libCacheSim's in every cell; with `adaptation=integer`, where p
//! moves by the whole part of the quotient, they equal the Caffeine simulator's in every cell.
//!
//! **Defaults** — `adaptation=real`, which reproduces the paper's OLTP column. The policy has no
//! other parameter: that is its point.

use millpond_base::FrameId;

use crate::contract::{Access, Frames, Goal, Host, ListTouch, Policy, Recall, Rules, Shape};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{Adaptation, Ghosts, Links, List};

config! {
    /// Parameters of [`Arc`].
    pub struct ArcConfig {
        /// Whether the target moves by real or by whole steps.
        adaptation: Adaptation = Adaptation::Real;
    }
}

/// T1 and B1.
const ONCE: usize = 0;
/// T2 and B2.
const AGAIN: usize = 1;
/// The page has a ghost in B1.
const IN_B1: Recall = Recall(1);
/// The page has a ghost in B2.
const IN_B2: Recall = Recall(2);

/// Adaptive replacement cache.
pub struct Arc {
    frames: u32,
    adaptation: Adaptation,
    target: f64,
    links: Links,
    lists: [List; 2],
    list_of: Vec<u8>,
    ghosts: Ghosts<u8>,
    left: [List; 2],
}

impl Arc {
    /// Which list gives the next victim; `tie` if the page that comes has a ghost in B2.
    #[inline(always)]
    fn source(&self, tie: bool) -> usize {
        let once = f64::from(self.lists[ONCE].len());
        let too_long = once > self.target || (tie && once == self.target);
        if (once > 0.0 && too_long) || self.lists[AGAIN].is_empty() { ONCE } else { AGAIN }
    }

    /// Drops ghosts until invariant 2 holds.
    #[inline(always)]
    fn trim(&mut self) {
        while self.lists[ONCE].len() + self.left[ONCE].len() > self.frames
            && self.ghosts.drop_front(&mut self.left[ONCE]).is_some()
        {}
        let resident = self.lists[ONCE].len() + self.lists[AGAIN].len();
        while u64::from(resident) + self.ghosts.len() as u64 > 2 * u64::from(self.frames)
            && self.ghosts.drop_front(&mut self.left[AGAIN]).is_some()
        {}
    }
}

impl Rules for Arc {
    const INFO: Info = Info {
        id: "arc",
        summary: "two lists whose lengths follow the hits on their ghosts",
        family: Family::Adaptive,
        class: Class::Three,
        age: Age::Last,
        references: References::Some,
        tier: Tier::First,
        live: true,
        frame_bytes: 9.0,
        ghost_bytes: 28.0,
        source: "Megiddo & Modha FAST 2003, luan 4.9",
    };
    type Touch = ListTouch;
    type Config = ArcConfig;

    fn new(config: &ArcConfig, shape: &Shape) -> Arc {
        Arc {
            frames: shape.frames,
            adaptation: config.adaptation,
            target: 0.0,
            links: Links::new(shape.frames),
            lists: [List::new(); 2],
            list_of: vec![0; shape.frames as usize],
            ghosts: Ghosts::new(shape.pages_dense, u64::from(shape.frames) + 1),
            left: [List::new(); 2],
        }
    }

    fn ghosts_max(_config: &ArcConfig, frames: u32) -> u64 {
        2 * u64::from(frames)
    }

    fn state_bytes(&self) -> usize {
        self.links.bytes() + self.list_of.capacity() + self.ghosts.bytes()
    }

    fn check(&self, _frames: Frames<'_, ListTouch>, resident: &[FrameId]) -> Result<(), String> {
        self.lists.iter().try_for_each(|l| l.check(&self.links))?;
        self.left.iter().try_for_each(|l| l.check(&self.ghosts.links))?;
        let listed = self.lists[ONCE].len() + self.lists[AGAIN].len();
        if listed as usize != resident.len() {
            return Err(format!("invariant 1: {listed} listed, {} resident", resident.len()));
        }
        let first = self.lists[ONCE].len() + self.left[ONCE].len();
        let all = u64::from(listed) + self.ghosts.len() as u64;
        if first > self.frames || all > 2 * u64::from(self.frames) {
            return Err(format!("invariant 2: {first} once, {all} in all"));
        }
        if !(0.0..=f64::from(self.frames)).contains(&self.target) {
            return Err(format!("invariant 3: p is {}", self.target));
        }
        Ok(())
    }
}

impl Policy for Arc {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, ListTouch>, frame: FrameId, _access: &Access) {
        let list = &mut self.list_of[frame.index()];
        if usize::from(*list) == ONCE {
            *list = AGAIN as u8;
            self.lists[ONCE].remove(&mut self.links, frame.0);
            self.lists[AGAIN].push_back(&mut self.links, frame.0);
        } else {
            self.lists[AGAIN].move_to_back(&mut self.links, frame.0);
        }
    }

    #[inline(always)]
    fn miss(&mut self, access: &Access) -> Recall {
        let Some(ghost) = self.ghosts.find(access.page) else { return Recall::NONE };
        let list = usize::from(*self.ghosts.memory(ghost));
        let step = self.adaptation.step(self.left[1 - list].len(), self.left[list].len());
        self.ghosts.drop_from(&mut self.left[list], ghost);
        if list == ONCE {
            self.target = (self.target + step).min(f64::from(self.frames));
            IN_B1
        } else {
            self.target = (self.target - step).max(0.0);
            IN_B2
        }
    }

    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, ListTouch>,
        frame: FrameId,
        _access: &Access,
        recall: Recall,
    ) {
        let list = if recall == Recall::NONE { ONCE } else { AGAIN };
        self.list_of[frame.index()] = list as u8;
        self.lists[list].push_back(&mut self.links, frame.0);
        self.trim();
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, ListTouch>,
        goal: &Goal,
        host: &mut H,
    ) -> u32 {
        let (mut taken, mut steps, mut refused) = (0, 0, [0u32; 2]);
        let mut tie = matches!(goal.incoming, Some((_, IN_B2)));
        while taken < goal.frames && steps < goal.steps_max {
            let mut from = self.source(tie);
            if refused[from] >= self.lists[from].len() {
                from = 1 - from;
            }
            if refused[from] >= self.lists[from].len() {
                break;
            }
            let Some(victim) = self.lists[from].front() else { break };
            steps += 1;
            match host.take(FrameId(victim)) {
                Ok((frame, page)) => {
                    let list = usize::from(self.list_of[frame.index()]);
                    self.lists[list].remove(&mut self.links, frame.0);
                    self.ghosts.push(&mut self.left[list], page, list as u8);
                    taken += 1;
                    tie = false;
                }
                Err(_why) => {
                    self.lists[from].move_to_back(&mut self.links, victim);
                    refused[from] += 1;
                }
            }
        }
        taken
    }

    fn forget(&mut self, _frames: Frames<'_, ListTouch>, frame: FrameId) {
        let list = usize::from(self.list_of[frame.index()]);
        self.lists[list].remove(&mut self.links, frame.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestPool, survives_everything};

    #[test]
    fn a_ghost_of_the_first_list_lets_it_grow_and_one_of_the_second_shrink() {
        let mut pool = TestPool::<Arc>::of("arc", 4);
        pool.run([1, 2, 1, 2, 3, 4, 5]);
        // T2 = 1 2, T1 = 4 5, B1 = 3.
        assert_eq!((pool.pages(), pool.policy.target), (vec![1, 2, 4, 5], 0.0));
        assert!(!pool.reference(3));
        // p = 1: of T1 = 4 5, the 4 goes, and 3 is in T2.
        assert_eq!((pool.pages(), pool.policy.target), (vec![1, 2, 3, 5], 1.0));
        pool.reference(6);
        // |T1| = 1 is not above p: T2 gives 1.
        assert_eq!(pool.pages(), [2, 3, 5, 6]);
        pool.reference(1);
        assert_eq!(pool.policy.target, 0.0);
    }

    #[test]
    fn a_loop_longer_than_the_pool_leaves_the_second_list_alone() {
        let mut pool = TestPool::<Arc>::of("arc", 8);
        pool.run([1, 2, 3, 1, 2, 3]);
        pool.run((100..160).collect::<Vec<_>>());
        assert_eq!(pool.run([1, 2, 3]), 3);
    }

    #[test]
    fn refusals_drops_and_tiny_pools_break_nothing() {
        survives_everything::<Arc>("arc");
        survives_everything::<Arc>("arc(adaptation=integer)");
    }
}
