//! Cost of log, locks, pool and a second thread, judged against bars.
//!
//! An *arm* is one engine variant under one workload. The arm *neither* runs the same workload with
//! one thread on the pool's trees, without log and locks. Each repetition loads and runs every arm
//! once, in a dealt order. Ratios are taken within repetitions.
//!
//! - `arms`: engines, with their workloads and numbers of threads.
//! - `bars`: judged ratios and their limits.
//! - `cost`: the CPU time of an arm.
//! - `run`: the repetitions.

mod arms;
mod bars;
mod cost;
mod run;

pub use arms::{ARMS, Arm, Load, Part};
pub use bars::{Bar, Judged, bars, judge};
pub use cost::{Cost, Repetition};
pub use run::{Overheads, overheads};
