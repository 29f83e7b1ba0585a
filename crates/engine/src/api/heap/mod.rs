//! Heaps: the handle, its verbs and their iterators.
mod calls;
#[allow(clippy::module_inception, reason = "the folder's noun")]
mod heap;
mod records;

pub use heap::Heap;
pub use records::Records;
