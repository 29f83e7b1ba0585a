//! What users call: a store ([`Db`]), its trees, transactions and snapshots.
//!
//! ```text
//! Db, RawTree, Tree<K, V>, …  enums over the compiled combinations, typed keys and values on top
//! Store<M>, StoreTree<M>, …   one combination (`store`): what measurements use
//! ```
//!
//! # Three ways to read a value
//!
//! ```text
//! get        owned and decoded
//! get_with   a closure sees a copy, on the stack up to 1 KiB: writes nothing that is shared
//! read       a closure sees the value in its page, which is latched meanwhile: copies nothing
//! ```
//! What was read optimistically may have been half changed, so nobody sees it before it is
//! validated, and then it is a copy. [`RawTree::read`] latches the page in shared mode instead:
//! better for a look at a large value, worse for keys that many threads want at once. Its closure
//! may use the store; whatever would have to wait for the page fails, with
//! [`PoolError::Held`](crate::pool::PoolError::Held).
//!
//! The modules with an enum over all combinations hold the tree's code ten times over; unit tests
//! have no use for them, and are built without.
mod any;
pub mod db;
pub mod hash_index;
pub mod heap;
pub mod raw_hash_index;
pub mod raw_heap;
pub mod raw_tree;
mod scan_count;
pub mod snapshot;
pub mod tree;
pub mod txn;

pub use db::Db;
pub use hash_index::{Entries, HashIndex};
pub use heap::{Heap, Records};
pub use raw_hash_index::{RawEntries, RawHashIndex};
pub use raw_heap::{RawHeap, RawRecords};
pub use raw_tree::{RawRange, RawReader, RawTree};
pub use snapshot::Snapshot;
pub use tree::{Range, Tree};
pub use txn::{TransactOptions, Txn};
