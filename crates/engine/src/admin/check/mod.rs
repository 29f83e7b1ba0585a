//! Checks of a store file, page by page, without changing it.

mod fault;
mod reader;
mod report;
mod rows;
mod run;
mod structure;
mod sweep;
mod walk;

pub use crate::store::entry::Structure;
pub use fault::Fault;
pub use report::{PageCounts, Problem, Report, StructureReport};
pub use rows::{Rows, rows_in_log};
pub use run::{CheckError, CheckOptions, Progress, check, check_store};
pub(crate) use structure::owns;
pub use structure::{CATALOG, Decode, Named, Roots};

pub(crate) use reader::{BATCH, PageReader};
pub(crate) use walk::Bits;
