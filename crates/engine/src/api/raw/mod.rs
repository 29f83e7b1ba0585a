//! What users call with byte strings.
pub(crate) mod extract;
pub(crate) mod hash_entries;
pub mod hash_index;
mod hash_writes;
pub mod heap;
pub mod tree;
pub(crate) mod tree_in;
pub(crate) mod verbs;
pub(crate) mod write_verbs;

pub use extract::RawExtractIf;
pub use hash_entries::RawEntries;
pub use hash_index::RawHashIndex;
pub use heap::{RawHeap, RawRecords};
pub use tree::RawTree;
pub use tree_in::{RawSnapshotTree, RawTxnTree};
