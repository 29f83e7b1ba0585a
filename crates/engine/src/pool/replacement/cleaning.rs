//! Page cleaners and the free list of a live pool (li 2.1.1): the evictor threads of a pool that
//! has a rule of [cleaning](millpond_base::cleaning).
//!
//! Evictor threads keep some frames free, whatever is dirty. Page cleaners keep a list of clean
//! pages that are still in memory, and write victims long before they are to go once too much of
//! the pool is dirty: so the reasons of writes are those of the systems that li traced. A page of
//! the free list *stands by* (`translation/in_flight.rs`): a thread that needs it attaches it
//! again, a *rescue*, which reads nothing; a thread that needs a frame gets that of the page that
//! has been there longest.

use std::sync::atomic::Ordering;
use std::time::Instant;

use millpond_base::sync::Mutex;
use millpond_base::sync::atomic::AtomicU32;
use millpond_base::{FrameId, Mark, PageId, Reason};

use crate::pool::buffer_pool::Pool;
use crate::pool::frame::{FrameHeader, IS_MODEL, State};
use crate::pool::options::PoolStrategy;
use crate::pool::replacement::eviction::{LiveHost, Round};
use crate::pool::translation::in_flight::Arrived;
use crate::stats::counters::Counter;

/// Looks at all frames take at most this part of a cleaner's time.
const LOOKS_PART: u32 = 20;

/// State of the page cleaners.
#[derive(Default)]
pub(crate) struct PageCleaners {
    /// Dirty pages to be written, until the dirty share is low enough.
    excess: AtomicU32,
    /// Time at which the dirty pages are counted next; held by the thread that counts them.
    next_look: Mutex<Option<Instant>>,
}

impl<M: PoolStrategy> LiveHost<'_, M> {
    /// Removes the page in the frame of `header`, which is latched, from the page table, if there
    /// is one. If it is to stand by, threads that need it from then on wait. Returns `false` if the
    /// table is in use.
    pub(super) fn leaves(&mut self, page: PageId, header: &FrameHeader) -> bool {
        let (pool, frame) = (self.pool, header.id());
        let stands_by = self.keeps && pool.translation.in_flight().begin_standing_by(page);
        if !pool.translation.try_remove(&pool.frames, page, frame) {
            if stands_by {
                pool.translation.in_flight().end(page);
            }
            return false;
        }
        if stands_by {
            self.kept.push((page, frame));
        } else {
            self.taken.push(frame);
        }
        true
    }
}

impl<M: PoolStrategy> Pool<M> {
    /// Like [`Pool::evict_round`], but the victims stand by.
    pub(super) fn evict_to_stand_by(&self, wanted: u32) -> Round {
        let mut host = LiveHost::new(self, wanted);
        host.keeps = true;
        self.evict_as(host, wanted, None)
    }

    /// Returns whether the evictor threads are page cleaners.
    #[inline]
    pub(crate) fn cleans(&self) -> bool {
        self.options.cleaning.is_some()
    }

    /// Returns the number of frames that can be had without evicting; a moment old.
    #[inline]
    pub(crate) fn frames_ready(&self) -> u32 {
        let free = self.frames.free();
        if self.cleans() { free + self.translation.in_flight().standing_by() } else { free }
    }

    /// Returns whether page cleaners have to write because of the dirty share; counts the dirty
    /// pages, if it is time to, and no other thread does.
    pub(super) fn is_too_dirty(&self) -> bool {
        let Some(rule) = self.options.cleaning else { return false };
        if self.cleaners.excess.load(Ordering::Relaxed) > 0 {
            return true;
        }
        let Ok(mut next_look) = self.cleaners.next_look.try_lock() else { return false };
        let begun = Instant::now();
        // A model checker repeats its runs by its own choices, not by the clock's.
        if !IS_MODEL && next_look.is_some_and(|next| begun < next) {
            return false;
        }
        let excess = rule.excess(self.frames.count(), self.frames_dirty());
        *next_look = Some(Instant::now() + begun.elapsed() * LOOKS_PART);
        self.cleaners.excess.store(excess, Ordering::Relaxed);
        excess > 0
    }

    /// Lets some victims stand by, and writes those that are dirty; returns whether there was any
    /// progress.
    pub(super) fn clean_step(&self) -> bool {
        let lacking = self.free_target().saturating_sub(self.frames_ready());
        let wanted = lacking.max(self.cleaners.excess.load(Ordering::Relaxed));
        let round = self.evict_to_stand_by(wanted.clamp(1, self.options.batch));
        // An error stays with the page, which is still dirty: the thread that needs its frame gets
        // it.
        let (written, evicted) = self.write_or_pass_by(&round, Reason::Replace).unwrap_or_default();
        let less = |excess: u32| Some(excess.saturating_sub(written));
        let _ = self.cleaners.excess.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        let is_progress = round.taken + written + evicted > 0;
        if !is_progress {
            // Nothing can be written now: the next look may find otherwise.
            self.cleaners.excess.store(0, Ordering::Relaxed);
        }
        is_progress
    }

    /// Lets pages that were just evicted stand by from now on.
    pub(super) fn stand_by(&self, kept: &[(PageId, FrameId)]) {
        if kept.is_empty() {
            return;
        }
        self.count_evictions(kept.len() as u32);
        for (page, frame) in kept {
            self.translation.in_flight().stand_by(*page, *frame);
        }
        self.frames.signal_freed();
    }

    /// Makes a page that stood by in `frame` one that arrived; this thread claimed its entry.
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
        let ghost_hit = self.policy_host.miss(&self.access(page, mark, true));
        Some(Arrived { frame, ghost_hit, prefetched: false })
    }

    /// Drops the page that has been standing by for longest, so that its frame is free; returns
    /// whether there was one.
    pub(crate) fn drop_oldest(&self) -> bool {
        let Some(frame) = self.translation.in_flight().oldest_standing_by() else { return false };
        self.frames.give_back_evicted(&[frame], self.counters());
        true
    }
}
