//! ARC's two lists, their ghosts, and the target between them, shared by `arc`, `t2-arc` and
//! `arc-io`.
//!
//! T1 holds pages used once lately, T2 pages used again; B1 and B2 are their ghosts. A hit in a
//! ghost list moves the target *p*, the share of the cache that T1 deserves.
//!
//! Invariants: (1) a resident frame is in exactly one of T1 and T2, (2) |T1| + |B1| ≤ c, (3) all
//! four hold at most 2c pages, (4) 0 ≤ p ≤ c.

use millpond_base::{FrameId, PageId};

use super::adaptation::Adaptation;
use super::ghosts::Ghosts;
use super::list::{Links, List};
use super::offers::offer_in_turn;
use crate::contract::{EvictRequest, GhostHit, Host, Shape};

/// List of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// T1, or B1.
    Once,
    /// T2, or B2.
    Again,
    /// Neither.
    None,
}

/// T1 and B1.
const ONCE: usize = Side::Once as usize;
/// T2 and B2.
const AGAIN: usize = Side::Again as usize;
/// A miss that hit in B1.
const IN_B1: GhostHit = GhostHit(1);
/// A miss that hit in B2.
const IN_B2: GhostHit = GhostHit(2);

/// The lists, the ghosts and the target.
pub struct Balance {
    frames: u32,
    adaptation: Adaptation,
    target: f64,
    links: Links,
    lists: [List; 2],
    side: Vec<Side>,
    ghosts: Ghosts<Side>,
    left: [List; 2],
}

impl Balance {
    /// Creates empty lists; `adaptation` selects real or whole steps of the target.
    pub fn new(adaptation: Adaptation, shape: &Shape) -> Balance {
        Balance {
            frames: shape.frames,
            adaptation,
            target: 0.0,
            links: Links::new(shape.frames),
            lists: [List::new(); 2],
            side: vec![Side::None; shape.frames as usize],
            ghosts: Ghosts::new(shape.pages_dense, u64::from(shape.frames) + 1),
            left: [List::new(); 2],
        }
    }

    /// Returns the list of `frame`.
    #[inline(always)]
    pub fn side(&self, frame: u32) -> Side {
        self.side[frame as usize]
    }

    /// Returns the target p of |T1|.
    #[inline(always)]
    pub fn target(&self) -> f64 {
        self.target
    }

    /// Records that a page was used again.
    #[inline(always)]
    pub fn hit(&mut self, frame: FrameId) {
        let side = &mut self.side[frame.index()];
        if *side == Side::Once {
            *side = Side::Again;
            self.lists[ONCE].remove(&mut self.links, frame.0);
            self.lists[AGAIN].push_back(&mut self.links, frame.0);
        } else {
            self.lists[AGAIN].move_to_back(&mut self.links, frame.0);
        }
    }

    /// Looks up the ghost of a page that missed. A ghost moves the target and is consumed.
    #[inline(always)]
    pub fn ghost_hit(&mut self, page: PageId) -> GhostHit {
        let Some(ghost) = self.ghosts.find(page) else { return GhostHit::NONE };
        let list = *self.ghosts.memory(ghost) as usize;
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

    /// Prefetches the ghost's entry of `page`, which will be referenced soon.
    #[inline(always)]
    pub fn prefetch(&self, page: PageId) {
        self.ghosts.prefetch(page);
    }

    /// Admits a page.
    #[inline(always)]
    pub fn admit(&mut self, frame: FrameId, ghost_hit: GhostHit) {
        let side = if ghost_hit == GhostHit::NONE { Side::Once } else { Side::Again };
        self.side[frame.index()] = side;
        self.lists[side as usize].push_back(&mut self.links, frame.0);
        self.trim();
    }

    /// Drops ghosts until invariants 2 and 3 hold.
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

    /// Returns the list that gives the next victim. `tie` is set if the incoming page has a ghost
    /// in B2.
    #[inline(always)]
    fn source(&self, tie: bool) -> usize {
        let once = f64::from(self.lists[ONCE].len());
        let too_long = once > self.target || (tie && once == self.target);
        if (once > 0.0 && too_long) || self.lists[AGAIN].is_empty() { ONCE } else { AGAIN }
    }

    /// Offers victims by ARC's rule; returns the number taken. A refused page moves to the recent
    /// end of its list, and a list whose pages were all refused is skipped.
    #[inline(always)]
    pub fn evict<H: Host + ?Sized>(
        &mut self,
        request: &EvictRequest,
        host: &mut H,
        mut left: impl FnMut(FrameId),
    ) -> u32 {
        let tie = matches!(request.incoming, Some((_, IN_B2)));
        offer_in_turn(
            request,
            host,
            &mut (self, tie, [0; 2]),
            |(lists, tie, refused)| {
                let from = lists.source(*tie);
                let open = |list: &usize| refused[*list] < lists.lists[*list].len();
                let from = [from, 1 - from].into_iter().find(open)?;
                lists.lists[from].front().map(FrameId)
            },
            |(lists, tie, _), frame, page| {
                lists.gone(frame, page);
                left(frame);
                *tie = false;
            },
            |(lists, _, refused), frame, _why| {
                let list = lists.side[frame.index()] as usize;
                refused[list] += 1;
                lists.lists[list].move_to_back(&mut lists.links, frame.0);
            },
        )
    }

    /// Removes the evicted page in `frame` and leaves a ghost.
    #[inline(always)]
    pub fn gone(&mut self, frame: FrameId, page: PageId) {
        let side = self.side(frame.0);
        self.forget(frame);
        if side != Side::None {
            self.ghosts.push(&mut self.left[side as usize], page, side);
        }
    }

    /// Removes the page in `frame` without leaving a ghost.
    #[inline(always)]
    pub fn forget(&mut self, frame: FrameId) {
        let side = std::mem::replace(&mut self.side[frame.index()], Side::None);
        if side != Side::None {
            self.lists[side as usize].remove(&mut self.links, frame.0);
        }
    }

    /// Returns the maximum number of ghosts of a cache of `frames` frames.
    pub fn ghosts_max(frames: u32) -> u64 {
        2 * u64::from(frames)
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.links.bytes() + self.side.capacity() + self.ghosts.bytes()
    }

    /// Verifies the invariants of the module for these resident frames.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check(&self, resident: &[FrameId]) -> Result<(), String> {
        self.lists.iter().try_for_each(|l| l.check(&self.links))?;
        self.left.iter().try_for_each(|l| l.check(&self.ghosts.links))?;
        let cached = self.lists[ONCE].len() + self.lists[AGAIN].len();
        let lost = resident.iter().find(|f| self.side(f.0) == Side::None);
        if cached as usize != resident.len() || lost.is_some() {
            return Err(format!("1: {cached} frames listed, {} resident", resident.len()));
        }
        let ghosts = self.left[ONCE].len() + self.left[AGAIN].len();
        if self.ghosts.len() != ghosts as usize {
            return Err("a ghost is in neither list".to_string());
        }
        let once = self.lists[ONCE].len() + self.left[ONCE].len();
        let all = u64::from(cached) + u64::from(ghosts);
        if once > self.frames || all > Balance::ghosts_max(self.frames) {
            return Err(format!("2, 3: {once} once, {all} in all"));
        }
        if !(0.0..=f64::from(self.frames)).contains(&self.target) {
            return Err(format!("4: the target is {}", self.target));
        }
        Ok(())
    }
}
