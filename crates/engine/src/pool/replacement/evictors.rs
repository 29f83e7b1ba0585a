//! The evictor threads as the rest of the pool sees them: the number of frames that they keep free,
//! the limit on dirty pages, and the calls that wake them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use millpond_base::cleaning::Cleaning;
use millpond_base::sync::{Mutex, atomic};

use crate::pool::frame::IS_MODEL;
use crate::pool::memory::frames::Frames;
use crate::pool::options::{EvictionMode, PoolOptions};
use crate::pool::replacement::evictor_threads::EvictorThreads;
use crate::pool::sync::event::Event;

/// Longest sleep of a page cleaner before it counts the dirty pages.
const LOOK: Duration = Duration::from_millis(10);
/// Longest sleep of an evictor; only a bug would make it wait that long for its call.
const NAP: Duration = Duration::from_millis(100);
/// Counting the dirty pages takes at most one part in this many of a cleaner's time.
const LOOKS_PART: u32 = 20;

/// Calls evictor threads, and knows the amount of work for them.
///
/// # Invariant
/// A thread that waits for frames first raises the demand, and then wakes an evictor. So no evictor
/// sleeps while the demand is not met, unless it found nothing to evict.
pub(crate) struct Evictors {
    mode: EvictionMode,
    batch: u32,
    /// The rule by which the evictors are page cleaners, if they are.
    cleaning: Option<Cleaning>,
    /// Number of free frames that a worker waits for; 0 if none waits. A hint, so no model checker
    /// tries its orders.
    demand: AtomicU32,
    /// Dirty pages that cleaners have to write, until the dirty share is low enough.
    excess: atomic::AtomicU32,
    /// Time at which the dirty pages are counted next; held by the thread that counts them.
    next_look: Mutex<Option<Instant>>,
    /// Evictors that are called one by one.
    threads: EvictorThreads,
    /// Signalled when there is something to evict, for evictors that are not called one by one.
    work: Event,
}

impl Evictors {
    /// Returns the evictors that `options` ask for.
    pub(crate) fn new(options: &PoolOptions) -> Evictors {
        Evictors {
            mode: options.evictors,
            batch: options.batch,
            cleaning: options.cleaning,
            demand: AtomicU32::new(0),
            excess: atomic::AtomicU32::new(0),
            next_look: Mutex::default(),
            threads: EvictorThreads::default(),
            work: Event::default(),
        }
    }

    /// Returns the threads that evict.
    pub(crate) fn mode(&self) -> EvictionMode {
        self.mode
    }

    /// Returns the number of victims that a round looks for.
    pub(crate) fn batch(&self) -> u32 {
        self.batch
    }

    /// Returns whether the evictor threads are page cleaners.
    #[inline]
    pub(crate) fn clean(&self) -> bool {
        self.cleaning.is_some()
    }

    /// Returns whether pages are written with their neighbours.
    pub(crate) fn write_neighbours(&self) -> bool {
        self.cleaning.is_some_and(|rule| rule.neighbours)
    }

    /// Returns the number of evictor threads at work now, if their number adapts; otherwise 0.
    pub(crate) fn awake(&self) -> u32 {
        self.threads.awake()
    }

    /// Returns the number of free frames below which evictor threads work, in a pool of `frames`
    /// frames: their own target, or the demand of a waiting worker.
    pub(crate) fn target(&self, frames: u32) -> u32 {
        let ready = match self.cleaning {
            Some(rule) => rule.target(frames).max(1),
            None => self.batch.saturating_mul(2).clamp(1, (frames / 4).max(1)),
        };
        ready.max(self.demand())
    }

    /// Returns the number of free frames that a worker waits for.
    pub(crate) fn demand(&self) -> u32 {
        self.demand.load(Ordering::Relaxed)
    }

    /// Records that the demand, which was `demand`, is met, unless a worker asks for more at this
    /// moment.
    pub(crate) fn meet(&self, demand: u32) {
        let (old, new) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = self.demand.compare_exchange(demand, 0, old, new);
    }

    /// Wakes as many evictors as are needed, now that a frame was taken. `ready` returns the number
    /// of frames available without eviction.
    #[inline]
    pub(crate) fn frame_taken(&self, frames: &Frames, ready: impl Fn() -> u32) {
        match self.mode {
            EvictionMode::Worker => {}
            EvictionMode::Threads(_) => {
                if ready() < self.target(frames.count()) {
                    self.work.signal();
                }
            }
            EvictionMode::Adaptive(most) => {
                // Fewer evictors may be at work than this number of free frames requires.
                let (free, target) = (frames.free(), self.target(frames.count()));
                if free < target {
                    let halvings = (target / (free + 1)).max(1).ilog2();
                    self.threads.call(most.get().min(1 + halvings));
                }
            }
        }
    }

    /// Demands `least` free frames for a thread that waits for them; returns whether to wait: if
    /// all evictors are at work already, the thread helps.
    pub(crate) fn call(&self, least: u32) -> bool {
        self.demand.fetch_max(least, Ordering::Relaxed);
        if let EvictionMode::Adaptive(most) = self.mode {
            return self.threads.call(most.get());
        }
        self.work.signal();
        true
    }

    /// Runs an evictor thread until `is_over`. `is_short` returns whether frames are to be made
    /// free. `work_off` makes them free, and returns whether there are then enough. `took_frame` is
    /// called when a thread that did not call may have taken a frame.
    pub(crate) fn run(
        &self,
        frames: &Frames,
        is_over: impl Fn() -> bool,
        is_short: impl Fn() -> bool,
        work_off: impl Fn() -> bool,
        took_frame: impl Fn(),
    ) {
        let nap = if self.clean() { LOOK } else { NAP };
        while !is_over() {
            if let EvictionMode::Adaptive(_) = self.mode {
                if self.threads.wait(NAP, &is_over) {
                    let was_useful = work_off();
                    self.threads.rest();
                    // A thread that took a frame while this one was still on duty has not called.
                    if was_useful && is_short() {
                        took_frame();
                    }
                }
            } else if is_short() || self.is_too_dirty(frames) {
                work_off();
            } else {
                self.work.wait(nap, || is_short() || is_over());
            }
        }
    }

    /// Records that no evictor is at work. Called while none runs.
    pub(crate) fn reset(&self) {
        self.threads.reset();
    }

    /// Wakes all evictors, so that they end.
    pub(crate) fn dismiss(&self) {
        self.work.signal();
        self.threads.dismiss();
    }

    /// Returns the number of dirty pages that cleaners have to write.
    pub(crate) fn excess(&self) -> u32 {
        self.excess.load(Ordering::Relaxed)
    }

    /// Records that cleaners have `written` pages. Without progress no page can be written now: the
    /// excess is dropped until the dirty pages are counted again.
    pub(crate) fn note_cleaned(&self, written: u32, is_progress: bool) {
        let less = |excess: u32| Some(excess.saturating_sub(written));
        let _ = self.excess.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        if !is_progress {
            self.excess.store(0, Ordering::Relaxed);
        }
    }

    /// Returns whether page cleaners have to write because of the dirty share; counts the dirty
    /// pages, if that is due and no other thread does it.
    pub(crate) fn is_too_dirty(&self, frames: &Frames) -> bool {
        let Some(rule) = self.cleaning else { return false };
        if self.excess() > 0 {
            return true;
        }
        let Ok(mut next_look) = self.next_look.try_lock() else { return false };
        let begun = Instant::now();
        // A model checker repeats its runs by its own choices, not by the clock's.
        if !IS_MODEL && next_look.is_some_and(|next| begun < next) {
            return false;
        }
        let excess = rule.excess(frames.count(), frames.dirty());
        *next_look = Some(Instant::now() + begun.elapsed() * LOOKS_PART);
        self.excess.store(excess, Ordering::Relaxed);
        excess > 0
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::num::NonZeroU32;

    use millpond_policies::any_hook::AnyHook;

    use super::*;

    #[test]
    fn demand_raises_the_target_until_it_is_met_and_calls_an_evictor_more() {
        let most = NonZeroU32::new(2).unwrap();
        let evictors = EvictionMode::Adaptive(most);
        let options = PoolOptions { evictors, batch: 4, ..PoolOptions::new(64) };
        let frames = Frames::map::<AnyHook>(&options, 512, &Default::default()).unwrap();
        let evictors = Evictors::new(&options);
        evictors.frame_taken(&frames, || 64);
        assert_eq!((evictors.target(64), evictors.awake()), (8, 0));
        assert!(evictors.call(20) && evictors.call(10), "each is one evictor more");
        assert!(!evictors.call(10), "all are at work: the caller helps");
        assert_eq!((evictors.target(64), evictors.awake()), (20, 2));
        evictors.meet(19);
        assert_eq!(evictors.target(64), 20, "another demand");
        evictors.meet(20);
        assert_eq!(evictors.target(64), 8);
    }
}
