//! Writing dirty pages: copies, so that no page is latched while it is written.
//!
//! # Rules
//! 1. A write takes a copy, made under a shared latch, in which every swip has its evicted form:
//!    storage never sees a pointer (leanstore IV-B).
//! 2. From the copy until the write returned the frame is *writing*: it is not evicted, and its
//!    page id is not given to another page.
//! 3. No page is written before the log is durable up to the last change of it.
//! 4. A page that changes meanwhile is dirty again; one whose write failed remains dirty.

use std::ptr::NonNull;
use std::time::Duration;

use millpond_base::sync::Mutex;
use millpond_base::sync_list::SyncList;
use millpond_base::{FrameId, Lsn, Mark, PageId, Reason};
use millpond_device::{AlignedBuffer, planted};

use crate::page::PageHeader;
use crate::pool::buffer_pool::Pool;
use crate::pool::error::PoolError;
use crate::pool::frame::{FrameHeader, State};
use crate::pool::options::{EvictionMode, PoolStrategy, SyncMode};
use crate::pool::recording::storage_recorder::StorageRequest;
use crate::pool::storage::PageOut;
use crate::pool::sync::locked::locked;
use crate::pool::writeback::buffer::{BATCH_MAX, WriteBuffer};
use crate::stats::counters::{Counter, Gauge, Timing};

/// Buffers that are kept for the next write.
const BUFFERS_KEPT: usize = 2;

/// Work that waits to be written or read in the background, and the buffers for it.
pub struct Writes {
    page_size: usize,
    /// Dirty victims.
    pub(crate) buffer: WriteBuffer,
    orders: Mutex<Orders>,
    /// Deleted pages whose write is not over: frames in state evicted that still have their page.
    deferred: Mutex<Vec<(FrameId, PageId)>>,
    /// Pages that were written and are not durable, where ranges are synced.
    pub(super) sync_list: Mutex<SyncList>,
    /// Buffers for the next writes, at most [`BUFFERS_KEPT`].
    buffers: Mutex<Vec<AlignedBuffer>>,
    /// A page that is written and not listed yet, which is a planted bug.
    #[cfg(feature = "planted")]
    late: Mutex<Option<(PageId, Lsn)>>,
}

/// Pages to be read ahead.
#[derive(Default)]
struct Orders {
    /// `true` while the background writer runs, which reads them.
    open: bool,
    /// Pages, each with a free frame that was taken for it; empty unless `open`.
    list: Vec<(PageId, FrameId)>,
}

impl Writes {
    /// Returns queues in which nothing waits.
    pub fn new(page_size: usize) -> Writes {
        Writes {
            page_size,
            buffer: WriteBuffer::default(),
            orders: Mutex::default(),
            deferred: Mutex::default(),
            sync_list: Mutex::default(),
            buffers: Mutex::default(),
            #[cfg(feature = "planted")]
            late: Mutex::default(),
        }
    }

    /// Returns the bytes of write buffers that a pool with pages of `page_size` bytes keeps.
    pub fn bytes(page_size: usize) -> u64 {
        (BUFFERS_KEPT * BATCH_MAX * page_size) as u64
    }

    fn buffer(&self) -> AlignedBuffer {
        let kept = locked(&self.buffers).pop();
        let size = BATCH_MAX * self.page_size;
        debug_assert!(kept.as_ref().is_none_or(|kept| kept.len() == size), "a buffer has a batch");
        kept.unwrap_or_else(|| AlignedBuffer::new(size))
    }

    fn keep(&self, buffer: AlignedBuffer) {
        let mut buffers = locked(&self.buffers);
        if buffers.len() < BUFFERS_KEPT {
            buffers.push(buffer);
        }
    }

    /// Lists a page when the write of another is over too, which is a planted bug: in between, a
    /// checkpoint reads the list without it.
    #[cfg(feature = "planted")]
    fn list_late(&self, page: PageId, rec_lsn: Lsn) {
        if let Some((page, rec_lsn)) = locked(&self.late).replace((page, rec_lsn)) {
            locked(&self.sync_list).add(page, rec_lsn);
        }
    }

    /// Defers a deletion until the write of its page is over.
    pub(crate) fn defer(&self, frame: FrameId, page: PageId) {
        let mut deferred = locked(&self.deferred);
        debug_assert!(deferred.iter().all(|(other, _)| *other != frame), "a page is deleted once");
        deferred.push((frame, page));
    }

    fn has_deferred(&self) -> bool {
        !locked(&self.deferred).is_empty()
    }

    pub(crate) fn take_deferred(&self) -> Vec<(FrameId, PageId)> {
        std::mem::take(&mut *locked(&self.deferred))
    }

    /// Orders the read of `page` into `frame` in the background; `false` if no thread would do it.
    pub(crate) fn order_read(&self, page: PageId, frame: FrameId) -> bool {
        let mut orders = locked(&self.orders);
        debug_assert!(
            orders.open || orders.list.is_empty(),
            "reads are ordered of a thread that runs"
        );
        if orders.open {
            orders.list.push((page, frame));
        }
        orders.open
    }

    /// Returns whether a read is ordered.
    pub(super) fn has_orders(&self) -> bool {
        !locked(&self.orders).list.is_empty()
    }

    /// Takes the orders of reads; from now on more are accepted, or not.
    pub(super) fn take_orders(&self, open: bool) -> Vec<(PageId, FrameId)> {
        let mut orders = locked(&self.orders);
        orders.open = open;
        std::mem::take(&mut orders.list)
    }
}

/// A write that has begun.
struct Begun {
    frame: FrameId,
    page: PageId,
    /// The frame's recLSN when the write began.
    rec_lsn: Lsn,
    /// The LSN of the copy that is written.
    lsn: Lsn,
}

impl<M: PoolStrategy> Pool<M> {
    /// Writes those of `frames` that are dirty and can be latched now; returns how many.
    ///
    /// # Errors
    /// The first error of the storage; pages whose write failed are dirty again.
    pub fn write_frames(&self, frames: &[FrameId], reason: Reason) -> Result<u32, PoolError> {
        self.kinds.all_registered()?;
        let all = self.with_neighbours(frames, reason);
        let (written, error) = self.write_all(&all, reason, &|_, _| true);
        self.reap();
        error.map_or(Ok(written), Err)
    }

    /// Writes those of `frames` that are dirty and due, by their recLSNs, and can be latched now,
    /// batch by batch, until nothing of one can be written. Returns how many pages were written,
    /// and the first error.
    pub(super) fn write_all(
        &self,
        frames: &[FrameId],
        reason: Reason,
        is_due: &dyn Fn(FrameId, Lsn) -> bool,
    ) -> (u32, Option<PoolError>) {
        let (mut written, mut first) = (0, None);
        for batch in frames.chunks(BATCH_MAX) {
            let (count, error) = self.write_batch(batch, reason, is_due);
            written += count;
            let is_hopeless = count == 0 && error.is_some();
            first = first.or(error);
            if is_hopeless {
                break;
            }
        }
        (written, first)
    }

    /// Writes a batch; returns how many pages were written, and the first error.
    fn write_batch(
        &self,
        frames: &[FrameId],
        reason: Reason,
        is_due: &dyn Fn(FrameId, Lsn) -> bool,
    ) -> (u32, Option<PoolError>) {
        debug_assert!(frames.len() <= BATCH_MAX, "{} frames exceed a batch", frames.len());
        let mut buffer = self.writes.buffer();
        let mut begun = Vec::with_capacity(frames.len());
        let mut out = Vec::with_capacity(frames.len());
        for (id, bytes) in frames.iter().zip(buffer.chunks_mut(self.frames.page_size())) {
            if let Some(page) = self.copy_out(*id, bytes, is_due) {
                // It does not change until the write is over, even if the page does.
                let rec_lsn = self.frames.memory().header(*id).map_or(Lsn(0), FrameHeader::rec_lsn);
                let lsn = PageHeader::read(bytes).lsn;
                begun.push(Begun { frame: *id, page, rec_lsn, lsn });
                out.push(PageOut { page, reason, bytes });
            }
        }
        let mut error = None;
        let is_written = match self.log_first(&out) {
            Ok(()) => {
                let is_written = self.write_each(&mut out, &mut error);
                self.synced_after(reason, is_written, &mut error)
            }
            Err(failed) => {
                error = Some(failed);
                vec![false; out.len()]
            }
        };
        debug_assert_eq!(is_written.len(), begun.len(), "each write that began has its outcome");
        if self.storage_recorder.is_on() {
            self.record_writes(&out, &is_written, begun.iter().map(|begun| begun.rec_lsn));
        }
        drop(out);
        self.writes.keep(buffer);
        for (begun, succeeded) in begun.iter().zip(&is_written) {
            self.end_write(begun, *succeeded);
        }
        let here = self.statistics.counters.here();
        let count = is_written.iter().filter(|w| **w).count() as u64;
        here.add(count_of(reason), count);
        here.add(Counter::BytesWritten, count * self.frames.page_size() as u64);
        if error.is_some() {
            here.count(Counter::WriteErrors);
        }
        (count as u32, error)
    }

    /// Records those that were written, before their frames can be evicted.
    fn record_writes(
        &self,
        out: &[PageOut<'_>],
        is_written: &[bool],
        rec_lsns: impl Iterator<Item = Lsn>,
    ) {
        let tail = self.redo.tail();
        let written =
            out.iter().zip(rec_lsns).zip(is_written).filter(|(_, is_written)| **is_written);
        self.storage_recorder.note(written.map(|((out, rec_lsn), _)| {
            let mark = Mark::WRITE.with_reason(out.reason);
            StorageRequest::of(&PageHeader::read(out.bytes), mark, tail, rec_lsn)
        }));
    }

    /// Makes the log durable up to the last change of each page: no page is written before.
    fn log_first(&self, out: &[PageOut<'_>]) -> Result<(), PoolError> {
        let (Some(log), Some(last)) =
            (self.redo_log().log(), out.iter().map(|page| PageHeader::read(page.bytes).lsn).max())
        else {
            return Ok(());
        };
        planted!(PageBeforeLog, return Ok(()));
        Ok(log.wait_durable(last)?)
    }

    /// Writes all of `out`, at once if that works, else page by page, so that one bad place does
    /// not keep its neighbours from storage. Returns for each whether it was written.
    fn write_each(&self, out: &mut [PageOut<'_>], error: &mut Option<PoolError>) -> Vec<bool> {
        if out.is_empty() {
            return Vec::new();
        }
        match self.write_out(out) {
            Ok(()) => vec![true; out.len()],
            Err(failed) if out.len() == 1 => {
                *error = Some(failed);
                vec![false]
            }
            Err(_) => out
                .chunks_mut(1)
                .map(|one| match self.write_out(one) {
                    Ok(()) => true,
                    Err(failed) => {
                        error.get_or_insert(failed);
                        false
                    }
                })
                .collect(),
        }
    }

    fn write_out(&self, out: &mut [PageOut<'_>]) -> Result<(), PoolError> {
        let started = self.statistics.latencies.start(Timing::WriteTime);
        self.statistics.counters.shift(Gauge::WritesInFlight, out.len() as i64);
        self.statistics.counters.count(Counter::WriteBatches);
        let result = self.storage.write(out);
        self.statistics.counters.shift(Gauge::WritesInFlight, -(out.len() as i64));
        self.statistics.latencies.stop(Timing::WriteTime, started);
        result
    }

    fn end_write(&self, begun: &Begun, succeeded: bool) {
        let Begun { frame: id, page, lsn, rec_lsn } = *begun;
        let Some(header) = self.frames.memory().header(id) else { return };
        debug_assert_eq!(
            header.page(),
            Some(page),
            "a page keeps its frame while written (rule 2)"
        );
        let defers = succeeded && self.options.sync_mode == SyncMode::Ranges;
        if defers && !planted!(ListedLate) {
            // Before the write is over, as far as a checkpoint sees.
            locked(&self.writes.sync_list).add(page, rec_lsn);
        }
        if succeeded && !self.logs_images && self.is_logged() {
            header.end_write_up_to(lsn);
        } else {
            header.end_write(succeeded);
        }
        #[cfg(feature = "planted")]
        if defers && planted!(ListedLate) {
            self.writes.list_late(page, rec_lsn);
        }
        if succeeded && !header.is_dirty() {
            let still = || {
                header.page() == Some(page) && matches!(header.state(), State::Hot | State::Cooling)
            };
            self.policy_host.cleaned(self.metas(), id, still);
        }
    }

    /// Begins the write of the page in frame `id`: copies it into `bytes`. `None` if there is
    /// nothing to write, it is not due, or the frame's latch is held.
    fn copy_out(
        &self,
        id: FrameId,
        bytes: &mut [u8],
        is_due: &dyn Fn(FrameId, Lsn) -> bool,
    ) -> Option<PageId> {
        let frame = self.frames.memory().frame(id)?;
        let header = self.frames.header(frame);
        if !header.is_dirty() || !header.latch.try_shared() {
            return None;
        }
        // The end of a write moves the recLSN, so it is read when none is under way; one that
        // begins from now on leaves nothing to write.
        let is_due = !header.is_writing() && is_due(id, header.rec_lsn());
        let page = if is_due { self.copy_held(frame, bytes) } else { None };
        header.latch.release_shared();
        page
    }

    fn copy_held(&self, frame: NonNull<FrameHeader>, bytes: &mut [u8]) -> Option<PageId> {
        let header = self.frames.header(frame);
        debug_assert!(header.latch.is_held(), "a page is copied under its latch (rule 1)");
        if !matches!(header.state(), State::Hot | State::Cooling) {
            return None;
        }
        let page = header.page()?;
        if !header.begin_write() {
            return None;
        }
        let view = self.frames.view(frame);
        view.copy_into(0, bytes);
        debug_assert_eq!(PageHeader::read(bytes).page, page, "the frame holds the page it names");
        debug_assert!(
            !self.is_logged()
                || !self.logs_images
                || header.rec_lsn() <= PageHeader::read(bytes).lsn,
            "the records about {page:?} begin after the last of them"
        );
        if M::SWIZZLES
            && let Some(kind) = self.kinds.of(view)
        {
            // The children cannot be evicted meanwhile: that would need this page's exclusive
            // latch.
            kind.swips(view, &mut |at| {
                self.frames.unswizzle_copy(view, bytes, at);
                true
            });
        }
        if self.compresses
            && let Some(gap) = self.kinds.of(view).and_then(|kind| bytes.get_mut(kind.gap(view)))
        {
            gap.fill(0);
        }
        Some(page)
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
        // Nothing that it holds will be dirty.
        self.forget_buffered();
        for attempt in 0..TRIES_MAX {
            let dirty = |id: &FrameId| {
                self.frames.memory().header(*id).is_some_and(FrameHeader::is_dirty_or_writing)
            };
            let frames: Vec<FrameId> =
                (0..self.frames.count()).map(FrameId).filter(dirty).collect();
            // Frames that others have taken from the write buffer, they evict when they are done.
            let is_settled = self.writes.buffer.pending() == 0 || attempt > TRIES_MAX / 100;
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

    /// Waits for a while for pages that were deleted while they were written: only then are they
    /// free.
    pub(crate) fn finish_frees(&self) {
        /// A device that takes longer is not waited for.
        const NAPS: u32 = 2000;
        const NAP: Duration = Duration::from_micros(500);
        for _ in 0..NAPS {
            self.reap();
            if !self.writes.has_deferred() {
                return;
            }
            std::thread::sleep(NAP);
        }
    }

    /// Returns the evictors' mode.
    pub fn evictors(&self) -> EvictionMode {
        self.options.evictors
    }
}

fn count_of(reason: Reason) -> Counter {
    match reason {
        Reason::Synch => Counter::WritesSynch,
        Reason::Recov => Counter::WritesRecov,
        Reason::None | Reason::Replace | Reason::Dsync => Counter::WritesReplace,
    }
}
