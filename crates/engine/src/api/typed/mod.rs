//! What users call with keys and values that have types.
pub mod hash_index;
pub mod heap;
pub(crate) mod range;
pub mod tree;
pub(crate) mod tree_in;
pub(crate) mod verbs;
pub(crate) mod write_verbs;

pub use hash_index::{Entries, HashIndex};
pub use heap::{Heap, Records};
pub use range::{ExtractIf, Range};
pub use tree::Tree;
pub use tree_in::{SnapshotTree, TxnTree};
