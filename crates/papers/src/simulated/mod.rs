//! Figures whose cells are simulations, and what only they count.
//!
//! - [`SimFigure`]: such a figure, as a plan of policies × traces × sizes.
//! - [`Library`]: the traces of one experiment.
//! - [`KindHits`]: hits of leaves apart from those of other pages.
//! - [`Watched`]: a simulation whose victims are looked at.

mod figure;
mod kinds;
mod library;
mod victims;

pub use figure::{Setting, SimFigure, SimPlan};
pub use kinds::{Hits, KindHits, hits_by_kind};
pub use library::{Library, Record, TraceKind, generated};
pub use victims::{Victim, Watched};
