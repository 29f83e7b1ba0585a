//! What users call: keys and values, options, statistics.

pub mod stats;

pub use stats::{Latency, Stats};
