//! Eviction: asks the policy for victims in rounds, frees or writes them, and runs the threads that
//! evict ahead of need.
//!
//! Evictor threads sleep while the number of free frames is at its target. Adaptive threads are
//! called one by one. If one cannot keep up and the number falls further, more are called: the
//! second below half of the target, the third below a quarter, and so on. With a background writer,
//! each puts its dirty victims into the write buffer and goes on (watt 5.2). Once the free frames
//! and the pages in the buffer reach the target, it helps to write, so the number of concurrent
//! writes grows with the number of evictors. An evictor without work sleeps, and one without
//! progress does not spin: it naps after each fruitless round, and after a few an adaptive one
//! sleeps until it is called again.
//!
//! A worker that finds no free frame calls one adaptive evictor more. If all are at work already it
//! does not wait for them but evicts, too: so a worker never waits while it could help.
//!
//! # Page cleaners
//! The evictor threads of a pool with a rule of [cleaning](millpond_base::cleaning) are page
//! cleaners (li 2.1.1). Other evictor threads keep some frames free, however many pages are dirty.
//! Page cleaners keep a free list of clean pages that are still in memory. Once too much of the
//! pool is dirty, they write victims long before eviction, so writes have the same reasons as in
//! the systems that li traced. A page of the free list *stands by* (`translation/in_flight.rs`). A
//! thread that needs the page attaches it again without a read, a *rescue*. A thread that needs a
//! frame gets the frame of the page that has stood by longest.

use std::time::Duration;

use millpond_base::{FrameId, Lsn, Mark, PageId, Reason};
use millpond_policies::contract::GhostHit;

use crate::pool::buffer_pool::Pool;
use crate::pool::error::PoolError;
use crate::pool::frame::State;
use crate::pool::options::PoolStrategy;
use crate::pool::replacement::eviction::{Reach, Victims};
use crate::pool::translation::in_flight::Arrived;
use crate::stats::counters::Counter;

/// Number of rounds without any progress after which an evictor gives up.
const FRUITLESS_MAX: u32 = 8;

/// Result of evicting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Evicted {
    /// Pages that were evicted.
    pub pages: u64,
    /// Pages that were written.
    pub written: u64,
    /// Frames that the policy examined, if it reports them; otherwise the frames it offered or
    /// cooled.
    pub looked: u64,
    /// Number of times that the policy was asked for victims.
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

/// Result of one round of eviction.
#[derive(Clone, Debug, Default)]
struct Round {
    /// Pages that were evicted.
    taken: u32,
    /// Victims that were refused because they are dirty, each once.
    dirty: Vec<FrameId>,
    /// Frames that the policy examined.
    looked: u32,
}

impl<M: PoolStrategy> Pool<M> {
    fn reach(&self) -> Reach<'_, M> {
        Reach {
            frames: &self.frames,
            translation: &self.translation,
            counters: &self.statistics.counters,
        }
    }

    /// Asks the policy for up to `wanted` victims and frees them. The result lists the dirty
    /// victims, which were refused.
    fn evict_round(&self, wanted: u32, incoming: Option<(PageId, GhostHit)>) -> Round {
        self.let_go(self.replacement.evict(self.reach(), wanted, incoming, false, false))
    }

    /// Makes the frames of evicted pages free, or lets the pages stand by.
    fn let_go(&self, victims: Victims) -> Round {
        let (taken, looked) = (victims.taken(), victims.looked);
        let Victims { scanned, chosen, kept, dirty, .. } = victims;
        let counters = &self.statistics.counters;
        counters.add(Counter::Evictions, scanned.len() as u64);
        counters.add(Counter::EvictionsScanned, scanned.len() as u64);
        self.frames.give_back_evicted(&scanned, counters);
        self.replacement.count_evictions(chosen.len(), counters);
        self.frames.give_back_evicted(&chosen, counters);
        if !kept.is_empty() {
            self.replacement.count_evictions(kept.len(), counters);
            for (page, frame) in kept {
                self.translation.in_flight().stand_by(page, frame);
            }
            self.frames.signal_freed();
        }
        Round { taken, dirty, looked }
    }

    /// Evicts clean pages, however many dirty ones are refused; returns the number evicted.
    fn evict_clean(&self) -> u32 {
        let batch = self.evictors.batch();
        self.let_go(self.replacement.evict(self.reach(), batch, None, true, false)).taken
    }

    /// Evicts in the thread of a worker; returns whether there was any progress.
    pub(crate) fn evict_here(
        &self,
        incoming: Option<(PageId, GhostHit)>,
    ) -> Result<bool, PoolError> {
        let round = self.evict_round(self.evictors.batch(), incoming);
        let count = |evicted: u32| {
            self.statistics.counters.add(Counter::EvictionsWorker, u64::from(evicted));
        };
        count(round.taken);
        if round.taken > 0 && self.options.background_writer && !self.cleans() {
            // Dirty pages are written in the background.
            self.hand_over(&round.dirty);
            return Ok(true);
        }
        if round.taken > 0 {
            // Otherwise no thread would ever write the pages that the policy wants evicted, and the
            // policy would have to take the few clean pages again and again. An error does not
            // concern this operation, which has its frame: the page stays dirty, and the thread
            // that needs its frame gets the error.
            match self.write_victims(&round.dirty, Reason::Synch) {
                Ok((_, evicted)) => count(evicted),
                Err(error) => tracing::warn!(%error, "a page could not be written"),
            }
            return Ok(true);
        }
        let (written, evicted) = self.write_or_pass_by(&round, Reason::Synch)?;
        count(evicted);
        Ok(written + evicted > 0)
    }

    /// Writes the dirty victims of a round; returns the number of pages written, and of further
    /// pages evicted. If the write fails and the round evicted nothing, evicts clean pages instead.
    ///
    /// # Errors
    /// Pages could not be written, and no other can be evicted.
    fn write_or_pass_by(&self, round: &Round, reason: Reason) -> Result<(u32, u32), PoolError> {
        let mut done = self.write_victims(&round.dirty, reason);
        if round.taken == 0 && matches!(done, Ok((0, 0))) {
            // The remaining victims may all be in the write buffer.
            done = self.write_buffered(reason);
        }
        let error = match done {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let others = if round.taken > 0 { 0 } else { self.evict_clean() };
        if round.taken + others == 0 {
            return Err(error);
        }
        tracing::warn!(%error, "a page could not be written");
        Ok((0, others))
    }

    /// Wakes as many evictors as are needed, now that a frame was taken.
    #[inline]
    pub(crate) fn wake_evictors(&self) {
        self.evictors.frame_taken(&self.frames, || self.frames_ready());
    }

    /// Waits a moment for `least` free frames, if evictor threads provide them; returns whether
    /// there are that many.
    pub(crate) fn wait_for_evictors(&self, least: u32) -> bool {
        const A_MOMENT: Duration = Duration::from_millis(1);
        let enough = || self.frames_ready() >= least;
        if self.evictors.call(least) {
            self.frames.nap(A_MOMENT, || enough() || self.is_over());
        }
        enough()
    }

    /// Runs an evictor thread until the pool closes.
    pub(crate) fn run_evictor(&self) {
        self.evictors.run(
            &self.frames,
            || self.is_over(),
            || self.frames_ready() < self.free_target(),
            || self.work_off(),
            || self.wake_evictors(),
        );
    }

    fn free_target(&self) -> u32 {
        self.evictors.target(self.frames.count())
    }

    /// Evicts until the number of free frames reaches the target; returns `false` if it gave up.
    fn work_off(&self) -> bool {
        let mut fruitless = 0;
        while !self.is_over() {
            let demand = self.evictors.demand();
            if self.frames_ready() >= self.free_target()
                && !self.evictors.is_too_dirty(&self.frames)
            {
                self.evictors.meet(demand);
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

    /// Evicts a batch if too few frames are free or on their way, and otherwise helps to write;
    /// returns whether there was any progress.
    fn evict_ahead(&self) -> bool {
        if self.cleans() {
            return self.clean_step();
        }
        if !self.options.background_writer {
            return !self.evict_step(self.evictors.batch()).unwrap_or_default().is_nothing();
        }
        if self.frames.free() + self.writeback.buffer().pending() < self.free_target() {
            let round = self.evict_round(self.evictors.batch(), None);
            if round.taken + self.hand_over(&round.dirty) > 0 {
                return true;
            }
        }
        // On an error the page stays dirty, and the thread that needs its frame gets the error.
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
            let step = self.evict_step(short.min(self.evictors.batch()).max(1))?;
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

    /// Writes dirty victims, and then evicts them if the policy would not soon offer them again by
    /// itself (watt 5.2). Returns the number of pages written, and of pages evicted.
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
        let out = match self.replacement.evicts_after_writing() {
            true => self.let_go(self.replacement.evict_written(self.reach(), dirty, keeps)).taken,
            false => 0,
        };
        Ok((written?, out))
    }

    /// Returns whether the evictor threads are page cleaners.
    #[inline]
    pub(crate) fn cleans(&self) -> bool {
        self.evictors.clean()
    }

    /// Returns the number of frames available without eviction, a moment ago.
    #[inline]
    pub(crate) fn frames_ready(&self) -> u32 {
        let free = self.frames.free();
        if self.cleans() { free + self.translation.in_flight().standing_by() } else { free }
    }

    /// Lets some victims stand by, and writes those that are dirty; returns whether there was any
    /// progress.
    fn clean_step(&self) -> bool {
        let lacking = self.free_target().saturating_sub(self.frames_ready());
        let wanted = lacking.max(self.evictors.excess()).clamp(1, self.evictors.batch());
        let round = self.let_go(self.replacement.evict(self.reach(), wanted, None, false, true));
        // On an error the page stays dirty, and the thread that needs its frame gets the error.
        let (written, evicted) = self.write_or_pass_by(&round, Reason::Replace).unwrap_or_default();
        let is_progress = round.taken + written + evicted > 0;
        self.evictors.note_cleaned(written, is_progress);
        is_progress
    }

    /// Returns the page that stood by in `frame` as one that arrived, latched exclusively. This
    /// thread has claimed its in-flight entry.
    pub(crate) fn rescue(&self, frame: FrameId, page: PageId, mark: Mark) -> Option<Arrived> {
        let frame = self.frames.memory().frame(frame)?;
        let header = self.frames.header(frame);
        // A sampling evictor, or a reader that is late, may hold it for a moment.
        while !header.latch.exclusive() {
            millpond_base::sync::thread::yield_now();
        }
        debug_assert!(!header.is_dirty_or_writing(), "a page that stands by owes storage nothing");
        header.become_state(State::Free);
        header.become_state(State::Loading);
        header.set_page(Some(page));
        self.statistics.counters.count(Counter::Rescues);
        let ghost_hit = self.replacement.miss(&self.replacement.access(page, mark, true));
        Some(Arrived { frame, ghost_hit, prefetched: false })
    }

    /// Drops the page that has stood by longest and frees its frame; returns whether there was one.
    pub(crate) fn drop_oldest(&self) -> bool {
        let oldest = self.translation.in_flight().oldest_standing_by();
        if let Some(frame) = oldest {
            self.frames.give_back_evicted(&[frame], self.counters());
        }
        oldest.is_some()
    }

    /// Makes every page in memory dirty, as if each had been changed, to measure the cost of
    /// evicting dirty pages. Pages whose latch is held stay as they are. Returns the number of
    /// pages that became dirty. With a log no page does: the log would have no image of a page that
    /// is torn by a write.
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
