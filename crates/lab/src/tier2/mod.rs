//! The second-tier simulator: one cache below a first tier, under two models.

mod bound;
mod cell;
mod counts;
mod future;
mod host;

pub use bound::{BoundOptions, LowerBound, lower_bound};
pub use cell::{Tier2Cell, Tier2Options, Tier2Simulation};
pub use counts::{Model, Tier2Counts};
pub use future::Tier2Future;
