//! `filo`: the page that was loaded last is evicted first.
//!
//! **Idea** — A table scan touches each page once: evicting the newest page keeps the rest of the
//! pool as it was. For anything else it is about the worst choice.
//!
//! **Source** — gilbert 1.2.3.
//!
//! **State** — The stack of frames in the order of their loads; the retry queue of refused frames;
//! the present turn.
//!
//! **Invariants** — (1) A resident frame is in the stack, in the retry queue, or excluded
//! permanently. (2) As long as nothing was refused, the newest page is the one offered.
//!
//! **Cost** — Hit: nothing. Admit: link. Evict: unlink, O(1); a refusal relinks. 9 bytes per
//! frame, no ghosts.
//!
//! **Deviations** — As `fifo`: one alternation for all threads, dropped frames leave at once. In a
//! live pool the newest pages are mostly still fixed, so that many victims come from the retry
//! queue and resemble FIFO's, as gilbert observes. He found that FILO does not work in small pools
//! (1.3.4). Here a call offers no more frames than the host lets it examine, and a live pool
//! refuses the pages held for a starving operation, whose path the eviction of the newest page
//! would cut forever. From the reference model: none.
//!
//! **Defaults** — `stack_checks=1%`, `retry_checks=100%`, taken over from `fifo`, as gilbert does.

use millpond_base::FrameId;

use crate::config::Part;
use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, Host, NoHook, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::RetryQueue;
use crate::parts::retry::{End, Permanent};

config! {
    /// Parameters of [`Filo`].
    pub struct FiloConfig {
        /// Part of the stack that is tried before refused frames have a turn.
        stack_checks: Part = Part::Times(0.01);
        /// Part of the retry queue that is tried in its turn.
        retry_checks: Part = Part::Times(1.0);
    }
}

/// First in, last out, with a retry queue.
pub struct Filo {
    stack: RetryQueue,
}

impl PolicySpec for Filo {
    const INFO: Info = Info {
        id: "filo",
        summary: "first in, last out; refused frames wait in a retry queue",
        family: Family::Arrival,
        class: Class::One,
        age: Age::First,
        references: References::Ignored,
        tier: Tier::First,
        live: true,
        frame_bytes: 9.0,
        ghost_bytes: 0.0,
        source: "gilbert 1.2.3",
    };
    type Hook = NoHook;
    type Config = FiloConfig;

    fn new(config: &FiloConfig, shape: &Shape) -> Filo {
        let (some, all) = (config.stack_checks, config.retry_checks);
        Filo { stack: RetryQueue::new(shape.frames, End::Newest, Permanent::Excluded, some, all) }
    }

    fn state_bytes(&self) -> usize {
        self.stack.bytes()
    }

    fn check(&self, _frames: Frames<'_, NoHook>, resident: &[FrameId]) -> Result<(), String> {
        self.stack.check(resident)
    }
}

impl Policy for Filo {
    #[inline(always)]
    fn admit(&mut self, _: Frames<'_, NoHook>, frame: FrameId, _: &Access, _: GhostHit) {
        self.stack.admit(frame.0);
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, NoHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        self.stack.evict(request, host)
    }

    fn forget(&mut self, _: Frames<'_, NoHook>, frame: FrameId) {
        self.stack.remove(frame.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::RefusalReason;
    use crate::testing::TestPool;

    #[test]
    fn a_scan_passes_through_one_frame() {
        let mut pool = TestPool::<Filo>::new(&FiloConfig::default(), 5);
        pool.run(0..5);
        pool.run(100..200);
        assert_eq!(pool.pages(), [0, 1, 2, 3, 199]);
    }

    #[test]
    fn while_the_newest_page_is_fixed_the_one_before_it_goes() {
        let mut pool = TestPool::<Filo>::new(&FiloConfig::default(), 4);
        pool.run(0..4);
        for page in 4..40 {
            pool.refuse(page - 1, Some(RefusalReason::Pinned));
            pool.reference(page);
            pool.refuse(page - 1, None);
        }
        assert_eq!(pool.pages(), [0, 1, 38, 39]);
    }

    #[test]
    fn refusals_drops_and_tiny_pools_leave_it_whole() {
        for spec in ["filo", "filo(stack_checks=all,retry_checks=1)"] {
            crate::testing::survives_everything::<Filo>(spec);
        }
    }
}
