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
    /// Like [`Statistics::new`], with frequent events not timed.
    fn default() -> Statistics {
        Statistics::new(0)
    }
}

impl Statistics {
    /// All at zero; one in `sample_period` of what happens often is timed (0: none).
    pub fn new(sample_period: u32) -> Statistics {
        Statistics { counters: Counters::new(), latencies: Latencies::new(sample_period) }
    }

    /// Counts one event.
    pub fn count(&self, counter: Counter) {
        self.counters.count(counter);
    }
}
