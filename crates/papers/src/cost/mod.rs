//! The cost of a policy by itself: its hits, its victims, its bytes (gilbert 1.3).
//!
//! - [`Meters`]: a meter for each policy by its name.
//! - [`Meter`]: a policy over a full pool that receives the hits and the misses of one sequence of
//!   references, both timed apart.
//! - [`References`]: that sequence.

mod meter;
mod meters;
mod references;

pub use meter::{CostMeter, Meter, Tally, fixed_bytes};
pub use meters::Meters;
pub use references::References;
