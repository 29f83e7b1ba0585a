//! Trees: the handle, its verbs and their iterators.
pub(crate) mod byte_range;
pub(crate) mod cursor;
pub(crate) mod extract;
pub(crate) mod range;
pub(crate) mod reader;
mod reads;
#[allow(clippy::module_inception, reason = "the folder's noun")]
pub(crate) mod tree;
mod txn_range;
mod writes;

pub use cursor::Cursor;
pub use extract::ExtractIf;
pub use range::Range;
pub use reader::ValueReader;
pub use tree::{RawTree, Tree};
