//! The formats of pages, without any I/O: the part common to every page, whatever structure it
//! belongs to, and the pages of the store itself.

pub mod batch;
pub mod buffer;
pub mod directory;
pub mod edit;
pub mod free_map;
pub mod header;
pub mod packed;
pub mod page_map;
mod racy;
pub mod record_body;
pub mod record_rows;
pub mod record_undo;
pub mod size;
pub mod superblock;
pub mod varint;
pub mod view;

pub use batch::{Batch, BatchEntry};
pub use buffer::PageBuffer;
pub use directory::{DIRECTORY_HEADER, Directory};
pub use header::{PAGE_HEADER, PAGES_MAX, PageHeader, PageType};
pub use page_map::{MapEntry, Spot};
pub use size::{PageSize, PageSizeError};
pub use view::{Scratch, View};
