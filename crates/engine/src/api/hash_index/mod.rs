//! Hash indexes: the handle, its verbs and their iterators.
mod calls;
mod entries;
#[allow(clippy::module_inception, reason = "the folder's noun")]
mod hash_index;
mod writes;

pub use entries::Entries;
pub use hash_index::HashIndex;
