//! LIRS's two sets: LIR frames in the recency stack, HIR frames in a queue and maybe in the stack.
//!
//! Which frames are LIR, how many may be, and how long the stack is, is for the policies to say.
//! Here is how a frame moves between the sets, and how victims are found: the front of the queue,
//! or else the oldest LIR frame.
//!
//! Invariants: (1) a resident frame is either LIR and in the stack, or HIR and in the queue, (2)
//! the bottom of the stack is a LIR frame, or the stack is empty.

use millpond_base::FrameId;

use super::list::{Links, List};
use super::offers::offer_in_turn;
use super::recency_stack::{Heat, RecencyStack};
use crate::contract::{EvictRequest, Host, Shape};

/// The stack and the queue.
pub struct LirSets {
    /// LIR frames, and what is younger than the oldest of them.
    pub stack: RecencyStack,
    links: Links,
    queue: List,
}

impl LirSets {
    /// Empty sets, with room for about `ghosts` ghosts.
    pub fn new(shape: &Shape, ghosts: u64) -> LirSets {
        LirSets {
            stack: RecencyStack::new(shape.frames, shape.pages_dense, ghosts),
            links: Links::new(shape.frames),
            queue: List::new(),
        }
    }

    /// Number of LIR frames.
    #[inline(always)]
    pub fn lir(&self) -> u32 {
        self.stack.hot()
    }

    /// Number of HIR frames.
    #[inline(always)]
    pub fn hir(&self) -> u32 {
        self.queue.len()
    }

    /// The HIR frames, next victim first.
    pub fn queued(&self) -> impl Iterator<Item = FrameId> + '_ {
        self.queue.iter(&self.links).map(FrameId)
    }

    /// A new `frame` is HIR.
    #[inline(always)]
    pub fn push_hir(&mut self, frame: FrameId) {
        self.queue.push_back(&mut self.links, frame.0);
        self.stack.push_cold(frame);
        self.stack.prune();
    }

    /// The HIR `frame`, which is not in the stack, was used: it is the newest of both.
    #[inline(always)]
    pub fn renew_hir(&mut self, frame: FrameId) {
        self.queue.move_to_back(&mut self.links, frame.0);
        self.stack.push_cold(frame);
        self.stack.prune();
    }

    /// Takes the HIR `frame`, which is in the stack, out of both, to become LIR.
    #[inline(always)]
    pub fn lift(&mut self, frame: FrameId) {
        self.queue.remove(&mut self.links, frame.0);
        self.stack.remove(frame);
    }

    /// The oldest LIR frame becomes HIR, out of the stack; says which, if there was one.
    #[inline(always)]
    pub fn demote(&mut self) -> Option<FrameId> {
        let oldest = self.stack.bottom()?;
        self.stack.remove(oldest);
        self.queue.push_back(&mut self.links, oldest.0);
        self.stack.prune();
        Some(oldest)
    }

    /// Takes `frame`, whose page was evicted, out of everything but, if it is HIR, the stack.
    #[inline(always)]
    fn unlink(&mut self, frame: FrameId) {
        if self.stack.heat(frame) == Heat::Hot {
            self.stack.remove(frame);
            self.stack.prune();
        } else {
            self.queue.remove(&mut self.links, frame.0);
        }
    }

    /// The page in `frame` was evicted without leaving a ghost.
    pub fn forget(&mut self, frame: FrameId) {
        self.unlink(frame);
        if self.stack.heat(frame) == Heat::Cold {
            self.stack.remove(frame);
        }
    }

    /// Offers HIR frames, then LIR frames, each at most once; returns how many were taken. `gone`
    /// receives each; one that is HIR and in the stack leaves a ghost there. A refused HIR frame
    /// moves to the end of the queue, a refused LIR frame to the top of the stack.
    #[inline(always)]
    pub fn evict<H: Host + ?Sized>(
        &mut self,
        request: &EvictRequest,
        host: &mut H,
        mut gone: impl FnMut(FrameId),
    ) -> u32 {
        let (refused_hir, refused_lir) = (0, 0);
        offer_in_turn(
            request,
            host,
            &mut (self, refused_hir, refused_lir),
            |(sets, hir, lir)| {
                let queued = sets.queue.front().filter(|_| *hir < sets.hir()).map(FrameId);
                queued.or_else(|| sets.stack.bottom().filter(|_| *lir < sets.lir()))
            },
            |(sets, _, _), frame, page| {
                sets.unlink(frame);
                gone(frame);
                if sets.stack.heat(frame) == Heat::Cold {
                    sets.stack.leave_ghost(frame, page);
                }
            },
            |(sets, hir, lir), frame, _why| {
                if sets.stack.heat(frame) == Heat::Hot {
                    sets.stack.touch_hot(frame);
                    *lir += 1;
                } else {
                    sets.queue.move_to_back(&mut sets.links, frame.0);
                    *hir += 1;
                }
            },
        )
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.stack.bytes() + self.links.bytes()
    }

    /// Verifies the invariants of the module for these resident frames.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check(&self, resident: &[FrameId]) -> Result<(), String> {
        self.stack.check()?;
        self.queue.check(&self.links)?;
        let (lir, hir) = (self.lir(), self.hir());
        let queued_lir = self.queued().any(|f| self.stack.heat(f) == Heat::Hot);
        if queued_lir || (lir + hir) as usize != resident.len() {
            return Err(format!("invariant 1: {lir} LIR, {hir} HIR, {} there", resident.len()));
        }
        if !self.stack.is_empty() && self.stack.bottom().is_none() {
            return Err("invariant 2: the bottom of the stack is HIR".to_string());
        }
        Ok(())
    }
}
