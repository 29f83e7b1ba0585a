//! Figures whose cells are simulations, with their special counts.
//!
//! - [`SimFigure`]: a simulated figure, as a plan of policies × traces × sizes.
//! - [`Library`]: the traces of one experiment.
//! - [`KindHits`]: hits of leaves, separate from those of other pages.
//! - [`Watched`]: a simulation that examines its victims.

mod figure;
mod kinds;
mod library;
mod victims;

pub use figure::{Setting, SimFigure, SimPlan};
pub use kinds::{Hits, KindHits, hits_by_kind};
pub use library::{Library, Record, TraceKind, generated};
pub use victims::{Victim, Watched};
