//! Sources of free frames: the free lists, and eviction when the lists are empty.

use std::ptr::NonNull;
use std::time::{Duration, Instant};

use millpond_base::PageId;
use millpond_policies::contract::GhostHit;

use crate::pool::buffer_pool::Pool;
use crate::pool::error::PoolError;
use crate::pool::frame::{FrameHeader, IS_MODEL};
use crate::pool::options::{EvictionMode, PoolStrategy};
use crate::pool::reserved::Reserved;
use crate::stats::Wait;

/// Lets other threads proceed: yields a few times, then sleeps. A thread that admits a page waits
/// for the policy host while it holds the latch of the page's parent. It would never get the host
/// if this thread entered the host over and over, only to be refused that parent. A yield gives way
/// only to threads that are awake; one that sleeps for the policy host needs time to wake up.
fn step_aside(fruitless: u32) {
    const YIELDS: u32 = 4;
    const LEAST: Duration = Duration::from_micros(20);
    if fruitless < YIELDS || IS_MODEL {
        return millpond_base::sync::thread::yield_now();
    }
    std::thread::sleep(LEAST * (1 << (fruitless - YIELDS).min(5)));
}

impl<M: PoolStrategy> Pool<M> {
    /// Takes a frame without a page, if there is one now, and latches it exclusively.
    pub(crate) fn take_free(&self) -> Option<NonNull<FrameHeader>> {
        let taken = self.frames.take();
        if taken.is_none() && self.cleans() && self.drop_oldest() {
            return self.frames.take();
        }
        taken
    }

    /// Returns a free frame, latched exclusively, for a page that missed; evicts if there is none.
    ///
    /// # Errors
    /// [`PoolError::Full`], or a victim that could not be written.
    pub(crate) fn frame_for(
        &self,
        incoming: Option<(PageId, GhostHit)>,
    ) -> Result<NonNull<FrameHeader>, PoolError> {
        if let Some(frame) = self.take_free() {
            self.wake_evictors();
            return Ok(frame);
        }
        let _waiting = self.statistics.wait(Wait::Frame);
        self.wait_for(incoming, 1, || self.take_free())
    }

    /// Makes sure that about `frames` frames and page ids are available without waiting.
    ///
    /// # Errors
    /// See [`Pool::frame_for`]; or storage could not allocate a page id.
    pub(crate) fn make_room(&self, frames: u32) -> Result<(), PoolError> {
        self.ids.refill(frames)?;
        self.make_frames(frames)
    }

    /// Makes sure that about `frames` frames are available without waiting.
    ///
    /// # Errors
    /// See [`Pool::frame_for`].
    pub(crate) fn make_frames(&self, frames: u32) -> Result<(), PoolError> {
        let least = frames.min(self.frames.count() / 2);
        if self.are_free(least) {
            // The free frames may wait for a thread to leave its epoch, and that thread needs the
            // processor.
            millpond_base::sync::thread::yield_now();
            return Ok(());
        }
        self.wait_for(None, least, || self.are_free(least).then_some(()))
    }

    /// Returns whether `least` frames hold no page. Page cleaners' pages that stand by are dropped
    /// until that many do.
    fn are_free(&self, least: u32) -> bool {
        while self.cleans() && self.frames.free() < least && self.drop_oldest() {}
        self.frames.free() >= least
    }

    /// Returns whether a checkpoint is about to make room on a full disk for pages to be written. A
    /// thread that undoes changes never waits for that, since it may be the one that takes
    /// checkpoints.
    fn is_checkpoint_due(&self) -> bool {
        let has_log = self.redo.log().is_some_and(|log| log.poisoned().is_none());
        !Reserved::is_in_use() && has_log && self.writeback.waits_for_checkpoint()
    }

    /// Evicts, or waits for the evictors, until `done` returns a value.
    ///
    /// # Errors
    /// See [`Pool::frame_for`].
    fn wait_for<T>(
        &self,
        mut incoming: Option<(PageId, GhostHit)>,
        least: u32,
        done: impl Fn() -> Option<T>,
    ) -> Result<T, PoolError> {
        /// Time without any progress after which the wait fails.
        const PATIENCE: Duration = Duration::from_secs(10);
        /// Time to wait for a checkpoint to make room on a full disk; a checkpoint takes less.
        const CHECKPOINT_PATIENCE: Duration = Duration::from_secs(2);
        let mut deadline = Instant::now() + PATIENCE;
        let (mut fruitless, mut full) = (0, None);
        let mut evict_here = |full: &mut Option<PoolError>| match self.evict_here(incoming.take()) {
            Err(error) if error.is_disk_full() && self.is_checkpoint_due() => {
                *full = Some(error);
                Ok(false)
            }
            evicted => evicted,
        };
        loop {
            let was_full = full.is_some();
            let progress = match self.evictors.mode() {
                // More frames that wait for a thread to leave its epoch would not help.
                _ if self.frames.free() >= least.max(self.evictors.batch()) => false,
                EvictionMode::Worker => evict_here(&mut full)?,
                // Evictors that made no progress, or have ended, are helped.
                EvictionMode::Threads(_) | EvictionMode::Adaptive(_) => {
                    self.wait_for_evictors(least) || evict_here(&mut full)?
                }
            };
            if let Some(wanted) = done() {
                return Ok(wanted);
            }
            if full.is_some() && !was_full {
                deadline = Instant::now() + CHECKPOINT_PATIENCE;
            }
            if progress {
                deadline = Instant::now() + PATIENCE;
                (fruitless, full) = (0, None);
            } else if Instant::now() > deadline {
                return Err(full.unwrap_or(PoolError::Full { frames: self.frames.count() }));
            } else {
                self.translation.kinds().all_registered()?;
                self.frames.step_epoch();
                if !self.drop_abandoned() {
                    step_aside(fruitless);
                }
                fruitless += 1;
            }
        }
    }
}
