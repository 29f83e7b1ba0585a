//! Waits: the reasons for which threads wait without CPU time, counted, timed, and visible while a
//! wait lasts.
//!
//! A gauge has the number of threads in each kind of wait at the moment. So reading the gauges now
//! and then samples the threads' wait states.

use std::time::Instant;

use crate::stats::Statistics;
use crate::stats::counters::{Counter, Gauge, Timing};

/// Reason of a wait.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Wait {
    /// A latch, once spinning was not enough.
    Latch,
    /// A lock that another transaction holds.
    Lock,
    /// A record of the log to become durable.
    Log,
    /// Room in the log: its buffer is full, or checkpoints are behind.
    LogSpace,
    /// A page that another thread loads.
    Page,
    /// A free frame.
    Frame,
}

impl Wait {
    /// All reasons.
    pub const ALL: [Wait; 6] =
        [Wait::Latch, Wait::Lock, Wait::Log, Wait::LogSpace, Wait::Page, Wait::Frame];

    /// Returns the counter of such waits.
    pub const fn counter(self) -> Counter {
        match self {
            Wait::Latch => Counter::LatchWaits,
            Wait::Lock => Counter::LockWaits,
            Wait::Log => Counter::LogWaits,
            Wait::LogSpace => Counter::LogSpaceWaits,
            Wait::Page => Counter::InFlightWaits,
            Wait::Frame => Counter::FreeFrameWaits,
        }
    }

    /// Returns the gauge of threads in such waits.
    pub const fn gauge(self) -> Gauge {
        match self {
            Wait::Latch => Gauge::WaitingForLatch,
            Wait::Lock => Gauge::WaitingForLock,
            Wait::Log => Gauge::WaitingForLog,
            Wait::LogSpace => Gauge::WaitingForLogSpace,
            Wait::Page => Gauge::WaitingForPage,
            Wait::Frame => Gauge::WaitingForFrame,
        }
    }

    /// Returns the timing of such waits.
    pub const fn timing(self) -> Timing {
        match self {
            Wait::Latch => Timing::LatchTime,
            Wait::Lock => Timing::LockTime,
            Wait::Log => Timing::LogTime,
            Wait::LogSpace => Timing::LogSpaceTime,
            Wait::Page => Timing::InFlightTime,
            Wait::Frame => Timing::FreeFrameTime,
        }
    }
}

/// Marks the calling thread as waiting until it is dropped.
pub struct Waiting<'s> {
    statistics: &'s Statistics,
    what: Wait,
    begun: Instant,
}

impl Statistics {
    /// Counts a wait, and times it until the result is dropped.
    pub fn wait(&self, what: Wait) -> Waiting<'_> {
        self.counters.count(what.counter());
        self.counters.raise(what.gauge());
        Waiting { statistics: self, what, begun: Instant::now() }
    }
}

impl Waiting<'_> {
    /// Returns the start of the wait.
    pub fn begun(&self) -> Instant {
        self.begun
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let waited = self.begun.elapsed();
        self.statistics.counters.lower(self.what.gauge());
        self.statistics.latencies.record(self.what.timing(), waited.as_nanos() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_wait_is_counted_seen_while_it_lasts_and_timed_when_it_is_over() {
        let statistics = Statistics::default();
        for what in Wait::ALL {
            let level = || statistics.counters.level(what.gauge());
            let waiting = statistics.wait(what);
            let other = statistics.wait(what);
            assert_eq!((level(), statistics.counters.get(what.counter())), (2, 2));
            std::thread::scope(|scope| scope.spawn(|| drop(other)).join().unwrap());
            assert_eq!(level(), 1, "a wait may end in another thread");
            let passed = waiting.begun().elapsed().as_nanos() as u64;
            drop(waiting);
            let timed = statistics.latencies.merged(what.timing());
            assert_eq!((level(), timed.count), (0, 2));
            assert!(timed.max_ns >= passed, "{what:?}");
        }
    }

    #[test]
    fn each_wait_has_a_counter_a_gauge_and_a_timing_of_its_own() {
        let counters: HashSet<_> = Wait::ALL.map(Wait::counter).into();
        let gauges: HashSet<_> = Wait::ALL.map(Wait::gauge).into();
        let timings: HashSet<_> = Wait::ALL.map(Wait::timing).into();
        assert!([counters.len(), gauges.len(), timings.len()] == [Wait::ALL.len(); 3]);
    }
}
