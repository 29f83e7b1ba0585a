//! What users call with keys and values that have types.
pub mod hash_index;
pub mod heap;
pub(crate) mod range;
#[cfg(feature = "serde")]
pub mod serde_value;
pub mod tree;
pub(crate) mod tree_in;
pub(crate) mod verbs;
pub(crate) mod write_verbs;

pub use hash_index::{Entries, HashIndex};
pub use heap::{Heap, Records};
pub use range::{ExtractIf, Range};
#[cfg(feature = "serde")]
pub use serde_value::Postcard;
pub use tree::Tree;
pub use tree_in::{SnapshotTree, TxnTree};
