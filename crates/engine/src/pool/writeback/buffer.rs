//! The write buffer: dirty victims on their way to storage (watt 5.2).
//!
//! An evictor puts the dirty victims of a round into the buffer and goes on. The background writer
//! takes victims from it batch by batch, and so do evictors that have nothing else to do: if
//! storage is slower than they are, all of them write. A victim counts as pending until its write
//! is done.
//!
//! # Invariant
//! A frame is in the buffer at most once: its header is marked while it is there. An entry is only
//! a hint, as its page may be gone, or clean, by the time it is taken.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

use millpond_base::FrameId;
use millpond_base::sync::Mutex;
use millpond_base::sync::atomic::AtomicU32;

use crate::pool::frame::State;
use crate::pool::memory::frames::Frames;
use crate::pool::sync::locked::locked;

/// Pages per vectored write.
pub const BATCH_MAX: usize = 32;

/// Number of frames that one step of a sweep looks at.
const SWEPT: u32 = 1024;

/// Dirty victims that wait to be written.
#[derive(Default)]
pub(crate) struct WriteBuffer {
    queue: Mutex<VecDeque<FrameId>>,
    /// Number of victims that wait, or were taken and are being written.
    pending: AtomicU32,
    /// Frame at which the sweep for dirty cooling pages continues.
    hand: AtomicU32,
}

impl WriteBuffer {
    /// Returns the number of victims that wait or are being written.
    pub(crate) fn pending(&self) -> u32 {
        self.pending.load(Relaxed)
    }

    /// Returns whether no victim waits.
    pub(crate) fn is_empty(&self) -> bool {
        locked(&self.queue).is_empty()
    }

    /// Puts dirty frames into the buffer, which takes a quarter of all frames and a batch. Returns
    /// the number of frames that it did not have before.
    pub(super) fn put(&self, frames: &Frames, dirty: &[FrameId]) -> u32 {
        let most = frames.count() as usize / 4 + BATCH_MAX;
        let mut put = 0;
        let mut queue = locked(&self.queue);
        for id in dirty {
            if queue.len() >= most {
                break;
            }
            if frames.memory().header(*id).is_some_and(|header| header.set_queued()) {
                queue.push_back(*id);
                put += 1;
            }
        }
        self.pending.fetch_add(put, Relaxed);
        put
    }

    /// Takes out the victims that have waited longest, up to a batch. They are pending until
    /// [`WriteBuffer::settle`].
    pub(crate) fn take(&self, frames: &Frames) -> Vec<FrameId> {
        let mut queue = locked(&self.queue);
        let count = queue.len().min(BATCH_MAX);
        let taken: Vec<FrameId> = queue.drain(..count).collect();
        for header in taken.iter().filter_map(|id| frames.memory().header(*id)) {
            header.clear_queued();
        }
        taken
    }

    /// Records that `count` of the victims that were taken are no longer pending.
    pub(crate) fn settle(&self, count: usize) {
        self.pending.fetch_sub(count as u32, Relaxed);
    }

    /// Empties the buffer: later evictions meet the dirty pages again.
    pub(crate) fn forget(&self, frames: &Frames) {
        loop {
            let batch = self.take(frames);
            if batch.is_empty() {
                return;
            }
            self.settle(batch.len());
        }
    }

    /// Returns dirty pages of the cooling stage, which are the next victims. Each call continues at
    /// the next part of the frames, in a cycle.
    pub(crate) fn sweep(&self, frames: &Frames) -> Vec<FrameId> {
        let (all, first) = (frames.count(), self.hand.load(Relaxed));
        let look = SWEPT.min(all);
        let mut batch = Vec::with_capacity(BATCH_MAX);
        let mut looked = 0;
        while looked < look && batch.len() < BATCH_MAX {
            let id = FrameId((first + looked) % all);
            looked += 1;
            let is_due = frames.memory().header(id).is_some_and(|header| {
                header.state() == State::Cooling && header.is_dirty() && !header.is_writing()
            });
            if is_due {
                batch.push(id);
            }
        }
        self.hand.store((first + looked) % all, Relaxed);
        batch
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use millpond_policies::any_hook::AnyHook;

    use super::*;
    use crate::pool::options::PoolOptions;

    #[test]
    fn a_victim_is_in_the_buffer_once_and_pending_until_it_is_settled() {
        let frames = Frames::map::<AnyHook>(&PoolOptions::new(100), 512, &Default::default());
        let (frames, buffer) = (frames.unwrap(), WriteBuffer::default());
        let dirty: Vec<FrameId> = (0..60).map(FrameId).collect();
        assert_eq!(buffer.put(&frames, &dirty), 57, "a quarter of the frames, and a batch");
        assert_eq!(buffer.put(&frames, &dirty[..9]), 0);
        let batch = buffer.take(&frames);
        assert_eq!((batch.as_slice(), buffer.pending()), (&dirty[..BATCH_MAX], 57));
        assert_eq!(buffer.put(&frames, &batch[..1]), 1, "it was taken");
        buffer.settle(batch.len());
        buffer.forget(&frames);
        assert!(buffer.is_empty() && buffer.pending() == 0);
    }
}
