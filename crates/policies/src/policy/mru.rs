//! `mru`: the page that was used last is evicted first.
//!
//! **Idea** — In a loop that is larger than the pool, the page used just now is the one wanted
//! farthest in the future.
//!
//! **Source** — gilbert 1.2.5.1 (quasi-MRU).
//!
//! **State** — The stack of frames in the order of their last unfix; the retry queue of refused
//! frames; the present turn.
//!
//! **Invariants** — (1) A resident frame is in the stack or in the retry queue. (2) As long as
//! nothing was refused, the page unfixed last is the one offered.
//!
//! **Cost** — Hit: relink at the unfix, central. Admit: link. Evict: unlink, O(1); a refusal
//! relinks. 9 bytes per frame, no ghosts.
//!
//! **Deviations** — One alternation for all threads. A frame of the retry queue that is used
//! returns to the stack. gilbert 1.3.4 found that MRU stalls an engine whose pool is smaller than
//! the data. Here a call offers no more frames than the host lets it examine, ends early if enough
//! refused pages are dirty and only need to be written, and returns the number taken: the pool
//! writes, and asks again. The page loaded last is the next victim, but that cannot keep an
//! operation from its path, since a live pool refuses the pages held for a starving operation. From
//! Caffeine and the reference model: none.
//!
//! **Defaults** — `stack_checks=1%`, `retry_checks=100%`, taken over from `fifo`, as gilbert does.
//! Updated on unfix, since a fixed page could not be evicted anyway; refused frames are all
//! retried.

use millpond_base::FrameId;

use crate::config::Part;
use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, Hit, HitHook, HitOn, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::RetryQueue;
use crate::parts::retry::{End, Permanent};

config! {
    /// Parameters of [`Mru`].
    pub struct MruConfig {
        /// Part of the stack that is tried before refused frames have a turn.
        stack_checks: Part = Part::Times(0.01);
        /// Part of the retry queue that is tried in its turn.
        retry_checks: Part = Part::Times(1.0);
    }
}

/// The hot half: the policy receives every unfix centrally.
pub struct UnfixHook;

impl HitHook for UnfixHook {
    type Meta = ();
    type Params = ();
    const HIT: Hit = Hit::Central;
    const UNFIX: bool = true;
}

/// Most recently used, with a retry queue.
pub struct Mru {
    stack: RetryQueue,
}

impl PolicySpec for Mru {
    const INFO: Info = Info {
        id: "mru",
        summary: "most recently used goes first; refused frames wait in a retry queue",
        family: Family::Recency,
        class: Class::Two,
        age: Age::Last,
        references: References::Last,
        tier: Tier::First,
        live: true,
        frame_bytes: 9.0,
        ghost_bytes: 0.0,
        source: "gilbert 1.2.5.1",
    };
    type Hook = UnfixHook;
    type Config = MruConfig;

    fn new(config: &MruConfig, shape: &Shape) -> Mru {
        let (some, all) = (config.stack_checks, config.retry_checks);
        Mru { stack: RetryQueue::new(shape.frames, End::Newest, Permanent::Retried, some, all) }
    }

    fn hit_on(&self) -> HitOn {
        HitOn::Unfix
    }

    fn state_bytes(&self) -> usize {
        self.stack.bytes()
    }

    fn check(&self, _frames: Frames<'_, UnfixHook>, resident: &[FrameId]) -> Result<(), String> {
        self.stack.check(resident)
    }
}

impl Policy for Mru {
    #[inline(always)]
    fn hit(&mut self, _: Frames<'_, UnfixHook>, frame: FrameId, _: &Access) {
        self.stack.renew(frame.0);
    }

    #[inline(always)]
    fn admit(&mut self, _: Frames<'_, UnfixHook>, frame: FrameId, _: &Access, _: GhostHit) {
        self.stack.admit(frame.0);
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, UnfixHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        self.stack.evict(request, host)
    }

    fn forget(&mut self, _: Frames<'_, UnfixHook>, frame: FrameId) {
        self.stack.remove(frame.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::RefusalReason;
    use crate::testing::TestPool;

    #[test]
    fn a_loop_larger_than_the_pool_keeps_most_of_its_hits() {
        let mut pool = TestPool::<Mru>::new(&MruConfig::default(), 10);
        let hits = pool.run((0..1_100).map(|i| i % 11));
        assert!(hits > 900, "{hits}");
    }

    #[test]
    fn a_refused_page_waits_until_it_is_used_again() {
        let mut pool = TestPool::<Mru>::new(&MruConfig::default(), 3);
        pool.run([1, 2, 3]);
        pool.refuse(3, Some(RefusalReason::Pinned));
        pool.reference(4);
        assert_eq!(pool.pages(), [1, 3, 4]);
        pool.refuse(3, None);
        pool.reference(3);
        pool.reference(5);
        assert_eq!(pool.pages(), [1, 4, 5]);
    }
}
