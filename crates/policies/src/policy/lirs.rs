//! `lirs`: pages that were used again within a short distance are kept, whatever was used since.
//!
//! **Idea** — Rank pages not by the time since their last use, but by the number of other pages
//! between their last two uses (inter-reference recency). Nearly the whole pool belongs to pages
//! with a low one (LIR). The others (HIR) pass through a small queue; one that is used again while
//! it is still in the stack, which reaches down to the oldest LIR page, takes that page's place.
//!
//! **Source** — Jiang & Zhang, SIGMETRICS 2002, and the authors' program; luan 4.8.
//!
//! **State** — The stack S of LIR frames, HIR frames and ghosts in order of use; the queue Q of
//! HIR frames, next victim at the front; the frame used last.
//!
//! **Invariants** — (1) A resident frame is either LIR and in S, or HIR and in Q. (2) The bottom
//! of S is a LIR frame, or S is empty. (3) At most c − Lhirs frames are LIR. (4) S is not longer
//! than its limit, unless the LIR frames alone are more.
//!
//! **Cost** — Hit: relink in one to three lists, central. Miss: one lookup among the ghosts.
//! Admit: link, and prune what is below the new bottom. Evict: unlink, a ghost takes the frame's
//! place in S, O(1); pushed entries pay for pruning. 25 bytes per frame, 28 per ghost.
//!
//! **Deviations** — As in the authors' program, and not in their paper: references to the page used
//! last change nothing; S has a limit, above which its oldest HIR entry is dropped. Theirs is found
//! by a walk from the bottom, ours by a chain of the HIR entries. `hirs_min=2,stack=2500x` (or 2x,
//! 3x) is their program; hits are the same in every cell. The Caffeine simulator and libCacheSim
//! limit the ghosts instead of the stack (2c and c), take an Lhirs of at least 1, and do not skip
//! repeats: they differ by design. If the queue is empty (frames were dropped or evicted ahead),
//! the oldest LIR page is evicted without a ghost, which would be below the bottom. A refused HIR
//! frame moves to the end of Q, a refused LIR frame to the top of S.
//!
//! **Defaults** — `hirs=1%` and `stack=1.5x`: luan 4.8; `hirs_min=2`: the authors' program. In a
//! pool of one frame the only frame is HIR.

use millpond_base::{FrameId, PageId};

use crate::config::Part;
use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{Heat, LirSets};

config! {
    /// Parameters of [`Lirs`].
    pub struct LirsConfig {
        /// Part of the pool for pages with a high inter-reference recency.
        hirs: Part = Part::Times(0.01);
        /// Least number of frames for pages with a high inter-reference recency.
        hirs_min: u32 = 2, in 1..=u32::MAX, counts frames;
        /// Length of the stack, including LIR pages, above which HIR pages are dropped from the
        /// stack.
        stack: Part = Part::Times(1.5);
    }
}

/// The page has a ghost in the stack.
const IN_STACK: GhostHit = GhostHit(1);

/// Low inter-reference recency set.
pub struct Lirs {
    lir_max: u32,
    stack_max: u64,
    sets: LirSets,
    last: Option<FrameId>,
}

impl Lirs {
    /// Makes a used frame LIR, if it may be.
    #[inline(always)]
    fn push_lir(&mut self, frame: FrameId) {
        self.sets.stack.push_hot(frame);
        if self.sets.lir() > self.lir_max {
            self.sets.demote();
        }
    }

    #[inline(always)]
    fn limit(&mut self) {
        while u64::from(self.sets.stack.len()) > self.stack_max
            && self.sets.stack.drop_oldest_cold()
        {}
    }
}

impl PolicySpec for Lirs {
    const INFO: Info = Info {
        id: "lirs",
        summary: "keeps pages whose last two uses were close together",
        family: Family::Mixed,
        class: Class::Three,
        age: Age::Some,
        references: References::Some,
        tier: Tier::First,
        live: true,
        frame_bytes: 25.0,
        ghost_bytes: 28.0,
        source: "Jiang & Zhang SIGMETRICS 2002, luan 4.8",
    };
    type Hook = CentralHook;
    type Config = LirsConfig;

    fn new(config: &LirsConfig, shape: &Shape) -> Lirs {
        let hirs_max = shape.frames.saturating_sub(1).max(1);
        let hirs = config.hirs.frames_of(shape.frames).max(config.hirs_min).min(hirs_max);
        let stack_max = config.stack.of(shape.frames);
        Lirs {
            lir_max: shape.frames - hirs,
            stack_max,
            sets: LirSets::new(shape, stack_max.min(2 * u64::from(shape.frames))),
            last: None,
        }
    }

    fn ghosts_max(config: &LirsConfig, frames: u32) -> u64 {
        config.stack.of(frames)
    }

    #[inline(always)]
    fn will_reference(&self, page: PageId) {
        self.sets.stack.prefetch(page);
    }

    fn state_bytes(&self) -> usize {
        self.sets.bytes()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.sets.check(resident)?;
        let lir = self.sets.lir();
        if lir > self.lir_max {
            return Err(format!("invariant 3: {lir} LIR frames of at most {}", self.lir_max));
        }
        if u64::from(self.sets.stack.len()) > self.stack_max.max(u64::from(lir)) {
            return Err(format!("invariant 4: the stack is {} long", self.sets.stack.len()));
        }
        Ok(())
    }
}

impl Policy for Lirs {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, _access: &Access) {
        if self.last == Some(frame) {
            return;
        }
        self.last = Some(frame);
        match self.sets.stack.heat(frame) {
            Heat::Hot => self.sets.stack.touch_hot(frame),
            Heat::Cold => {
                self.sets.lift(frame);
                self.push_lir(frame);
            }
            Heat::Out => {
                self.sets.renew_hir(frame);
                self.limit();
            }
        }
    }

    #[inline(always)]
    fn miss(&mut self, access: &Access) -> GhostHit {
        if self.sets.stack.take_ghost(access.page) { IN_STACK } else { GhostHit::NONE }
    }

    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        frame: FrameId,
        _access: &Access,
        ghost_hit: GhostHit,
    ) {
        self.last = Some(frame);
        if ghost_hit == IN_STACK || self.sets.lir() < self.lir_max {
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
        let last = &mut self.last;
        self.sets.evict(request, host, |frame| *last = last.filter(|l| *l != frame))
    }

    fn forget(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        self.last = self.last.filter(|last| *last != frame);
        self.sets.forget(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestPool, survives_everything};

    #[test]
    fn a_loop_longer_than_the_pool_keeps_what_fits() {
        let mut pool = TestPool::<Lirs>::of("lirs", 10);
        pool.run((0..12).collect::<Vec<_>>());
        // Eight pages are LIR and hit in each round; LRU would hit none.
        let rounds: Vec<u64> = (0..5).flat_map(|_| 0..12).collect();
        assert_eq!(pool.run(rounds), 5 * 8);
    }

    #[test]
    fn a_ghost_in_the_stack_takes_the_oldest_lir_page_s_place() {
        let mut pool = TestPool::<Lirs>::of("lirs(hirs_min=1)", 3);
        pool.run([1, 2, 3, 4]);
        // 1 and 2 are LIR; 3 was HIR and is a ghost now.
        assert_eq!(pool.pages(), [1, 2, 4]);
        pool.reference(3);
        // 4 left the queue; 3 is LIR; 1 is HIR and is evicted next.
        assert_eq!(pool.pages(), [1, 2, 3]);
        pool.reference(5);
        assert_eq!(pool.pages(), [2, 3, 5]);
    }

    #[test]
    fn repeats_of_the_last_reference_change_nothing() {
        let (mut once, mut often) =
            (TestPool::<Lirs>::of("lirs", 8), TestPool::<Lirs>::of("lirs", 8));
        let mut rng = fastrand::Rng::with_seed(4);
        for _ in 0..3_000 {
            let page = rng.u64(0..20);
            assert_eq!(once.reference(page), often.reference(page));
            assert!(often.reference(page) && often.reference(page));
        }
    }

    #[test]
    fn refusals_drops_and_tiny_pools_break_nothing() {
        for spec in ["lirs", "lirs(stack=0)", "lirs(stack=all,hirs=50%)", "lirs(hirs=all)"] {
            survives_everything::<Lirs>(spec);
        }
    }
}
