//! Counters and sampled latencies, per thread slot.
pub mod counters;
pub mod histogram;
