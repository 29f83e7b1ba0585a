//! Trace formats: one file each, and [`open`] to read any of them. [`crate::write`] writes.
//!
//! Every reader streams. Its memory does not grow with the trace, except for the dictionary of a
//! trace with non-numeric ids. A damaged file is an error that names file, record and reason,
//! never a short trace.

mod columns;
mod csv;
mod detect;
mod extents;
mod ids;
mod input;
mod lines;
mod lirs;
mod lis;
mod msr;
mod native;
mod number;
mod op;
mod open;
mod options;
mod oracle_general;
pub mod parameters;
mod parquet_cells;
mod spaces;
mod spc;
mod text;

pub use columns::{ColumnSelector, Columns, Role};
pub use op::Ops;
pub use open::{is_read_once, open, open_reader, open_rec_lsns};
pub use options::{FORMATS, Format, FormatInfo, ReadOptions};
