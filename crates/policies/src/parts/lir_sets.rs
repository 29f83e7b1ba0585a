//! LIRS's two sets: LIR frames in the recency stack, HIR frames in a queue and maybe in the stack.
//!
//! The policies choose the LIR frames, their maximum number, and the length of the stack. This
//! module moves frames between the sets and finds victims: the front of the queue, or else the
//! oldest LIR frame.
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
    /// LIR frames, and all entries younger than the oldest of them.
    pub stack: RecencyStack,
    links: Links,
    queue: List,
}

impl LirSets {
    /// Creates empty sets, with room for about `ghosts` ghosts.
    pub fn new(shape: &Shape, ghosts: u64) -> LirSets {
        LirSets {
            stack: RecencyStack::new(shape.frames, shape.pages_dense, ghosts),
            links: Links::new(shape.frames),
            queue: List::new(),
        }
    }

    /// Returns the number of LIR frames.
    #[inline(always)]
    pub fn lir(&self) -> u32 {
        self.stack.hot()
    }

    /// Returns the number of HIR frames.
    #[inline(always)]
    pub fn hir(&self) -> u32 {
        self.queue.len()
    }

    /// Returns the HIR frames, next victim first.
    pub fn queued(&self) -> impl Iterator<Item = FrameId> + '_ {
        self.queue.iter(&self.links).map(FrameId)
    }

    /// Adds a new `frame` as HIR.
    #[inline(always)]
    pub fn push_hir(&mut self, frame: FrameId) {
        self.queue.push_back(&mut self.links, frame.0);
        self.stack.push_cold(frame);
        self.stack.prune();
    }

    /// Makes the used HIR `frame`, which is not in the stack, the newest of both.
    #[inline(always)]
    pub fn renew_hir(&mut self, frame: FrameId) {
        self.queue.move_to_back(&mut self.links, frame.0);
        self.stack.push_cold(frame);
        self.stack.prune();
    }

    /// Removes the HIR `frame`, which is in the stack, from both, to become LIR.
    #[inline(always)]
    pub fn lift(&mut self, frame: FrameId) {
        self.queue.remove(&mut self.links, frame.0);
        self.stack.remove(frame);
    }

    /// Turns the oldest LIR frame into a HIR frame outside the stack; returns it, if there was
    /// one.
    #[inline(always)]
    pub fn demote(&mut self) -> Option<FrameId> {
        let oldest = self.stack.bottom()?;
        self.stack.remove(oldest);
        self.queue.push_back(&mut self.links, oldest.0);
        self.stack.prune();
        Some(oldest)
    }

    /// Removes `frame`, whose page was evicted, from everything, except that a HIR frame stays in
    /// the stack.
    #[inline(always)]
    fn unlink(&mut self, frame: FrameId) {
        if self.stack.heat(frame) == Heat::Hot {
            self.stack.remove(frame);
            self.stack.prune();
        } else {
            self.queue.remove(&mut self.links, frame.0);
        }
    }

    /// Removes the page in `frame` without leaving a ghost.
    pub fn forget(&mut self, frame: FrameId) {
        self.unlink(frame);
        if self.stack.heat(frame) == Heat::Cold {
            self.stack.remove(frame);
        }
    }

    /// Offers HIR frames, then LIR frames, each at most once; returns the number taken. `gone`
    /// receives each taken frame; a HIR frame in the stack leaves a ghost there. A refused HIR
    /// frame moves to the end of the queue, a refused LIR frame to the top of the stack.
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

    /// Returns the bytes held.
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
