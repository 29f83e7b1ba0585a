//! Pages that must stay until an operation has used them: a way out for operations that never get
//! together, at one moment, the pages that they need.
//!
//! An operation needs a path, and it loads a missing page outside of any attempt. Under most
//! policies a page that was just loaded stays for a while. Under some it is the next victim: FILO
//! and MRU give up the inner node for its leaf and the leaf for its inner node, for ever (gilbert
//! 1.3.4 found that they stall in small pools). So an operation that has begun anew [`PATIENCE`]
//! times is *in distress*: what it loads from then on is held, that is, refused as pinned, until
//! the operation ends.
//!
//! Where `attempts_max` says so, nothing is held and the operation fails in the end: then only the
//! policy's choices count.
//!
//! Invariant: at most one operation of a pool is in distress, and it holds at most half of the
//! frames. So what is held can neither stop each other nor fill the pool. Nobody else pays but for
//! one test of a flag per offered frame.

use std::sync::atomic::{AtomicUsize, Ordering};

use millpond_base::FrameId;
use millpond_base::sync::Mutex;

use crate::pool::buffer_pool::{Pool, PoolStrategy};
use crate::pool::sync::locked::locked;
use crate::pool::thread_slot::OWNED;

/// Attempts of an operation before it is in distress: about one for each page of a path.
pub const PATIENCE: u32 = if cfg!(any(loom, shuttle)) { 6 } else { 8 };

/// Which operation is in distress, and what it holds.
#[derive(Default)]
pub(crate) struct StarvationGuard {
    /// The slot of its thread, plus 1; 0 if there is none.
    thread: AtomicUsize,
    held: Mutex<Vec<FrameId>>,
}

impl<M: PoolStrategy> Pool<M> {
    /// The operation of the thread with slot `slot` has loaded a page into `frame`, after so many
    /// attempts.
    pub(crate) fn hold_for_starving(&self, slot: usize, frame: FrameId, attempt: u32) {
        if attempt < PATIENCE || slot >= OWNED || self.options.attempts_max.is_some() {
            return;
        }
        let thread = &self.starvation.thread;
        let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
        if thread.load(relaxed) != slot + 1
            && thread.compare_exchange(0, slot + 1, acquire, relaxed).is_err()
        {
            return;
        }
        let mut held = locked(&self.starvation.held);
        if held.len() < self.frames() as usize / 2
            && let Some(header) = self.memory.header(frame)
        {
            header.set_held(true);
            held.push(frame);
        }
    }

    /// The operation of the thread with slot `slot` is over.
    pub(crate) fn end_starvation(&self, slot: usize) {
        let thread = &self.starvation.thread;
        if thread.load(Ordering::Relaxed) != slot + 1 {
            return;
        }
        for frame in locked(&self.starvation.held).drain(..) {
            if let Some(header) = self.memory.header(frame) {
                header.set_held(false);
            }
        }
        thread.store(0, Ordering::Release);
    }
}
