//! `dlirs`: LIRS with adaptive shares of its two sets.
//!
//! **Idea** — LIRS leaves 1 % of the pool to pages with a high inter-reference recency, which is
//! too little when recency matters. Adapt the shares as ARC does its lists: a hit on a ghost shows
//! that the HIR share is too small, a hit on a page that was demoted from LIR shows that it is too
//! large.
//!
//! **Source** — Li, SYSTOR 2018; gilbert 1.2.
//!
//! **State** — The stack S of LIR frames, HIR frames and ghosts in order of use; the queue Q of HIR
//! frames, next victim at the front; a demoted flag beside each frame; the LIR share.
//!
//! **Invariants** — (1) A resident frame is either LIR and in S, or HIR and in Q. (2) The bottom
//! of S is a LIR frame, or S is empty. (3) Demoted frames are HIR, and are counted. (4) After an
//! admission frames and ghosts together are at most 2c, c being the number of frames. (5) The LIR
//! share leaves at least one frame to HIR.
//!
//! **Cost** — Hit: relink in one to three lists, central. Miss: one lookup among the ghosts.
//! Admit: link, and prune what is below the new bottom. Evict: unlink, a ghost takes the frame's
//! place in S, O(1); pushed entries pay for pruning and demotions. 26 bytes per frame, 28 per
//! ghost.
//!
//! **Deviations** — No independent result was available, nor the paper itself. The definition is
//! that of a published re-implementation (cacheus), from which the rest is inferred. The share
//! moves by the rounded quotient of demoted frames and ghosts, at least 1, and the frames over the
//! share are demoted when a frame is next promoted or reclaimed. Repeated references count, unlike
//! in our `lirs`. If the queue is empty, the oldest LIR page is evicted. A refused HIR frame moves
//! to the end of Q, a refused LIR frame to the top of S.
//!
//! **Defaults** — `hirs=1%`, at least one frame, as a start: LIRS's.

use millpond_base::{FrameId, PageId};

use crate::config::Part;
use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{Heat, LirSets};

config! {
    /// Parameters of [`Dlirs`].
    pub struct DlirsConfig {
        /// Part of the pool for pages with a high inter-reference recency, at the beginning.
        hirs: Part = Part::Times(0.01);
    }
}

/// The page has a ghost in the stack.
const IN_STACK: GhostHit = GhostHit(1);

/// Low inter-reference recency set with dynamic shares.
pub struct Dlirs {
    frames: u32,
    lir_max: u32,
    sets: LirSets,
    is_demoted: Vec<bool>,
    demoted: u32,
}

/// Returns `over / under`, rounded, at least 1.
fn step(over: u32, under: u32) -> u32 {
    let (over, under) = (u64::from(over), u64::from(under.max(1)));
    (((2 * over + under) / (2 * under)) as u32).max(1)
}

impl Dlirs {
    /// Turns the oldest LIR frame into a HIR frame; returns `true` if there was one.
    fn demote(&mut self) -> bool {
        let Some(oldest) = self.sets.demote() else { return false };
        self.is_demoted[oldest.index()] = true;
        self.demoted += 1;
        true
    }

    fn demote_down_to(&mut self, hot: u32) {
        while self.sets.lir() > hot && self.demote() {}
    }

    /// Clears the mark of a demoted frame and returns `true` if it was set.
    fn take_demoted(&mut self, frame: FrameId) -> bool {
        let was = std::mem::replace(&mut self.is_demoted[frame.index()], false);
        self.demoted -= u32::from(was);
        was
    }

    /// Makes `frame`, which is in neither list, a LIR frame.
    #[inline(always)]
    fn push_lir(&mut self, frame: FrameId) {
        self.demote_down_to(self.lir_max.saturating_sub(1));
        self.sets.stack.push_hot(frame);
        if self.sets.lir() > self.lir_max {
            self.demote();
        }
    }

    #[inline(always)]
    fn limit(&mut self) {
        let resident = u64::from(self.sets.lir()) + u64::from(self.sets.hir());
        while resident + u64::from(self.sets.stack.ghosts()) > 2 * u64::from(self.frames)
            && self.sets.stack.drop_oldest_cold()
        {}
    }
}

impl PolicySpec for Dlirs {
    const INFO: Info = Info {
        id: "dlirs",
        summary: "LIRS whose shares follow hits on ghosts and on demoted pages",
        family: Family::Adaptive,
        class: Class::Three,
        age: Age::Some,
        references: References::Some,
        tier: Tier::First,
        live: true,
        frame_bytes: 26.0,
        ghost_bytes: 28.0,
        source: "Li SYSTOR 2018, gilbert 1.2",
    };
    type Hook = CentralHook;
    type Config = DlirsConfig;

    fn new(config: &DlirsConfig, shape: &Shape) -> Dlirs {
        let hirs_max = shape.frames.saturating_sub(1).max(1);
        let hirs = config.hirs.frames_of(shape.frames).clamp(1, hirs_max);
        Dlirs {
            frames: shape.frames,
            lir_max: shape.frames - hirs,
            sets: LirSets::new(shape, u64::from(shape.frames)),
            is_demoted: vec![false; shape.frames as usize],
            demoted: 0,
        }
    }

    fn ghosts_max(_config: &DlirsConfig, frames: u32) -> u64 {
        2 * u64::from(frames)
    }

    #[inline(always)]
    fn will_reference(&self, page: PageId) {
        self.sets.stack.prefetch(page);
    }

    fn state_bytes(&self) -> usize {
        self.sets.bytes() + self.is_demoted.capacity()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.sets.check(resident)?;
        let demoted = self.sets.queued().filter(|f| self.is_demoted[f.index()]).count();
        if demoted != self.demoted as usize
            || demoted != self.is_demoted.iter().filter(|d| **d).count()
        {
            return Err(format!("invariant 3: {demoted} are demoted, not {}", self.demoted));
        }
        let all = resident.len() + self.sets.stack.ghosts() as usize;
        if all as u64 > 2 * u64::from(self.frames) {
            return Err(format!("invariant 4: {all} frames and ghosts"));
        }
        if self.lir_max >= self.frames {
            return Err(format!("invariant 5: a LIR share of {}", self.lir_max));
        }
        Ok(())
    }
}

impl Policy for Dlirs {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, _access: &Access) {
        match self.sets.stack.heat(frame) {
            Heat::Hot => self.sets.stack.touch_hot(frame),
            Heat::Cold => {
                self.sets.lift(frame);
                self.take_demoted(frame);
                self.push_lir(frame);
            }
            Heat::Out => {
                let demoted = self.demoted;
                if self.take_demoted(frame) {
                    let more = step(self.sets.stack.ghosts(), demoted);
                    self.lir_max = (self.lir_max.saturating_add(more)).min(self.frames - 1);
                }
                self.sets.renew_hir(frame);
                self.limit();
            }
        }
    }

    #[inline(always)]
    fn miss(&mut self, access: &Access) -> GhostHit {
        let ghosts = self.sets.stack.ghosts();
        if !self.sets.stack.take_ghost(access.page) {
            return GhostHit::NONE;
        }
        let less = step(self.demoted, ghosts);
        let least = u32::from(self.frames > 1);
        self.lir_max = self.lir_max.saturating_sub(less).max(least);
        IN_STACK
    }

    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        frame: FrameId,
        _access: &Access,
        ghost_hit: GhostHit,
    ) {
        let warming_up = self.sets.hir() == 0 && self.sets.lir() < self.lir_max;
        if ghost_hit == IN_STACK || warming_up {
            self.push_lir(frame);
        } else {
            self.sets.push_hir(frame);
        }
        self.limit();
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        // A page that returns from the stack becomes LIR, so room for it is made before.
        let promotes = matches!(request.incoming, Some((_, IN_STACK)));
        self.demote_down_to(self.lir_max.saturating_sub(u32::from(promotes)));
        let (is_demoted, demoted) = (&mut self.is_demoted, &mut self.demoted);
        self.sets.evict(request, host, |frame| {
            *demoted -= u32::from(std::mem::replace(&mut is_demoted[frame.index()], false));
        })
    }

    fn forget(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        self.take_demoted(frame);
        self.sets.forget(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestPool, survives_everything};

    #[test]
    fn ghosts_widen_the_hir_share_and_demoted_pages_the_lir_share() {
        let mut pool = TestPool::<Dlirs>::of("dlirs", 10);
        pool.run(0..12);
        assert_eq!(pool.policy.lir_max, 9);
        // 9 and 10 are ghosts. 9 comes back: the LIR share shrinks by one and 9 needs a place in
        // it, so 0 and 1 are demoted; 11, which queues before them, is evicted.
        pool.reference(9);
        assert_eq!((pool.policy.lir_max, pool.policy.demoted), (8, 2));
        assert_eq!(pool.pages(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        // A hit on a demoted page shows that the share was right before.
        assert!(pool.reference(0));
        assert_eq!((pool.policy.lir_max, pool.policy.demoted), (9, 1));
    }

    #[test]
    fn the_step_is_the_rounded_quotient_but_never_less_than_one() {
        assert_eq!([step(0, 5), step(7, 2), step(5, 2), step(9, 4), step(3, 0)], [1, 4, 3, 2, 3]);
    }

    #[test]
    fn refusals_drops_and_tiny_pools_break_nothing() {
        for spec in ["dlirs", "dlirs(hirs=50%)", "dlirs(hirs=all)", "dlirs(hirs=0)"] {
            survives_everything::<Dlirs>(spec);
        }
    }
}
