//! Figures whose cells are live runs of the engine.
//!
//! - [`LiveFigure`]: a figure of live runs.
//! - `watched`: a guide to live figures, and the bridge from a run's observer to an
//!   experiment's.
//! - [`stall`]: definition of a stalled policy.
//! - `means`: means of repetitions as a table.
//! - `sizes`: policies over pool sizes, beside RANDOM.
//! - `threads`: the numbers of threads to run.

mod live_figure;
pub(crate) mod means;
pub(crate) mod sizes;
pub mod stall;
pub(crate) mod threads;
pub mod watched;

pub use live_figure::{End, Job, LiveFigure, Loaded, broken_off, cores, lengths, percent, row};
