//! Writing traces: text, CSV, oracleGeneral and Millpond's own Parquet.
//!
//! A sink writes to a temporary file beside its target and renames it when the trace is complete,
//! so an incomplete file never has the final name.

mod create;
mod csv;
mod native;
mod oracle_general;
mod output;
mod sink;
mod text;
mod whole;

pub use create::{WriteOptions, create};
pub use sink::{Sink, convert};
pub use whole::{WholeFile, is_same_file};
