//! Writes dirty pages from copies, so that no page is latched while it is written.
//!
//! # Rules
//! 1. A write takes a copy, made under a shared latch, in which every swip has its evicted form:
//!    storage never sees a pointer (leanstore IV-B).
//! 2. From the copy until the write has returned, the frame is *writing*: it is not evicted, and
//!    its page id is not given to another page.
//! 3. No page is written before the log is durable up to the last change of it.
//! 4. A page that changes during its write is dirty again, and so is a page whose write failed.

use std::ptr::NonNull;

use millpond_base::{FrameId, Lsn, Mark, PageId, Reason};

use crate::page::PageHeader;
use crate::pool::error::PoolError;
use crate::pool::frame::{FrameHeader, State};
use crate::pool::kind::Kinds;
use crate::pool::memory::frames::Frames;
use crate::pool::mini_transaction::RedoLog;
use crate::pool::recording::storage_recorder::{StorageRecorder, StorageRequest};
use crate::pool::storage::PageOut;
use crate::pool::writeback::buffer::BATCH_MAX;
use crate::pool::writeback::writeback::Writeback;
use crate::stats::Statistics;
use crate::stats::counters::{Counter, Gauge, Timing};

/// A write that has begun.
struct Begun {
    frame: FrameId,
    page: PageId,
    /// The frame's recLSN when the write began.
    rec_lsn: Lsn,
    /// The LSN of the copy that is written.
    lsn: Lsn,
}

/// One thread's access to the parts of the pool that a write needs.
pub(crate) struct Writer<'p> {
    pub(crate) writeback: &'p Writeback,
    pub(crate) frames: &'p Frames,
    pub(crate) kinds: &'p Kinds,
    pub(crate) changes: &'p RedoLog,
    pub(crate) statistics: &'p Statistics,
    pub(crate) recorder: &'p StorageRecorder,
    /// `true` if pages in memory hold pointers.
    pub(crate) swizzles: bool,
    /// `true` if changes are logged, and pages therefore have LSNs.
    pub(crate) is_logged: bool,
    /// Notifies the policy that the page of a frame was written, and is clean.
    pub(crate) cleaned: &'p dyn Fn(FrameId, PageId),
}

impl Writer<'_> {
    /// Writes the pages of `frames` that are dirty, due by their recLSNs, and can be latched now.
    /// Writes batch by batch, and stops after a batch that failed completely. Returns the number of
    /// pages written, and the first error.
    pub(crate) fn write_all(
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

    /// Writes a batch; returns the number of pages written, and the first error.
    fn write_batch(
        &self,
        frames: &[FrameId],
        reason: Reason,
        is_due: &dyn Fn(FrameId, Lsn) -> bool,
    ) -> (u32, Option<PoolError>) {
        debug_assert!(frames.len() <= BATCH_MAX, "{} frames exceed a batch", frames.len());
        let mut buffer = self.writeback.take_bytes();
        let mut begun = Vec::with_capacity(frames.len());
        let mut out = Vec::with_capacity(frames.len());
        for (id, bytes) in frames.iter().zip(buffer.chunks_mut(self.frames.page_size())) {
            if let Some(page) = self.copy_out(*id, bytes, is_due) {
                // The recLSN does not change until the write is over, even if the page does.
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
                self.writeback.synced_after(reason, is_written, &mut error)
            }
            Err(failed) => {
                error = Some(failed);
                vec![false; out.len()]
            }
        };
        debug_assert_eq!(is_written.len(), begun.len(), "each write that began has its outcome");
        if self.recorder.is_on() {
            self.record_writes(&out, &is_written, begun.iter().map(|begun| begun.rec_lsn));
        }
        drop(out);
        self.writeback.keep_bytes(buffer);
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

    /// Records the pages that were written, before their frames can be evicted.
    fn record_writes(
        &self,
        out: &[PageOut<'_>],
        is_written: &[bool],
        rec_lsns: impl Iterator<Item = Lsn>,
    ) {
        let tail = self.changes.tail();
        let written =
            out.iter().zip(rec_lsns).zip(is_written).filter(|(_, is_written)| **is_written);
        self.recorder.note(written.map(|((out, rec_lsn), _)| {
            let mark = Mark::WRITE.with_reason(out.reason);
            StorageRequest::of(&PageHeader::read(out.bytes), mark, tail, rec_lsn)
        }));
    }

    /// Makes the log durable up to the last change of each page: no page is written before.
    fn log_first(&self, out: &[PageOut<'_>]) -> Result<(), PoolError> {
        let (Some(log), Some(last)) =
            (self.changes.log(), out.iter().map(|page| PageHeader::read(page.bytes).lsn).max())
        else {
            return Ok(());
        };
        Ok(log.wait_durable(last)?)
    }

    /// Writes all of `out`: at once if that works, otherwise page by page, so that one bad place
    /// does not keep its neighbours from storage. Returns `true` for each page that was written.
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
        let result = self.writeback.store(out);
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
        if succeeded {
            // The page is listed before a checkpoint can see that its write is over.
            self.writeback.list(page, rec_lsn);
        }
        if succeeded && !self.writeback.is_in_place() && self.is_logged {
            header.end_write_up_to(lsn);
        } else {
            header.end_write(succeeded);
        }
        if succeeded && !header.is_dirty() {
            (self.cleaned)(id, page);
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
        // The end of a write moves the recLSN, so it is read while no write is under way. A write
        // that begins from now on leaves nothing to write here.
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
            !self.is_logged
                || !self.writeback.is_in_place()
                || header.rec_lsn() <= PageHeader::read(bytes).lsn,
            "the records about {page:?} begin after the last of them"
        );
        if self.swizzles
            && let Some(kind) = self.kinds.of(view)
        {
            // The children cannot be evicted now: that would need this page's exclusive latch.
            kind.swips(view, &mut |at| {
                self.frames.unswizzle_copy(view, bytes, at);
                true
            });
        }
        if self.writeback.compresses()
            && let Some(gap) = self.kinds.of(view).and_then(|kind| bytes.get_mut(kind.gap(view)))
        {
            gap.fill(0);
        }
        Some(page)
    }
}

fn count_of(reason: Reason) -> Counter {
    match reason {
        Reason::Synch => Counter::WritesSynch,
        Reason::Recov => Counter::WritesRecov,
        Reason::None | Reason::Replace | Reason::Dsync => Counter::WritesReplace,
    }
}
