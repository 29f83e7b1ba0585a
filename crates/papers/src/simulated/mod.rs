//! What the papers simulated, as experiments.

pub mod li;
pub mod luan;
mod sim_figure;
mod traces;
pub mod watt;

pub use sim_figure::{Setting, SimFigure, SimPlan};
pub use traces::{Library, Record, Recorded, TraceKind, generated};
