//! `loop`: a cyclic counter over the frames.
//!
//! **Idea** — FIFO without a queue: the frames are the ring, and a counter is the hand. It
//! remembers nothing, and costs nothing until a frame is needed.
//!
//! **Source** — gilbert 1.2.2.1.
//!
//! **State** — The counter, or one for each of 64 groups of threads.
//!
//! **Invariants** — (1) One counter offers every frame once before it offers one twice.
//!
//! **Cost** — Hit and admit: nothing. Evict: one addition per offer. No bytes per frame, no
//! ghosts.
//!
//! **Deviations** — A refused frame is skipped and thereby becomes the last in line, as gilbert
//! warns. With `counter=thread` the order is no longer FIFO: a thread may evict a page that
//! another one has just loaded, and he measured this variant. Threads share a counter when there
//! are more than 64. Without refusals and drops the hits are those of `fifo`.
//!
//! **Defaults** — `counter=shared`, since a simulation must repeat whichever threads run it;
//! `counter=thread` is gilbert's "local counter", for live pools.

use std::cell::Cell;

use millpond_base::FrameId;
use millpond_base::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, Host, NoHook, OpenPolicy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::offer_drawn;

choice! {
    /// Scope of a counter.
    pub enum Counter {
        /// One counter for all threads.
        Shared = "shared",
        /// A counter for each thread.
        Thread = "thread",
    }
}

config! {
    /// Parameters of [`Loop`].
    pub struct LoopConfig {
        /// One counter for all threads, or a counter for each thread.
        counter: Counter = Counter::Shared;
    }
}

/// A counter on its own cache line, so that threads do not contend for lines.
#[repr(align(64))]
struct Line(AtomicU64);

const LINES: usize = 64;

/// Numbers threads in the order of their first call. It is not the shim's atomic, since it is no
/// protocol.
static THREADS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

thread_local! {
    static THREAD: Cell<usize> =
        Cell::new(THREADS.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
}

/// A cyclic counter over the frames.
pub struct Loop {
    counters: Box<[Line]>,
}

impl PolicySpec for Loop {
    const INFO: Info = Info {
        id: "loop",
        summary: "a cyclic counter over the frames: FIFO while nothing is refused",
        family: Family::Arrival,
        class: Class::One,
        age: Age::First,
        references: References::Ignored,
        tier: Tier::First,
        live: true,
        frame_bytes: 0.0,
        ghost_bytes: 0.0,
        source: "gilbert 1.2.2.1",
    };
    type Hook = NoHook;
    type Config = LoopConfig;

    fn new(config: &LoopConfig, _shape: &Shape) -> Loop {
        let counters = match config.counter {
            Counter::Shared => 1,
            Counter::Thread => LINES,
        };
        Loop { counters: (0..counters).map(|_| Line(AtomicU64::new(0))).collect() }
    }

    fn state_bytes(&self) -> usize {
        self.counters.len() * size_of::<Line>()
    }
}

impl OpenPolicy for Loop {
    #[inline(always)]
    fn admit(&self, _: Frames<'_, NoHook>, _: FrameId, _: &Access, _: GhostHit) {}

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &self,
        frames: Frames<'_, NoHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        let thread = if self.counters.len() == 1 { 0 } else { THREAD.get() % LINES };
        let counter = &self.counters[thread].0;
        let mut next = || {
            let at = counter.fetch_add(1, Relaxed) % u64::from(frames.len().max(1));
            FrameId(at as u32)
        };
        offer_drawn(request, host, &mut next)
    }

    fn forget(&self, _: Frames<'_, NoHook>, _: FrameId) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::RefusalReason;
    use crate::testing::TestPool;

    #[test]
    fn a_refused_frame_becomes_the_last_in_line() {
        let mut pool = TestPool::<Loop>::new(&LoopConfig::default(), 3);
        pool.run([0, 1, 2]);
        pool.refuse(0, Some(RefusalReason::Pinned));
        pool.reference(3);
        pool.refuse(0, None);
        pool.run([4, 5]);
        assert_eq!(pool.host.offered, [0, 1, 2, 0]);
        assert_eq!(pool.pages(), [3, 4, 5]);
    }

    /// gilbert 1.2.2.1: a thread whose counter lags by one evicts pages that another has just
    /// loaded.
    #[test]
    fn threads_with_counters_of_their_own_evict_each_others_new_pages() {
        let mut pool = TestPool::<Loop>::new(&LoopConfig { counter: Counter::Thread }, 4);
        pool.run(0..4);
        pool.reference(10);
        std::thread::scope(|scope| {
            scope.spawn(|| pool.reference(11));
        });
        assert_eq!(pool.pages(), [1, 2, 3, 11]);
    }

    #[test]
    fn refusals_drops_and_tiny_pools_leave_it_whole() {
        for spec in ["loop", "loop(counter=thread)"] {
            crate::testing::survives_everything::<Loop>(spec);
        }
    }
}
