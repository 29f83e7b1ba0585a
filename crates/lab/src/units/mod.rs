//! Units of work: a sweep cut into parts that any machine can run, with a file for each part.
//!
//! A unit has one trace and one policy, at up to [`CELLS_MAX`] sizes and seeds. Its file is named
//! by a hash of all inputs of its rows, and its content depends on nothing else. Job arrays,
//! clusters and a single machine therefore leave the same files with the same bytes, and finished
//! units need not run again.

mod common;
mod content;
mod estimate;
mod local;
mod unit;

pub use common::common_settings;
pub use content::{content_hash, sources};
pub use local::{Event, Local, Outcome, run_local};
pub use unit::{CELLS_MAX, Settings, TraceFile, Unit, UnitError, UnitRun, table_of, units};
