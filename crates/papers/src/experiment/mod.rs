//! Framework for a paper's experiment: figures, each a set of cells.
//!
//! An experiment is long, and may be stopped, lack disk space or run on a slow machine. So a figure
//! lists its cells and their needs beforehand, and the framework does the rest. It refuses cells
//! that do not fit. It runs one repetition over all policies before the next, so that a slow hour
//! disturbs all of them. It stores every cell as soon as it is finished. If time is short, it
//! leaves out the last repetitions and reports that. Finally it writes rows and one page.
//!
//! A figure implements [`Figure`]. The framework knows neither policies nor the engine: only the
//! figure knows how to simulate or run a cell.

mod budget;
mod cell;
mod directory;
mod error;
mod figure;
mod grid;
mod journal;
mod need;
mod options;
mod plan;
mod run;
mod scale;

pub use cell::{Cell, Fields};
pub use directory::{Ran, judge};
pub use error::ExperimentError;
pub use figure::{About, Experiment, Figure, FigureError, Unwatched, Watch};
pub use grid::Grid;
pub use need::{Need, Room, Short};
pub use options::Options;
pub use plan::{Plan, PlanError};
pub use run::run;
pub use scale::Scale;
