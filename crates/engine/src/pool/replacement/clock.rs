//! The clock that policies see: a tick per reference, or per number of evictions.
//!
//! A clock of references is one word that every reference of every thread writes: the cost of
//! policies that need it. With a coarse clock, each thread counts its references on a line of its
//! own, and advances the clock by a step of several at a time. Time then does not change for a
//! while, and may be late by one step of each other thread. It never goes back.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::stats::thread_slot::{SHARED, SLOTS};

/// A word on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU32);

/// The policy's clock.
pub(crate) struct PolicyClock {
    now: Line,
    /// Number of references by which the clock advances at a time, at least 1.
    step: u32,
    /// References of each thread for which the clock has not advanced; less than `step`.
    counted: Box<[Line]>,
    /// Number of pages evicted since the pool opened, counted even if evictions are no ticks.
    evictions: AtomicU64,
    /// Evictions per tick of a clock of evictions, at least 1.
    evictions_per_tick: u64,
}

impl PolicyClock {
    /// Returns a clock at 0. One of references advances by `step` references at once, one of
    /// evictions once per `evictions_per_tick`.
    pub(crate) fn new(step: u32, evictions_per_tick: u32) -> PolicyClock {
        let slots = if step > 1 { SLOTS } else { 0 };
        let counted = (0..slots).map(|_| Line::default()).collect();
        PolicyClock {
            now: Line::default(),
            step: step.max(1),
            counted,
            evictions: AtomicU64::new(0),
            evictions_per_tick: u64::from(evictions_per_tick),
        }
    }

    /// Returns the time.
    #[inline(always)]
    pub(crate) fn now(&self) -> u32 {
        self.now.0.load(Ordering::Relaxed)
    }

    /// Counts a reference of the thread with slot `slot`; returns the time after it.
    #[inline(always)]
    pub(crate) fn reference(&self, slot: usize) -> u32 {
        if self.step == 1 {
            return self.move_on(1);
        }
        let Some(line) = self.counted.get(slot.min(SHARED)) else { return self.now() };
        // Only the owner of a slot writes there; threads that share one may lose a count.
        let counted = line.0.load(Ordering::Relaxed) + 1;
        if counted < self.step {
            line.0.store(counted, Ordering::Relaxed);
            return self.now();
        }
        line.0.store(0, Ordering::Relaxed);
        self.move_on(self.step)
    }

    /// Returns the number of evictions since the pool opened.
    pub(crate) fn evictions(&self) -> u64 {
        self.evictions.load(Ordering::Relaxed)
    }

    /// Counts `count` evictions, and advances the clock by them if it `counts_evictions`.
    pub(crate) fn count_evictions(&self, count: u32, counts_evictions: bool) {
        let before = self.evictions.fetch_add(u64::from(count), Ordering::Relaxed);
        if counts_evictions {
            let per_tick = self.evictions_per_tick;
            let ticks = (before + u64::from(count)) / per_tick - before / per_tick;
            self.move_on(ticks as u32);
        }
    }

    /// Advances the clock by `ticks`; returns the new time.
    #[inline(always)]
    pub(crate) fn move_on(&self, ticks: u32) -> u32 {
        self.now.0.fetch_add(ticks, Ordering::Relaxed).wrapping_add(ticks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_counts_each_reference_or_several_at_once() {
        let exact = PolicyClock::new(1, 1);
        assert_eq!([exact.reference(3), exact.reference(SHARED), exact.now()], [1, 2, 2]);
        let coarse = PolicyClock::new(4, 1);
        let times: Vec<u32> = (0..9).map(|_| coarse.reference(0)).collect();
        assert_eq!(times, [0, 0, 0, 4, 4, 4, 4, 8, 8]);
        let others: Vec<u32> = (0..4).map(|_| coarse.reference(SHARED)).collect();
        assert_eq!(others, [8, 8, 8, 12]);
        assert_eq!(coarse.move_on(2), 14);
    }
}
