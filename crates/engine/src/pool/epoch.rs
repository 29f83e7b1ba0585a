//! Epochs decide when the frame of an unswizzled page may be reused (leanstore IV-G).
//!
//! A thread enters the global epoch before it touches pages and leaves it afterwards. A frame that
//! was given up in epoch e may be reused once no thread is in an epoch up to e. Every reader also
//! validates a version, and frames are never unmapped, so a store can do without epochs
//! ([`Reclamation::Version`]): no thread then enters one, and a frame is reused at once.
//!
//! # Invariants
//! 1. A local epoch is never newer than the global one.
//! 2. The threads that share a slot are in no epoch older than the one in which the slot was last
//!    seen empty.

use millpond_base::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use millpond_policies::choice;
use millpond_policies::config::Param;

use crate::stats::thread_slot::OWNED;
use crate::words::by_word;

choice! {
    /// Protection of a frame from reuse under an optimistic reader (leanstore IV-G).
    #[derive(Default, Hash)]
    pub enum Reclamation {
        /// Epochs: a frame is reused when every thread that could see its page has moved on.
        Epoch = "epoch",
        /// The frame's version alone: its memory stays, readers find out afterwards.
        #[default]
        Version = "version",
    }
}
by_word! {
    Reclamation "reclamation";
}

const OUTSIDE: u64 = u64::MAX;

/// Slots with an epoch of their own. Loom tries all orders of all accesses, so it gets few.
const LOCALS: usize = if cfg!(feature = "loom") { 2 } else { OWNED };

#[repr(align(128))]
struct Local(AtomicU64);

/// The global epoch and the epochs of all threads.
pub struct Epochs {
    /// The global epoch, which begins at 1 and only grows.
    global: Local,
    /// The epoch of each thread with a slot of its own, or [`OUTSIDE`]; written by that thread.
    locals: Box<[Local]>,
    /// Number of threads that share the last slot and are in an epoch.
    sharers: AtomicU32,
    /// Global epoch at which the shared slot was last seen empty (invariant 2).
    empty_at: AtomicU64,
    /// Number of frames given up so far, which decides when the next epoch begins.
    given_up: AtomicU64,
}

/// Evictions and deletions per step of the global epoch.
pub const GIVEN_UP_PER_STEP: u64 = 100;

impl Default for Epochs {
    fn default() -> Epochs {
        Epochs::new()
    }
}

impl Epochs {
    /// Returns epochs that no thread is in.
    pub fn new() -> Epochs {
        Epochs {
            global: Local(AtomicU64::new(1)),
            locals: (0..LOCALS).map(|_| Local(AtomicU64::new(OUTSIDE))).collect(),
            sharers: AtomicU32::new(0),
            empty_at: AtomicU64::new(1),
            given_up: AtomicU64::new(0),
        }
    }

    /// Enters the current epoch, for the thread with slot `slot`.
    #[inline]
    pub fn enter(&self, slot: usize) {
        if slot < LOCALS {
            let now = self.global.0.load(Ordering::Relaxed);
            self.locals[slot].0.store(now, Ordering::Relaxed);
        } else {
            self.sharers.fetch_add(1, Ordering::Relaxed);
        }
        // Entering must be seen before anything is read.
        fence(Ordering::SeqCst);
    }

    /// Leaves the current epoch, for the thread with slot `slot`.
    #[inline]
    pub fn leave(&self, slot: usize) {
        if slot < LOCALS {
            self.locals[slot].0.store(OUTSIDE, Ordering::Release);
        } else {
            let before = self.sharers.fetch_sub(1, Ordering::Release);
            debug_assert!(before > 0, "a thread leaves the epoch that it entered");
        }
    }

    /// Counts a frame that is given up. Returns its epoch, and `true` if this call began the next
    /// epoch, as it does every [`GIVEN_UP_PER_STEP`] frames.
    pub fn give_up(&self) -> (u64, bool) {
        let count = self.given_up.fetch_add(1, Ordering::Relaxed);
        let steps = count % GIVEN_UP_PER_STEP == GIVEN_UP_PER_STEP - 1;
        if steps {
            self.global.0.fetch_add(1, Ordering::AcqRel);
        }
        // The page must be out of reach before the epoch is read.
        fence(Ordering::SeqCst);
        (self.global.0.load(Ordering::Acquire), steps)
    }

    /// Begins the next epoch now, because a thread waits for frames.
    pub fn step(&self) {
        self.global.0.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the oldest epoch that a thread may be in; frames given up before it may be reused.
    pub fn oldest(&self) -> u64 {
        let global = self.global.0.load(Ordering::Acquire);
        // A thread that is not seen now was in no epoch before this one, and finds nothing that was
        // given up before it.
        fence(Ordering::SeqCst);
        let locals = self.locals.iter().map(|l| l.0.load(Ordering::Acquire));
        let oldest = locals.min().unwrap_or(OUTSIDE).min(global);
        debug_assert_ne!(oldest, 0, "frames that wait for no epoch have 0");
        if self.sharers.load(Ordering::Acquire) == 0 {
            self.empty_at.store(global, Ordering::Release);
            return oldest;
        }
        oldest.min(self.empty_at.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::thread_slot::SLOTS;

    #[test]
    fn a_frame_waits_for_the_thread_that_was_there_before() {
        let epochs = Epochs::new();
        epochs.enter(3);
        let (noted, _) = epochs.give_up();
        for _ in 0..5 {
            epochs.step();
        }
        assert!(epochs.oldest() <= noted, "thread 3 may still read it");
        epochs.leave(3);
        assert!(epochs.oldest() > noted);
        epochs.enter(4);
        assert!(epochs.oldest() > noted, "who came later cannot");
    }

    #[test]
    fn threads_that_share_a_slot_hold_frames_back_too() {
        let epochs = Epochs::new();
        assert_eq!(epochs.oldest(), 1);
        epochs.enter(SLOTS - 1);
        let (noted, _) = epochs.give_up();
        epochs.step();
        epochs.enter(SLOTS - 1);
        epochs.leave(SLOTS - 1);
        assert!(epochs.oldest() <= noted);
        epochs.leave(SLOTS - 1);
        assert!(epochs.oldest() > noted);
    }

    #[test]
    fn the_epoch_steps_once_per_hundred() {
        let epochs = Epochs::new();
        let steps = (0..1000).filter(|_| epochs.give_up().1).count();
        assert_eq!(steps, 10);
    }
}
