//! The starvation guard holds pages for an operation that would otherwise never have all the pages
//! that it needs in memory together.
//!
//! An operation needs a path, and it loads a missing page outside of any mini-transaction. Under
//! most policies a page that was just loaded stays for a while. Under some it is the next victim.
//! FILO and MRU evict the inner node for its leaf and the leaf for its inner node, for ever
//! (gilbert 1.3.4 found that they stall in small pools). So an operation that has restarted
//! [`PATIENCE`] times is *starving*: every page that it loads from then on is held, that is,
//! refused as pinned, until the operation ends.
//!
//! Where `attempts_max` is set, nothing is held and the operation fails in the end: then only the
//! policy's choices count.
//!
//! Invariant: at most one operation of a pool is starving, and it holds at most half of the frames.
//! So no two of them can stop each other, and none can fill the pool. Other threads pay one test of
//! a flag per offered frame.

use std::sync::atomic::{AtomicUsize, Ordering};

use millpond_base::FrameId;
use millpond_base::sync::Mutex;

use crate::pool::memory::region::FrameMemory;
use crate::pool::sync::locked::locked;
use crate::stats::thread_slot::OWNED;

/// Number of restarts of an operation before it is starving: about one for each page of a path.
pub const PATIENCE: u32 = if cfg!(feature = "model") { 6 } else { 8 };

/// The starving operation, if any, and the frames held for it.
#[derive(Default)]
pub(crate) struct StarvationGuard {
    /// Slot of the starving operation's thread, plus 1; 0 if no operation starves. Only that thread
    /// sets it from 0, and back to 0.
    thread: AtomicUsize,
    /// Frames that are held for the starving operation; empty while none starves. A frame may be
    /// listed twice: if no thread came for its page, another may have been loaded into it.
    held: Mutex<Vec<FrameId>>,
}

impl StarvationGuard {
    /// Holds `frame`, into which the operation of the thread with slot `slot` loaded a page after
    /// `restarts` restarts, if that operation is the one that starves.
    pub(crate) fn hold(&self, memory: &FrameMemory, slot: usize, frame: FrameId, restarts: u32) {
        if restarts < PATIENCE || slot >= OWNED {
            return;
        }
        let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
        if self.thread.load(relaxed) != slot + 1
            && self.thread.compare_exchange(0, slot + 1, acquire, relaxed).is_err()
        {
            return;
        }
        let mut held = locked(&self.held);
        if held.len() < memory.frames() as usize / 2
            && let Some(header) = memory.header(frame)
        {
            header.set_held(true);
            held.push(frame);
        }
        debug_assert!(
            held.len() <= memory.frames() as usize / 2,
            "half of the frames can be evicted"
        );
    }

    /// Ends the operation of the thread with slot `slot`, and releases its held frames.
    pub(crate) fn end(&self, memory: &FrameMemory, slot: usize) {
        if self.thread.load(Ordering::Relaxed) != slot + 1 {
            return;
        }
        for frame in locked(&self.held).drain(..) {
            if let Some(header) = memory.header(frame) {
                header.set_held(false);
            }
        }
        self.thread.store(0, Ordering::Release);
    }
}
