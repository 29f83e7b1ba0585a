//! Counters and timings of the engine: counters, gauges, latencies and waits, each thread's in a
//! row of its own.
//!
//! A room that counts owns [`Statistics`]; what a store reports is the sum of those of all rooms.
pub mod counters;
pub mod histogram;
mod statistics;
pub mod thread_slot;
mod waits;

pub use statistics::Statistics;
pub use waits::{Wait, Waiting};
