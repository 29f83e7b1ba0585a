//! The first-tier simulator.

mod cell;
mod future;
mod host;
mod recorded;
mod renumber;
mod table;

pub use cell::{Cell, Counts, SimOptions, Simulation, Stalled};
pub use future::Future;
pub use recorded::Recorded;
pub use renumber::Renumber;
