//! Counters and timings of the engine: counters, gauges, latencies and waits, in a row per thread.
//!
//! Each room has its own [`Statistics`]; a store reports the sum over all rooms.
pub mod counters;
pub mod histogram;
mod statistics;
pub mod thread_slot;
mod waits;

pub use statistics::Statistics;
pub use waits::{Wait, Waiting};
