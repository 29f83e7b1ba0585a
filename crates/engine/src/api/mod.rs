//! What users call: a store ([`Db`]), its trees, transactions and snapshots.
//!
//! ```text
//! typed    Tree<K, V>, TxnTree<K, V>, SnapshotTree<K, V>: keys and values with types, thin
//! raw      RawTree, RawTxnTree, RawSnapshotTree: byte strings
//! place    the calls on byte strings, where a tree is read and written: compiled in this crate
//! store    Store<M>, StoreTree<M>, …: one compiled combination, what measurements use
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
//! may use the store; what would have to wait for the page fails, with
//! [`PoolError::Held`](crate::pool::PoolError::Held).
//!
//! `any` has the enums over the combinations that users' policies lead to. So these modules hold
//! the code of a tree four times over; unit tests have no use for them, and are built without.
mod check;
mod cursor;
pub mod db;
mod place;
mod raw;
pub mod snapshot;
mod strategy;
mod structures;
mod transact;
pub mod txn;
mod typed;

pub use check::{CheckProgress, CheckReport, CheckWatch, CheckedStructure};
pub use cursor::Cursor;
pub use db::Db;
pub use place::{Alone, InSnapshot, InTxn, RawEntry, RawRange, RawReader};
pub use raw::{
    RawEntries, RawExtractIf, RawHashIndex, RawHeap, RawRecords, RawSnapshotTree, RawTree,
    RawTxnTree,
};
pub use snapshot::Snapshot;
pub use transact::TransactOptions;
pub use txn::Txn;
pub use typed::{Entries, ExtractIf, HashIndex, Heap, Range, Records, SnapshotTree, Tree, TxnTree};
