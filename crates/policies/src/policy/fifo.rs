//! `fifo`: the page that was loaded first is evicted first.
//!
//! **Idea** — A page loaded lately is likelier to be referenced again than one loaded long ago, and
//! keeping that order costs nothing on a hit.
//!
//! **Source** — gilbert 1.2.2.2, algorithm 1.1 (quasi-FIFO).
//!
//! **State** — The FIFO queue; the retry queue of refused frames; the present turn.
//!
//! **Invariants** — (1) A resident frame is in the FIFO queue, in the retry queue, or excluded
//! permanently. (2) As long as nothing was refused, the order of the offers is the order of the
//! loads.
//!
//! **Cost** — Hit: nothing. Admit: link. Evict: unlink, O(1); a refusal relinks. 9 bytes per
//! frame, no ghosts.
//!
//! **Deviations** — One alternation instead of one per thread, since an evictor holds the latch of
//! its policy host anyway. Explicitly dropped frames leave their queue at once instead of being
//! flagged and skipped. A turn's length is rounded down to whole frames, at least one. A page that
//! stays because a child is evicted instead counts as new. From libCacheSim, Caffeine and the
//! reference model, which know no refusals: none.
//!
//! **Defaults** — `queue_checks=1%`, `retry_checks=100%`: gilbert's alternation. Permanently
//! refused frames are not offered again, as he advises.

use millpond_base::FrameId;

use crate::config::Part;
use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, Host, NoHook, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::RetryQueue;
use crate::parts::retry::{End, Permanent};

config! {
    /// Parameters of [`Fifo`].
    pub struct FifoConfig {
        /// Part of the FIFO queue that is tried before refused frames have a turn.
        queue_checks: Part = Part::Times(0.01);
        /// Part of the retry queue that is tried in its turn.
        retry_checks: Part = Part::Times(1.0);
    }
}

/// First in, first out, with a retry queue.
pub struct Fifo {
    queue: RetryQueue,
}

impl PolicySpec for Fifo {
    const INFO: Info = Info {
        id: "fifo",
        summary: "first in, first out; refused frames wait in a retry queue",
        family: Family::Arrival,
        class: Class::One,
        age: Age::First,
        references: References::Ignored,
        tier: Tier::First,
        live: true,
        frame_bytes: 9.0,
        ghost_bytes: 0.0,
        source: "gilbert 1.2.2.2",
    };
    type Hook = NoHook;
    type Config = FifoConfig;

    fn new(config: &FifoConfig, shape: &Shape) -> Fifo {
        let (some, all) = (config.queue_checks, config.retry_checks);
        Fifo { queue: RetryQueue::new(shape.frames, End::Oldest, Permanent::Excluded, some, all) }
    }

    fn state_bytes(&self) -> usize {
        self.queue.bytes()
    }

    fn check(&self, _frames: Frames<'_, NoHook>, resident: &[FrameId]) -> Result<(), String> {
        self.queue.check(resident)
    }
}

impl Policy for Fifo {
    #[inline(always)]
    fn admit(&mut self, _: Frames<'_, NoHook>, frame: FrameId, _: &Access, _: GhostHit) {
        self.queue.admit(frame.0);
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, NoHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        self.queue.evict(request, host)
    }

    fn forget(&mut self, _: Frames<'_, NoHook>, frame: FrameId) {
        self.queue.remove(frame.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::RefusalReason;
    use crate::testing::TestPool;

    #[test]
    fn a_page_with_others_below_it_is_not_at_the_front_for_ever() {
        let mut pool = TestPool::<Fifo>::new(&FifoConfig::default(), 4);
        pool.reference(0);
        pool.host.frames[0].has_others_below = true;
        pool.run(1..11);
        assert_eq!(pool.host.gone, [3, 1, 2, 4, 5, 6, 7]);
        assert_eq!(pool.host.offered.iter().filter(|f| **f == 0).count(), 3);
    }

    #[test]
    fn a_pinned_page_is_retried_and_a_permanent_one_never_offered_again() {
        let mut pool = TestPool::<Fifo>::new(&FifoConfig::default(), 4);
        pool.run(0..4);
        pool.refuse(0, Some(RefusalReason::Pinned));
        pool.refuse(1, Some(RefusalReason::Permanent));
        pool.run(10..14);
        assert_eq!(pool.pages(), [0, 1, 12, 13]);
        pool.refuse(0, None);
        pool.run([14, 15, 16, 17]);
        assert_eq!(pool.pages(), [1, 15, 16, 17]);
        assert_eq!(pool.host.offered.iter().filter(|f| **f == 1).count(), 1);
        pool.drop_page(1);
        assert_eq!(pool.pages(), [15, 16, 17]);
    }

    #[test]
    fn refusals_drops_and_tiny_pools_leave_it_whole() {
        for spec in ["fifo", "fifo(queue_checks=0,retry_checks=0)", "fifo(queue_checks=all)"] {
            crate::testing::survives_everything::<Fifo>(spec);
        }
    }
}
