//! The command line, described: for shells, as manual pages, and as pages of the documentation.

pub(crate) mod completions;
pub(crate) mod man;
mod markdown;
pub(crate) mod reference;
