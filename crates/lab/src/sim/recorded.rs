//! A trace in memory.

use std::sync::OnceLock;

use millpond_workload::trace::Batch;

use super::{Future, Renumber};

/// A trace in memory, with pages numbered without gaps.
pub struct Recorded {
    /// Name of the trace.
    pub name: String,
    /// Repetition that the trace belongs to.
    pub repetition: u32,
    /// The references of the trace.
    pub batch: Batch,
    /// Number of distinct pages.
    pub distinct: u64,
    future: OnceLock<Future>,
}

impl Recorded {
    /// Renumbers the trace's pages.
    pub fn of(name: &str, repetition: u32, mut batch: Batch) -> Recorded {
        let mut renumber = Renumber::new();
        renumber.apply(&mut batch);
        let distinct = renumber.distinct();
        let future = OnceLock::new();
        Recorded { name: name.to_string(), repetition, batch, distinct, future }
    }

    /// Returns this percentage of the trace's pages in frames, at least one.
    pub fn frames(&self, percent: f64) -> u32 {
        (self.distinct as f64 * percent / 100.0).ceil().clamp(1.0, f64::from(u32::MAX)) as u32
    }

    /// Returns the future of the trace, computed once.
    pub fn future(&self) -> &Future {
        self.future.get_or_init(|| Future::of(&self.batch, self.distinct))
    }
}
