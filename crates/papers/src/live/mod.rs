//!
//! - [`LiveFigure`]: such a figure.
//! - `watched`: how a figure's progress reaches a run's observer.
//! - [`stall`]: when a policy counts as stalled.
//! - `means`: means of repetitions as a table.
//! - `sizes`: policies over pool sizes, beside RANDOM.
//! - `threads`: numbers of threads that are tried.

mod live_figure;
pub(crate) mod means;
pub(crate) mod sizes;
pub mod stall;
pub(crate) mod threads;
pub mod watched;

pub use live_figure::{End, Job, LiveFigure, Loaded, broken_off, cores, lengths, percent, row};
