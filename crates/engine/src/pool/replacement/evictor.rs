//! Evictor threads of the pool, which keep frames free ahead of need, and how workers use them.
//!
//! They sleep while there are as many free frames as the target. Where one of them cannot keep up,
//! so that the number of free frames falls further, more are called, up to as many as there are:
//! the second below half of the target, the third below a quarter. Each puts the dirty victims that
//! it meets into the write buffer and goes on (watt 5.2); once what is free and what is on its way
//! out are enough, it helps to write, so the pages being written at once grow with their number.
//! None works when there is nothing to do, and none spins where nothing can be done: after a few
//! fruitless rounds an evictor sleeps until it is called again.
//!
//! A worker that finds no free frame calls one evictor more. If all are at work already it does not
//! wait for them but evicts, too: so a worker never waits while it could help.

use std::sync::atomic::Ordering;
use std::time::Duration;

use millpond_base::{FrameId, Lsn, Reason};
use millpond_policies::contract::{Host, OfferOutcome};

use crate::pool::buffer_pool::Pool;
use crate::pool::error::PoolError;
use crate::pool::frame::State;
use crate::pool::options::{EvictionMode, PoolStrategy};
use crate::pool::replacement::eviction::LiveHost;
use crate::pool::replacement::policy_host::PolicyHost;

/// Longest sleep of a page cleaner before it looks how dirty the pool is.
const LOOK: Duration = Duration::from_millis(10);
/// Longest sleep of an evictor; only a bug would make it wait that long for its call.
const NAP: Duration = Duration::from_millis(100);
/// Rounds without any progress after which an evictor sleeps.
const FRUITLESS_MAX: u32 = 8;

/// Result of evicting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Evicted {
    /// Pages that were evicted.
    pub pages: u64,
    /// Pages that were written.
    pub written: u64,
    /// Frames that the policy examined, as far as it reports them; else those it offered or cooled.
    pub looked: u64,
    /// Times that the policy was asked for victims.
    pub rounds: u64,
}

impl std::ops::Add for Evicted {
    type Output = Evicted;

    fn add(self, other: Evicted) -> Evicted {
        Evicted {
            pages: self.pages + other.pages,
            written: self.written + other.written,
            looked: self.looked + other.looked,
            rounds: self.rounds + other.rounds,
        }
    }
}

impl Evicted {
    fn is_nothing(&self) -> bool {
        self.pages == 0 && self.written == 0
    }
}

impl<M: PoolStrategy> Pool<M> {
    /// Returns the number of free frames below which evictor threads work: their own target, or the
    /// demand of a waiting worker.
    pub(crate) fn free_target(&self) -> u32 {
        let ready = match self.options.cleaning {
            Some(rule) => rule.target(self.frames.count()).max(1),
            None => {
                (self.options.batch.saturating_mul(2)).clamp(1, (self.frames.count() / 4).max(1))
            }
        };
        ready.max(self.sleep.demand.load(Ordering::Relaxed))
    }

    /// Wakes as many evictors as are needed, now that a frame was taken.
    #[inline]
    pub(crate) fn wake_evictors(&self) {
        match self.options.evictors {
            EvictionMode::Worker => {}
            EvictionMode::Threads(_) => {
                if self.frames_ready() < self.free_target() {
                    self.sleep.work.signal();
                }
            }
            EvictionMode::Adaptive(most) => self.call_evictors(most.get()),
        }
    }

    /// Calls an evictor if fewer are at work than the number of free frames requires.
    #[inline]
    fn call_evictors(&self, most: u32) {
        let (free, target) = (self.frames.free(), self.free_target());
        if free < target {
            let halvings = (target / (free + 1)).max(1).ilog2();
            self.sleep.evictor_threads.call(most.min(1 + halvings));
        }
    }

    /// Returns the number of evictor threads at work now, where that adapts.
    pub fn evictors_awake(&self) -> u32 {
        self.sleep.evictor_threads.awake()
    }

    /// Waits a moment for `least` free frames, if evictor threads provide them; returns whether
    /// there are that many.
    pub(crate) fn wait_for_evictors(&self, least: u32) -> bool {
        const A_MOMENT: Duration = Duration::from_millis(1);
        self.sleep.demand.fetch_max(least, Ordering::Relaxed);
        let enough = || self.frames_ready() >= least;
        if let EvictionMode::Adaptive(most) = self.options.evictors {
            if !self.sleep.evictor_threads.call(most.get()) {
                return enough();
            }
        } else {
            self.sleep.work.signal();
        }
        self.frames.nap(A_MOMENT, || enough() || self.is_over());
        enough()
    }

    /// Runs an evictor thread until the pool closes.
    pub(crate) fn evictor(&self) {
        let is_over = || self.is_over();
        let is_short = || self.frames_ready() < self.free_target();
        let nap = if self.cleans() { LOOK } else { NAP };
        while !is_over() {
            if let EvictionMode::Adaptive(most) = self.options.evictors {
                if self.sleep.evictor_threads.wait(NAP, is_over) {
                    let was_useful = self.work_off();
                    self.sleep.evictor_threads.rest();
                    // A thread that took a frame while this one was still on duty has not called.
                    if was_useful && is_short() {
                        self.call_evictors(most.get());
                    }
                }
            } else if is_short() || self.is_too_dirty() {
                self.work_off();
            } else {
                self.sleep.work.wait(nap, || is_short() || is_over());
            }
        }
    }

    /// Evicts until there are as many free frames as the target; `false` if it gave up.
    fn work_off(&self) -> bool {
        let mut fruitless = 0;
        while !self.is_over() {
            let demand = self.sleep.demand.load(Ordering::Relaxed);
            if self.frames_ready() >= self.free_target() && !self.is_too_dirty() {
                // Unless a worker asks for more at this moment.
                let (old, new) = (Ordering::Relaxed, Ordering::Relaxed);
                let _ = self.sleep.demand.compare_exchange(demand, 0, old, new);
                if self.frames_ready() >= self.free_target() {
                    return true;
                }
            }
            if self.evict_ahead() {
                fruitless = 0;
                continue;
            }
            fruitless += 1;
            if fruitless >= FRUITLESS_MAX {
                return false;
            }
            self.drop_abandoned();
            self.frames.nap(Duration::from_micros(200), || false);
        }
        true
    }

    /// Looks for victims, if too few are on their way out, else helps to write those; returns
    /// whether there was any progress.
    fn evict_ahead(&self) -> bool {
        if self.cleans() {
            return self.clean_step();
        }
        if !self.options.background_writer {
            return !self.evict_step(self.options.batch).unwrap_or_default().is_nothing();
        }
        if self.frames.free() + self.writeback.buffer().pending() < self.free_target() {
            let round = self.evict_round(self.options.batch, None);
            if round.taken + self.hand_over(&round.dirty) > 0 {
                return true;
            }
        }
        // An error stays with the page, which is still dirty: the thread that needs its frame gets
        // it.
        let (written, evicted) = self.write_buffered(Reason::Replace).unwrap_or_default();
        written + evicted > 0
    }

    /// Evicts up to `wanted` pages, and writes the victims that are dirty.
    fn evict_step(&self, wanted: u32) -> Result<Evicted, PoolError> {
        let round = self.evict_round(wanted, None);
        let (written, more) = self.write_or_pass_by(&round, Reason::Replace)?;
        let pages = u64::from(round.taken + more);
        let (written, looked) = (u64::from(written), u64::from(round.looked));
        Ok(Evicted { pages, written, looked, rounds: 1 })
    }

    /// Does an evictor's work in the calling thread until `free` frames are free, or nothing more
    /// can be done at the moment. Any number of threads may do so at once.
    ///
    /// # Errors
    /// A page that could not be written.
    pub fn evict_until(&self, free: u32) -> Result<Evicted, PoolError> {
        let (mut all, mut fruitless) = (Evicted::default(), 0);
        while fruitless < FRUITLESS_MAX {
            let short = free.saturating_sub(self.frames.free());
            if short == 0 {
                break;
            }
            let step = self.evict_step(short.min(self.options.batch).max(1))?;
            fruitless = if step.is_nothing() { fruitless + 1 } else { 0 };
            all = all + step;
        }
        Ok(all)
    }

    /// Evicts all pages that can be evicted, writing dirty ones; for tests and for closing. Returns
    /// the number of pages that remain.
    ///
    /// # Errors
    /// A page that could not be written.
    pub fn evict_all(&self) -> Result<u32, PoolError> {
        let mut fruitless = 0;
        self.writeback.buffer().forget(&self.frames);
        while fruitless < 8 {
            let round = self.evict_round(self.frames.count(), None);
            let written = self.write_frames(&round.dirty, Reason::Replace)?;
            let dropped = self.drop_abandoned() || self.drop_oldest();
            fruitless =
                if round.taken == 0 && written == 0 && !dropped { fruitless + 1 } else { 0 };
        }
        Ok(self.resident().len() as u32)
    }

    /// Writes victims that are dirty and, where the policy will not offer them again soon by
    /// itself, evicts them then (watt 5.2). Returns how many were written, and how many evicted.
    ///
    /// # Errors
    /// See [`Pool::write_frames`].
    pub(crate) fn write_victims(
        &self,
        dirty: &[FrameId],
        reason: Reason,
    ) -> Result<(u32, u32), PoolError> {
        let written = self.write_frames(dirty, reason);
        // Pages whose write failed are still dirty, and stay.
        let keeps = self.cleans() && reason == Reason::Replace;
        let out = if self.evicts_after_writing() { self.evict_these(dirty, keeps) } else { 0 };
        Ok((written?, out))
    }

    /// Returns whether victims are evicted when they are written, without being offered again. Open
    /// policies keep no order, so that another round would find other victims, and write those,
    /// too. Where pages are evicted one by one, it is as in a simulator.
    pub(crate) fn evicts_after_writing(&self) -> bool {
        let is_open = matches!(self.policy_host, PolicyHost::Open(_));
        self.cleans() || (self.options.batch > 1 && is_open)
    }

    /// Evicts those of `frames` that can be evicted.
    fn evict_these(&self, frames: &[FrameId], keeps: bool) -> u32 {
        let mut host = LiveHost::new(self, 0);
        host.keeps = keeps;
        let mut count = 0;
        for frame in frames {
            if let OfferOutcome::Taken(_) = host.offer(*frame) {
                // The policy did not offer it, so it must be notified.
                self.policy_host.forget(self.metas(), *frame, || ());
                count += 1;
            }
        }
        let LiveHost { taken, kept, .. } = host;
        self.free_taken(&taken);
        self.stand_by(&kept);
        count
    }

    /// Makes every page in memory dirty, as if each had been changed, to measure the cost of
    /// evicting dirty pages. Pages whose latch is held stay as they are; returns the number of
    /// pages that became dirty. With a log none does: it would have no image of a page that is torn
    /// while it is written.
    pub fn make_dirty(&self) -> u32 {
        if self.redo_log().log().is_some() {
            return 0;
        }
        let mut count = 0;
        for header in
            (0..self.frames.count()).filter_map(|id| self.frames.memory().header(FrameId(id)))
        {
            if !header.latch.try_exclusive() {
                continue;
            }
            if matches!(header.state(), State::Hot | State::Cooling) && !header.is_dirty() {
                header.begin_logged_change(|| Lsn(0));
                count += 1;
            }
            header.latch.release_unchanged();
        }
        count
    }
}
