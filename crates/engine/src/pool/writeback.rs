//! Writing dirty pages: copies, so that no page is latched while it is written.
//!
//! # Rules
//! 1. What goes to storage is a copy, made under a shared latch, in which every swip was turned
//!    into its evicted form: storage never sees a pointer (leanstore IV-B).
//! 2. From the copy until the write returned the frame is *writing*: it is not evicted, and its
//!    page id is not given to another page.
//! 3. A page that changes meanwhile is dirty again; one whose write failed remains dirty.

use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use millpond_base::{FrameId, PageId, Reason};

use crate::io::AlignedBuffer;
use crate::page::View;
use crate::pool::buffer::{Evictors, Mode, Pool, locked};
use crate::pool::counters::{Counter, Gauge, Timing};
use crate::pool::error::PoolError;
use crate::pool::frame::{Frame, State};
use crate::pool::storage::PageOut;
use crate::pool::swip::Swip;

/// Pages per vectored write.
pub const BATCH_MAX: usize = 32;
/// Buffers that are kept for the next write.
const BUFFERS_KEPT: usize = 2;

/// What waits to be written or read in the background, and the buffers for it.
pub struct Writes {
    page_size: usize,
    queue: Mutex<Vec<FrameId>>,
    orders: Mutex<Vec<(PageId, FrameId)>>,
    deferred: Mutex<Vec<(FrameId, PageId)>>,
    buffers: Mutex<Vec<AlignedBuffer>>,
}

impl Writes {
    /// Nothing waits.
    pub fn new(page_size: usize) -> Writes {
        Writes {
            page_size,
            queue: Mutex::default(),
            orders: Mutex::default(),
            deferred: Mutex::default(),
            buffers: Mutex::default(),
        }
    }

    /// Bytes of write buffers that a pool with pages of `page_size` bytes keeps.
    pub fn bytes(page_size: usize) -> u64 {
        (BUFFERS_KEPT * BATCH_MAX * page_size) as u64
    }

    fn buffer(&self) -> AlignedBuffer {
        let kept = locked(&self.buffers).pop();
        kept.unwrap_or_else(|| AlignedBuffer::new(BATCH_MAX * self.page_size))
    }

    fn keep(&self, buffer: AlignedBuffer) {
        let mut buffers = locked(&self.buffers);
        if buffers.len() < BUFFERS_KEPT {
            buffers.push(buffer);
        }
    }

    /// A deletion that has to wait until the write of its page is over.
    pub(crate) fn defer(&self, frame: FrameId, page: PageId) {
        locked(&self.deferred).push((frame, page));
    }

    pub(crate) fn take_deferred(&self) -> Vec<(FrameId, PageId)> {
        std::mem::take(&mut *locked(&self.deferred))
    }

    /// `page` is to be read into `frame` in the background.
    pub(crate) fn order_read(&self, page: PageId, frame: FrameId) {
        locked(&self.orders).push((page, frame));
    }

    fn take_orders(&self) -> Vec<(PageId, FrameId)> {
        std::mem::take(&mut *locked(&self.orders))
    }
}

impl<M: Mode> Pool<M> {
    /// Leaves dirty frames to the background writer, if there is one.
    pub(crate) fn hand_over(&self, dirty: &[FrameId]) {
        if dirty.is_empty() || !self.options.background_writer {
            return;
        }
        let mut queue = locked(&self.writes.queue);
        if queue.len() < self.frames() as usize / 4 + BATCH_MAX {
            queue.extend_from_slice(dirty);
        }
        drop(queue);
        self.sleep.work.notify_all();
    }

    /// Writes those of `frames` that are dirty and can be latched now; says how many.
    ///
    /// # Errors
    /// The first error of the storage; pages whose write failed are dirty again.
    pub fn write_frames(&self, frames: &[FrameId], reason: Reason) -> Result<u32, PoolError> {
        let mut written = 0;
        for batch in frames.chunks(BATCH_MAX) {
            written += self.write_batch(batch, reason)?;
        }
        if written > 0 {
            self.reap();
        }
        Ok(written)
    }

    fn write_batch(&self, frames: &[FrameId], reason: Reason) -> Result<u32, PoolError> {
        let mut buffer = self.writes.buffer();
        let mut begun = Vec::with_capacity(frames.len());
        let mut out = Vec::with_capacity(frames.len());
        for (id, bytes) in frames.iter().zip(buffer.chunks_mut(self.page_size)) {
            if let Some(page) = self.copy_out(*id, bytes) {
                begun.push((*id, page));
                out.push(PageOut { page, reason, bytes });
            }
        }
        let result = if out.is_empty() { Ok(()) } else { self.write_out(&mut out) };
        drop(out);
        self.writes.keep(buffer);
        for (id, page) in &begun {
            self.end_write(*id, *page, result.is_ok());
        }
        let here = self.counters.here();
        let count = begun.len() as u64;
        match &result {
            Ok(()) => {
                here.add(count_of(reason), count);
                here.add(Counter::BytesWritten, count * self.page_size as u64);
            }
            Err(_) => here.add(Counter::WriteErrors, 1),
        }
        result.map(|()| begun.len() as u32)
    }

    fn write_out(&self, out: &mut [PageOut<'_>]) -> Result<(), PoolError> {
        let started = self.latencies.start(Timing::WriteTime);
        self.counters.shift(Gauge::WritesInFlight, out.len() as i64);
        self.counters.count(Counter::WriteBatches);
        let result = self.storage.write(out);
        self.counters.shift(Gauge::WritesInFlight, -(out.len() as i64));
        self.latencies.stop(Timing::WriteTime, started);
        result
    }

    fn end_write(&self, id: FrameId, page: PageId, succeeded: bool) {
        let Some(header) = self.memory.header(id) else { return };
        header.end_write(succeeded);
        if succeeded && !header.is_dirty() {
            let still = || {
                header.page() == Some(page) && matches!(header.state(), State::Hot | State::Cooling)
            };
            self.seat.cleaned(self.metas(), id, still);
        }
    }

    /// Begins the write of the page in frame `id`: copies it into `bytes`. `None` if there is
    /// nothing to write, or the frame's latch is held.
    fn copy_out(&self, id: FrameId, bytes: &mut [u8]) -> Option<PageId> {
        let frame = self.memory.frame(id)?;
        let header = self.header(frame);
        if !header.is_dirty() || !header.latch.try_shared() {
            return None;
        }
        let page = self.copy_held(frame, bytes);
        header.latch.release_shared();
        page
    }

    fn copy_held(&self, frame: NonNull<Frame>, bytes: &mut [u8]) -> Option<PageId> {
        let header = self.header(frame);
        if !matches!(header.state(), State::Hot | State::Cooling) {
            return None;
        }
        let page = header.page()?;
        if !header.begin_write() {
            return None;
        }
        let view = self.view(frame);
        view.copy_into(0, bytes);
        if M::SWIZZLES
            && let Some(kind) = self.kind(view)
        {
            // The children cannot go meanwhile: that would take this page's exclusive latch.
            kind.swips(view, &mut |at| {
                self.unswizzle_copy(view, bytes, at);
                true
            });
        }
        Some(page)
    }

    fn unswizzle_copy(&self, view: View<'_>, bytes: &mut [u8], at: usize) {
        let word = Swip(view.u64(at));
        if !word.is_swizzled() {
            return;
        }
        let child = word.frame().and_then(|child| self.header(child).page());
        debug_assert!(child.is_some(), "a swizzled child has a page");
        if let (Some(child), Some(place)) = (child, bytes.get_mut(at..at + 8)) {
            place.copy_from_slice(&Swip::evicted(child).0.to_le_bytes());
        }
    }

    /// What the background writer does until the pool closes (leanstore IV-I): writes what is
    /// dirty and about to go, and reads what was asked for ahead.
    pub(crate) fn background_writer(&self) {
        const NAP: Duration = Duration::from_millis(100);
        while !self.sleep.stop.load(Ordering::Acquire) {
            let orders = self.writes.take_orders();
            if !orders.is_empty() {
                self.read_ahead(&orders);
                continue;
            }
            let queue = std::mem::take(&mut *locked(&self.writes.queue));
            if !queue.is_empty() {
                // An error stays with the page, which is dirty still: whoever needs the frame, or
                // closes the store, is told.
                if let Err(error) = self.write_frames(&queue, Reason::Replace) {
                    tracing::warn!(%error, "a page could not be written in the background");
                }
                continue;
            }
            let guard = locked(&self.sleep.lock);
            if self.has_work() || self.sleep.stop.load(Ordering::Acquire) {
                continue;
            }
            drop(self.sleep.work.wait_timeout(guard, NAP));
        }
        // Frames that were promised to reads must not be lost.
        self.read_ahead(&self.writes.take_orders());
    }

    fn has_work(&self) -> bool {
        !locked(&self.writes.queue).is_empty() || !locked(&self.writes.orders).is_empty()
    }

    /// Whether somebody reads ahead in the background.
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
        for _ in 0..TRIES_MAX {
            let dirty = |id: &FrameId| {
                self.memory.header(*id).is_some_and(|h| h.is_dirty() || h.is_writing())
            };
            let frames: Vec<FrameId> = (0..self.frames()).map(FrameId).filter(dirty).collect();
            if frames.is_empty() {
                return Ok(written);
            }
            let now = self.write_frames(&frames, reason)?;
            if now == 0 {
                millpond_base::sync::thread::yield_now();
            }
            written += now;
        }
        Err(PoolError::Busy { dirty: self.frames_dirty() })
    }

    /// Who evicts.
    pub fn evictors(&self) -> Evictors {
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
