//! The first-tier simulator.

mod cell;
mod future;
mod host;
mod renumber;
mod table;

pub use cell::{Cell, Counts, SimOptions, Simulation, Stalled};
pub use future::Future;
pub use renumber::Renumber;
