//! Cost of log, locks, pool and a second thread, judged against bars.
//!
//! *Neither* is the same workload with one thread on the pool's trees, without log and locks. Each
//! repetition loads and runs every arm once, in an order dealt for it; ratios are taken within
//! repetitions.
//!
//! - `arms`: which engines run which workload, with how many threads.
//! - `bars`: which ratios are judged, and how.
//! - `cost`: what an arm took.
//! - `run`: the repetitions.

mod arms;
mod bars;
mod cost;
mod run;

pub use arms::{ARMS, Arm, Load, Part};
pub use bars::{Bar, Judged, bars, judge};
pub use cost::{Cost, Repetition};
pub use run::{Overheads, overheads};
