//! Descriptions of the command line: shell completions, manual pages, pages of the
//! documentation.

pub mod completions;
pub mod man;
mod markdown;
pub(crate) mod reference;
