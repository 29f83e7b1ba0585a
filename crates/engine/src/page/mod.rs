//! What every page has in common, whatever structure it belongs to.

pub mod header;

pub use header::{PAGE_HEADER, PageHeader, PageType};
