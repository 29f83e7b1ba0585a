//! Saving what is intact in a store that is damaged, or was not closed.

mod gaps;
mod others;
mod report;
mod run;
mod scan;
mod tree;

pub use report::{Loss, Lost, SalvageReport, SalvagedTree};
#[cfg_attr(test, allow(unused_imports, reason = "as above"))]
pub(crate) use run::names;
pub use run::{SalvageError, salvage};
