//! What every page has in common, whatever structure it belongs to.

pub mod header;
pub mod view;

pub use header::{PAGE_HEADER, PageHeader, PageType};
pub use view::View;
