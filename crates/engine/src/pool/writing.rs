//! Writes pages back: to free frames, to shorten the log for a recovery, and to close.
//!
//! A checkpoint chooses pages with old recLSNs, so that a recovery reads only the log behind them.
//! Time passes between the choice and the write. A page that another thread wrote in between, and
//! that changed again, is young: it needs no old part of the log, and is passed by. The log is not
//! cut by that choice, but at [`Pool::redo_bound`], which looks at all frames again.

use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Duration;

use millpond_base::cleaning::each_neighbour;
use millpond_base::{FrameId, Lsn, PageId, Reason};

use crate::pool::buffer_pool::Pool;
use crate::pool::error::PoolError;
use crate::pool::frame::FrameHeader;
use crate::pool::options::PoolStrategy;
use crate::pool::writeback::buffer::BATCH_MAX;
use crate::pool::writeback::write::Writer;

impl<M: PoolStrategy> Pool<M> {
    /// Writes the pages of `frames` that are dirty and can be latched now; returns the number
    /// written.
    ///
    /// # Errors
    /// The first error of the storage; pages whose write failed are dirty again.
    pub fn write_frames(&self, frames: &[FrameId], reason: Reason) -> Result<u32, PoolError> {
        self.translation.kinds().all_registered()?;
        let all = self.with_neighbours(frames, reason);
        let (written, error) = self.write_due(&all, reason, &|_, _| true);
        self.reap();
        error.map_or(Ok(written), Err)
    }

    /// Writes the pages of `frames` that are dirty, due by their recLSNs, and can be latched now.
    /// Returns the number of pages written, and the first error.
    fn write_due(
        &self,
        frames: &[FrameId],
        reason: Reason,
        is_due: &dyn Fn(FrameId, Lsn) -> bool,
    ) -> (u32, Option<PoolError>) {
        let cleaned = |id, page| self.replacement.cleaned(&self.frames, id, page);
        let writer = Writer {
            writeback: &self.writeback,
            frames: &self.frames,
            kinds: self.translation.kinds(),
            changes: &self.redo,
            statistics: &self.statistics,
            recorder: &self.storage_recorder,
            swizzles: M::SWIZZLES,
            is_logged: self.is_logged(),
            cleaned: &cleaned,
        };
        writer.write_all(frames, reason, is_due)
    }

    /// Returns the dirty frames whose recLSN is before `bound`, each with its recLSN.
    pub fn older(&self, bound: Lsn) -> Vec<(Lsn, FrameId)> {
        let used = self.frames.used_headers();
        let dirty = used.filter_map(|(id, header)| Some((header.dirty_since()?, id)));
        dirty.filter(|(rec_lsn, _)| *rec_lsn < bound).collect()
    }

    /// Writes the pages whose recLSN is before `bound`, to bound the time of a recovery.
    ///
    /// # Errors
    /// A page that could not be written.
    pub fn write_older(&self, bound: Lsn) -> Result<u32, PoolError> {
        let mut written = 0;
        let mut frames: Vec<FrameId> = self.older(bound).into_iter().map(|(_, id)| id).collect();
        // A page whose latch is held at the moment gets a second chance, no more: the next round
        // finds it again.
        for _ in 0..2 {
            if frames.is_empty() {
                break;
            }
            written += self.write_overdue(&frames, bound)?;
            frames.retain(|id| self.is_older(*id, bound));
        }
        Ok(written)
    }

    /// Returns a bound of the log below which no page in memory needs it. The bound is the least
    /// recLSN of all pages that are dirty or being written, and at most the tail of the log as it
    /// is now.
    pub fn redo_bound(&self) -> Lsn {
        let mut bound = self.redo.tail();
        // A frame that is handed out from now on becomes dirty behind this bound.
        for (_, header) in self.frames.used_headers() {
            if header.is_dirty_or_writing() {
                bound = bound.min(header.rec_lsn());
            }
        }
        bound
    }

    /// Writes, so that the log can be cut, the pages of `frames` whose recLSN is before `bound`
    /// when it is their turn, if they can be latched. Returns the number written, neighbours
    /// included. A chosen page that another thread has written since needs no old part of the log,
    /// even if it is dirty again.
    ///
    /// # Errors
    /// See [`Pool::write_frames`].
    pub fn write_overdue(&self, frames: &[FrameId], bound: Lsn) -> Result<u32, PoolError> {
        self.translation.kinds().all_registered()?;
        let (mut written, mut first) = (0, None);
        for chosen in frames.chunks(BATCH_MAX) {
            let overdue: Vec<FrameId> =
                chosen.iter().copied().filter(|id| self.is_older(*id, bound)).collect();
            // Neighbours of a page are written with it, however young they are.
            let is_due = |id: FrameId, rec_lsn: Lsn| rec_lsn < bound || !overdue.contains(&id);
            let all = self.with_neighbours(&overdue, Reason::Recov);
            let (count, error) = self.write_due(&all, Reason::Recov, &is_due);
            written += count;
            let is_hopeless = count == 0 && error.is_some();
            first = first.or(error);
            if is_hopeless {
                break;
            }
        }
        self.reap();
        first.map_or(Ok(written), Err)
    }

    /// Returns whether the page in frame `id` is dirty, and has a recLSN before `bound`.
    fn is_older(&self, id: FrameId, bound: Lsn) -> bool {
        let since = self.frame(id).and_then(FrameHeader::dirty_since);
        since.is_some_and(|rec_lsn| rec_lsn < bound)
    }

    /// Returns `frames` and, if the cleaning rule asks for it, the frames of dirty pages next to
    /// theirs, to be written together. Only pools without swizzling do this, as they find
    /// neighbours in the page table. A worker that waits for a frame writes no neighbours.
    pub(crate) fn with_neighbours<'f>(
        &self,
        frames: &'f [FrameId],
        reason: Reason,
    ) -> Cow<'f, [FrameId]> {
        let flushes = self.evictors.write_neighbours();
        if M::SWIZZLES || !flushes || reason == Reason::Synch {
            return Cow::Borrowed(frames);
        }
        let mut all = frames.to_vec();
        let mut seen: HashSet<FrameId> = frames.iter().copied().collect();
        for page in frames.iter().filter_map(|id| self.frames.memory().header(*id)?.page()) {
            each_neighbour(page.0, |neighbour| {
                let Ok(Some(frame)) = self.translation.find(&self.frames, PageId(neighbour)) else {
                    return false;
                };
                let is_dirty =
                    self.frames.memory().header(frame).is_some_and(FrameHeader::is_dirty);
                if is_dirty && seen.insert(frame) {
                    all.push(frame);
                }
                is_dirty
            });
        }
        Cow::Owned(all)
    }

    /// Leaves dirty frames to the write buffer, if there is a background writer and there are no
    /// page cleaners. Returns the number of frames that the buffer did not have before.
    pub(crate) fn hand_over(&self, dirty: &[FrameId]) -> u32 {
        match self.options.background_writer && !self.cleans() {
            true => self.writeback.hand_over(&self.frames, dirty),
            false => 0,
        }
    }

    /// Writes a batch of the buffer, and then evicts it if the policy would not soon offer it
    /// again. Returns the number of pages written, and of pages evicted.
    ///
    /// # Errors
    /// See [`Pool::write_frames`].
    pub(crate) fn write_buffered(&self, reason: Reason) -> Result<(u32, u32), PoolError> {
        let batch = self.writeback.buffer().take(&self.frames);
        if batch.is_empty() {
            return Ok((0, 0));
        }
        let done = self.write_victims(&batch, reason);
        self.writeback.buffer().settle(batch.len());
        done
    }

    /// Runs the background writer until the pool closes (leanstore IV-I): it writes dirty victims,
    /// cleans the cooling stage ahead of the victims to come, and reads ahead.
    pub(crate) fn background_writer(&self) {
        const NAP: Duration = Duration::from_millis(100);
        while !self.is_over() {
            let orders = self.translation.orders().take(true);
            if !orders.is_empty() {
                self.read_ahead(&orders);
                continue;
            }
            if !self.writeback.buffer().is_empty() {
                // On an error the page stays dirty, and the thread that needs its frame, or closes
                // the store, gets the error.
                let done = self.write_buffered(Reason::Replace).and_then(|_| self.sweep_cooling());
                if let Err(error) = done {
                    tracing::warn!(%error, "a page could not be written in the background");
                }
                continue;
            }
            let has_work =
                || !self.writeback.buffer().is_empty() || !self.translation.orders().is_empty();
            self.writeback.wait(NAP, || has_work() || self.is_over());
        }
        // Frames that were taken for reads must not be lost.
        self.read_ahead(&self.translation.orders().take(false));
    }

    /// Writes dirty pages of the cooling stage, if there is one.
    fn sweep_cooling(&self) -> Result<u32, PoolError> {
        if !self.replacement.cools() {
            return Ok(0);
        }
        self.write_frames(&self.writeback.buffer().sweep(&self.frames), Reason::Replace)
    }

    /// Returns whether a thread reads ahead in the background.
    pub(crate) fn reads_ahead(&self) -> bool {
        self.options.background_writer
    }

    /// Writes every dirty page, when no operation runs; for closing, and for checkpoints without
    /// a log.
    ///
    /// # Errors
    /// A page that could not be written.
    pub fn flush(&self, reason: Reason) -> Result<u32, PoolError> {
        const TRIES_MAX: u32 = 10_000;
        let mut written = 0;
        // No page in the buffer will be dirty afterwards.
        self.writeback.buffer().forget(&self.frames);
        for attempt in 0..TRIES_MAX {
            let dirty = |id: &FrameId| {
                self.frames.memory().header(*id).is_some_and(FrameHeader::is_dirty_or_writing)
            };
            let frames: Vec<FrameId> =
                (0..self.frames.count()).map(FrameId).filter(dirty).collect();
            // Other threads evict the frames that they took from the write buffer when they are
            // done.
            let is_settled = self.writeback.buffer().pending() == 0 || attempt > TRIES_MAX / 100;
            if frames.is_empty() && is_settled {
                return Ok(written);
            }
            let now = self.write_frames(&frames, reason)?;
            if now == 0 {
                // Another thread writes them, or holds a latch.
                self.frames.nap(Duration::from_millis(1), || false);
            }
            written += now;
        }
        Err(PoolError::Busy { dirty: self.frames_dirty() })
    }

    /// Waits a while until pages that were deleted during their write are free, as they are only
    /// after it.
    pub(crate) fn finish_frees(&self) {
        /// Limit of the wait, if a device takes longer.
        const NAPS: u32 = 2000;
        const NAP: Duration = Duration::from_micros(500);
        for _ in 0..NAPS {
            self.reap();
            if !self.writeback.has_deferred() {
                return;
            }
            std::thread::sleep(NAP);
        }
    }
}
