//! The command line, described: for shells, as manual pages, and as pages of the documentation.

pub mod completions;
pub mod man;
mod markdown;
pub(crate) mod reference;
