//! Salvage: saves the intact part of a store that is damaged, or was not closed.

mod gaps;
#[cfg(feature = "internals")]
mod others;
mod report;
mod run;
mod scan;
mod tree;

pub use report::{Loss, Lost, SalvageReport, SalvagedTree};
pub use run::SalvageError;
#[cfg_attr(test, allow(unused_imports, reason = "as above"))]
pub(crate) use run::names;
#[cfg(feature = "internals")]
pub use run::salvage;
