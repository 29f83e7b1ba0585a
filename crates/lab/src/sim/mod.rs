//! The first-tier simulator.

mod cell;
mod future;
mod host;
mod kinds;
mod renumber;
mod table;
mod victims;

pub use cell::{Cell, Counts, SimOptions, Simulation, Stalled};
pub use future::Future;
pub use kinds::{Hits, KindHits, hits_by_kind};
pub use renumber::Renumber;
pub use victims::{Victim, Watched};
