//! The write buffer: dirty victims on their way to storage (watt 5.2).
//!
//! An evictor puts the dirty victims of a round into it and goes on; a page leaves when its write
//! is done. The background writer takes them from it batch by batch, and so do evictors that have
//! nothing else to do: where storage is slower than they are, all of them write.
//!
//! # Invariant
//! A frame is in the buffer once at most: its header is marked as long as it is. An entry is only a
//! hint, as its page may be gone, or clean, by the time it is taken.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use millpond_base::sync::Mutex;
use millpond_base::sync::atomic::AtomicU32;
use millpond_base::{FrameId, Reason};

use crate::pool::buffer_pool::Pool;
use crate::pool::error::PoolError;
use crate::pool::frame::State;
use crate::pool::options::PoolStrategy;
use crate::pool::sync::locked::locked;

/// Pages per vectored write.
pub const BATCH_MAX: usize = 32;

/// Frames that one step of a sweep looks at.
const SWEPT: u32 = 1024;

/// Dirty victims that wait to be written.
#[derive(Default)]
pub(crate) struct WriteBuffer {
    queue: Mutex<VecDeque<FrameId>>,
    /// Victims that wait, and those that were taken and are being written.
    pending: AtomicU32,
    /// Position at which the sweep of the cooling stage goes on.
    hand: AtomicU32,
}

impl WriteBuffer {
    /// Victims that wait or are being written.
    pub(crate) fn pending(&self) -> u32 {
        self.pending.load(Relaxed)
    }

    fn is_empty(&self) -> bool {
        locked(&self.queue).is_empty()
    }
}

impl<M: PoolStrategy> Pool<M> {
    /// Leaves dirty frames to those that write, if there is a background writer. Returns how many
    /// of them were not in the buffer and are now: it takes a quarter of all frames.
    pub(crate) fn hand_over(&self, dirty: &[FrameId]) -> u32 {
        if dirty.is_empty() || !self.options.background_writer || self.cleans() {
            return 0;
        }
        let most = self.frames.count() as usize / 4 + BATCH_MAX;
        let mut put = 0;
        {
            let mut queue = locked(&self.writes.buffer.queue);
            for id in dirty {
                if queue.len() >= most {
                    break;
                }
                if self.frames.memory().header(*id).is_some_and(|header| header.set_queued()) {
                    queue.push_back(*id);
                    put += 1;
                }
            }
            self.writes.buffer.pending.fetch_add(put, Relaxed);
        }
        self.sleep.work.signal();
        put
    }

    /// Takes the victims out that have waited the longest, up to a batch.
    fn take_buffered(&self) -> Vec<FrameId> {
        let mut queue = locked(&self.writes.buffer.queue);
        let count = queue.len().min(BATCH_MAX);
        let taken: Vec<FrameId> = queue.drain(..count).collect();
        for header in taken.iter().filter_map(|id| self.frames.memory().header(*id)) {
            header.clear_queued();
        }
        taken
    }

    /// Writes a batch of the buffer, and evicts it where the policy will not offer it again.
    /// Returns how many pages were written, and how many evicted.
    ///
    /// # Errors
    /// See [`Pool::write_frames`].
    pub(crate) fn write_buffered(&self, reason: Reason) -> Result<(u32, u32), PoolError> {
        let batch = self.take_buffered();
        if batch.is_empty() {
            return Ok((0, 0));
        }
        let done = self.write_victims(&batch, reason);
        self.writes.buffer.pending.fetch_sub(batch.len() as u32, Relaxed);
        done
    }

    /// Empties the buffer: later evictions meet the dirty pages again.
    pub(crate) fn forget_buffered(&self) {
        loop {
            let batch = self.take_buffered();
            if batch.is_empty() {
                return;
            }
            self.writes.buffer.pending.fetch_sub(batch.len() as u32, Relaxed);
        }
    }

    /// Runs the background writer until the pool closes (leanstore IV-I): it writes dirty victims,
    /// cleans the cooling stage ahead of the victims to come, and reads ahead.
    pub(crate) fn background_writer(&self) {
        const NAP: Duration = Duration::from_millis(100);
        while !self.is_over() {
            let orders = self.writes.take_orders(true);
            if !orders.is_empty() {
                self.read_ahead(&orders);
                continue;
            }
            if !self.writes.buffer.is_empty() {
                // An error stays with the page, which is still dirty: the thread that needs the
                // frame, or closes the store, gets it.
                let done = self.write_buffered(Reason::Replace).and_then(|_| self.sweep_cooling());
                if let Err(error) = done {
                    tracing::warn!(%error, "a page could not be written in the background");
                }
                continue;
            }
            self.sleep.work.wait(NAP, || self.has_work() || self.is_over());
        }
        // Frames that were taken for reads must not be lost.
        self.read_ahead(&self.writes.take_orders(false));
    }

    fn has_work(&self) -> bool {
        !self.writes.buffer.is_empty() || self.writes.has_orders()
    }

    /// Writes dirty pages of the cooling stage, a part of it at a time and cyclically, if there is
    /// one: they are the next victims.
    fn sweep_cooling(&self) -> Result<u32, PoolError> {
        if !self.cools() {
            return Ok(0);
        }
        let (frames, first) = (self.frames.count(), self.writes.buffer.hand.load(Relaxed));
        let look = SWEPT.min(frames);
        let mut batch = Vec::with_capacity(BATCH_MAX);
        let mut looked = 0;
        while looked < look && batch.len() < BATCH_MAX {
            let id = FrameId((first + looked) % frames);
            looked += 1;
            let is_due = self.frames.memory().header(id).is_some_and(|header| {
                header.state() == State::Cooling && header.is_dirty() && !header.is_writing()
            });
            if is_due {
                batch.push(id);
            }
        }
        self.writes.buffer.hand.store((first + looked) % frames, Relaxed);
        self.write_frames(&batch, Reason::Replace)
    }
}
