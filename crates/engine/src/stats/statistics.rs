//! The statistics of a room.

use crate::stats::counters::{Counter, Counters};
use crate::stats::histogram::Latencies;

/// Counters and latencies of a room.
pub struct Statistics {
    /// Counters of events.
    pub counters: Counters,
    /// Latencies of timed operations.
    pub latencies: Latencies,
}

impl Default for Statistics {
    /// Returns [`Statistics::new`] with frequent events not timed.
    fn default() -> Statistics {
        Statistics::new(0)
    }
}

impl Statistics {
    /// Returns statistics that are all zero. One in `sample_period` of the frequent events is timed
    /// (0: none).
    pub fn new(sample_period: u32) -> Statistics {
        Statistics { counters: Counters::new(), latencies: Latencies::new(sample_period) }
    }

    /// Counts one event.
    pub fn count(&self, counter: Counter) {
        self.counters.count(counter);
    }
}
