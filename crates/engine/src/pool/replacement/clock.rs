//! The clock that policies see: a tick per reference, or per so many evictions.
//!
//! A clock of references is one word that every reference of every thread writes, which is what
//! such policies cost. It may be made to go coarsely: then each thread counts its references where
//! nobody else writes, and moves the clock on by so many at a time. Time then stands still for a
//! while, and a thread may see it late by so many references of each other thread; it never goes
//! back.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::pool::thread_slot::{SHARED, SLOTS};

/// A word on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU32);

/// The policy's clock.
pub(crate) struct PolicyClock {
    now: Line,
    /// References by which it moves at once, at least 1.
    step: u32,
    /// References of each thread that it has not moved for.
    counted: Box<[Line]>,
}

impl PolicyClock {
    /// A clock at 0 that moves by `step` references at once.
    pub(crate) fn new(step: u32) -> PolicyClock {
        let slots = if step > 1 { SLOTS } else { 0 };
        let counted = (0..slots).map(|_| Line::default()).collect();
        PolicyClock { now: Line::default(), step: step.max(1), counted }
    }

    /// The time.
    #[inline(always)]
    pub(crate) fn now(&self) -> u32 {
        self.now.0.load(Ordering::Relaxed)
    }

    /// The time after one reference more, of the thread with slot `slot`.
    #[inline(always)]
    pub(crate) fn reference(&self, slot: usize) -> u32 {
        if self.step == 1 {
            return self.move_on(1);
        }
        let Some(line) = self.counted.get(slot.min(SHARED)) else { return self.now() };
        // The owner of a slot is alone there; threads that share one may lose a count.
        let counted = line.0.load(Ordering::Relaxed) + 1;
        if counted < self.step {
            line.0.store(counted, Ordering::Relaxed);
            return self.now();
        }
        line.0.store(0, Ordering::Relaxed);
        self.move_on(self.step)
    }

    /// The time after so many ticks.
    #[inline(always)]
    pub(crate) fn move_on(&self, ticks: u32) -> u32 {
        self.now.0.fetch_add(ticks, Ordering::Relaxed).wrapping_add(ticks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_counts_each_reference_or_so_many_at_once() {
        let exact = PolicyClock::new(1);
        assert_eq!([exact.reference(3), exact.reference(SHARED), exact.now()], [1, 2, 2]);
        let coarse = PolicyClock::new(4);
        let times: Vec<u32> = (0..9).map(|_| coarse.reference(0)).collect();
        assert_eq!(times, [0, 0, 0, 4, 4, 4, 4, 8, 8]);
        let others: Vec<u32> = (0..4).map(|_| coarse.reference(SHARED)).collect();
        assert_eq!(others, [8, 8, 8, 12]);
        assert_eq!(coarse.move_on(2), 14);
    }
}
