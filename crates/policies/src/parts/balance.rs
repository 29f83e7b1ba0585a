//! ARC's two lists, their ghosts, and the target between them: what `t2-arc` and `arc-io` share.
//!
//! T1 holds pages used once lately, T2 pages used again; B1 and B2 are their ghosts. A hit in a
//! ghost list moves the target *p*, the share of the cache that T1 deserves.
//!
//! Invariants: (1) a resident frame is in exactly one of T1 and T2, (2) |T1| + |B1| ≤ c, (3) all
//! four hold at most 2c pages, (4) 0 ≤ p ≤ c. (2) and (3) leave out what evicting in batches has
//! put into the ghost lists since the last page came.

use millpond_base::{FrameId, PageId};

use super::ghosts::Ghosts;
use super::list::{Links, List};
use crate::contract::{Goal, Host, Recall, Shape};

/// Which of the lists a page is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Neither.
    None,
    /// T1, or B1.
    Recent,
    /// T2, or B2.
    Frequent,
}

/// A miss that hit in B1.
const IN_B1: Recall = Recall(1);
/// A miss that hit in B2.
const IN_B2: Recall = Recall(2);

/// The lists, the ghosts and the target.
pub struct Balance {
    capacity: u32,
    target: f64,
    links: Links,
    recent: List,
    frequent: List,
    side: Vec<Side>,
    ghosts: Ghosts<Side>,
    gone_recent: List,
    gone_frequent: List,
}

impl Balance {
    /// Empty lists.
    pub fn new(shape: &Shape) -> Balance {
        Balance {
            capacity: shape.frames,
            target: 0.0,
            links: Links::new(shape.frames),
            recent: List::new(),
            frequent: List::new(),
            side: vec![Side::None; shape.frames as usize],
            ghosts: Ghosts::new(shape.pages_dense, u64::from(shape.frames)),
            gone_recent: List::new(),
            gone_frequent: List::new(),
        }
    }

    /// Which list `frame` is in.
    #[inline(always)]
    pub fn side(&self, frame: u32) -> Side {
        self.side[frame as usize]
    }

    fn list(&mut self, side: Side) -> &mut List {
        if side == Side::Recent { &mut self.recent } else { &mut self.frequent }
    }

    fn unlink(&mut self, frame: u32) {
        match std::mem::replace(&mut self.side[frame as usize], Side::None) {
            Side::None => {}
            Side::Recent => self.recent.remove(&mut self.links, frame),
            Side::Frequent => self.frequent.remove(&mut self.links, frame),
        }
    }

    fn link(&mut self, frame: u32, side: Side) {
        self.side[frame as usize] = side;
        match side {
            Side::Recent => self.recent.push_back(&mut self.links, frame),
            _ => self.frequent.push_back(&mut self.links, frame),
        }
    }

    /// A page was used again.
    #[inline]
    pub fn hit(&mut self, frame: FrameId) {
        if self.side[frame.index()] == Side::Frequent {
            self.frequent.move_to_back(&mut self.links, frame.0);
        } else {
            self.unlink(frame.0);
            self.link(frame.0, Side::Frequent);
        }
    }

    /// A page missed: its ghost, if there is one, moves the target and is consumed.
    #[inline]
    pub fn recall(&mut self, page: PageId) -> Recall {
        let Some(node) = self.ghosts.find(page) else { return Recall::NONE };
        let (b1, b2) = (f64::from(self.gone_recent.len()), f64::from(self.gone_frequent.len()));
        if *self.ghosts.memory(node) == Side::Recent {
            self.target = (self.target + (b2 / b1).max(1.0)).min(f64::from(self.capacity));
            self.ghosts.drop_from(&mut self.gone_recent, node);
            IN_B1
        } else {
            self.target = (self.target - (b1 / b2).max(1.0)).max(0.0);
            self.ghosts.drop_from(&mut self.gone_frequent, node);
            IN_B2
        }
    }

    /// A page came.
    #[inline]
    pub fn admit(&mut self, frame: FrameId, recall: Recall) {
        self.link(frame.0, if recall == Recall::NONE { Side::Recent } else { Side::Frequent });
        let capacity = self.capacity;
        while self.recent.len() + self.gone_recent.len() > capacity
            && self.ghosts.drop_front(&mut self.gone_recent).is_some()
        {}
        let all =
            |b: &Balance| u64::from(b.recent.len() + b.frequent.len()) + b.ghosts.len() as u64;
        while all(self) > 2 * u64::from(capacity)
            && self.ghosts.drop_front(&mut self.gone_frequent).is_some()
        {}
    }

    /// ARC's choice between the lists, for a miss that recalled `recall`.
    #[inline]
    fn choose(&self, recall: Recall) -> Side {
        let recent = f64::from(self.recent.len());
        let over = recent > self.target || (recall == IN_B2 && recent >= self.target);
        if !self.recent.is_empty() && (over || self.frequent.is_empty()) {
            Side::Recent
        } else {
            Side::Frequent
        }
    }

    /// Offers victims by ARC's rule; says how many went. A refused page moves to the recent end of
    /// its list, and a list whose every page was refused is passed over.
    #[inline]
    pub fn evict<H: Host + ?Sized>(
        &mut self,
        goal: &Goal,
        host: &mut H,
        mut gone: impl FnMut(FrameId),
    ) -> u32 {
        let (mut taken, mut steps) = (0, 0);
        let mut refused = [0; 2];
        let mut recall = goal.incoming.map_or(Recall::NONE, |(_, recall)| recall);
        while taken < goal.frames && steps < goal.steps_max {
            let mut side = self.choose(recall);
            if refused[usize::from(side == Side::Frequent)] >= self.list(side).len() {
                side = if side == Side::Recent { Side::Frequent } else { Side::Recent };
            }
            let Some(victim) = self.list(side).front() else { break };
            steps += 1;
            match host.take(FrameId(victim)) {
                Ok((frame, page)) => {
                    self.gone(frame, page);
                    gone(frame);
                    taken += 1;
                    recall = Recall::NONE;
                }
                Err(_why) => {
                    refused[usize::from(side == Side::Frequent)] += 1;
                    self.unlink(victim);
                    self.link(victim, side);
                }
            }
        }
        taken
    }

    /// The page that was in `frame` went: a ghost remains.
    pub fn gone(&mut self, frame: FrameId, page: PageId) {
        let side = self.side[frame.index()];
        self.unlink(frame.0);
        match side {
            Side::None => {}
            Side::Recent => {
                self.ghosts.push(&mut self.gone_recent, page, side);
            }
            Side::Frequent => {
                self.ghosts.push(&mut self.gone_frequent, page, side);
            }
        }
    }

    /// The page in `frame` is gone without a trace.
    pub fn forget(&mut self, frame: FrameId) {
        self.unlink(frame.0);
    }

    /// Ghosts that a cache of `frames` frames keeps at most.
    pub fn ghosts_max(frames: u32) -> u64 {
        2 * u64::from(frames)
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.links.bytes() + self.side.capacity() + self.ghosts.bytes()
    }

    /// Verifies the invariants of the module for these resident frames.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check(&self, resident: &[FrameId]) -> Result<(), String> {
        self.recent.check(&self.links)?;
        self.frequent.check(&self.links)?;
        self.gone_recent.check(&self.ghosts.links)?;
        self.gone_frequent.check(&self.ghosts.links)?;
        let cached = (self.recent.len() + self.frequent.len()) as usize;
        let lost = resident.iter().find(|f| self.side[f.index()] == Side::None);
        if cached != resident.len() || lost.is_some() {
            return Err(format!("1: {cached} frames listed, {} resident", resident.len()));
        }
        if self.ghosts.len() != (self.gone_recent.len() + self.gone_frequent.len()) as usize {
            return Err("a ghost is in neither list".to_string());
        }
        if !(0.0..=f64::from(self.capacity)).contains(&self.target) {
            return Err(format!("4: the target is {}", self.target));
        }
        Ok(())
    }
}
