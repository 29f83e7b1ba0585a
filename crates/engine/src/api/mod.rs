//! The public API: a store ([`Db`]), its structures, transactions and snapshots.
//!
//! ```text
//! tree, hash_index, heap    one handle each: typed verbs, thin and generic
//! context                   the calls on byte strings, once per context: compiled in this crate
//! ```
//!
//! # Three ways to read a value
//!
//! ```text
//! get        owned and decoded
//! get_with   a closure sees a copy, on the stack up to 1 KiB: writes nothing that is shared
//! read       a closure sees the value in its page, which is latched meanwhile: copies nothing
//! ```
//! An optimistic read may see a half-changed value, so the caller gets a copy only after the value
//! is validated. [`Tree::read`] latches the page in shared mode instead: better for a look at a
//! large value, worse for keys that many threads want at once. Its closure may use the store; a
//! call that would have to wait for the page fails with
//! [`PoolError::Held`](crate::pool::PoolError::Held).
//!
//! Unit tests have no use for these modules, and are built without them.
mod check;
mod context;
pub mod db;
mod hash_index;
mod heap;
mod pending_commit;
mod scan;
pub mod snapshot;
mod strategy;
mod structures;
mod transact;
mod tree;
pub mod txn;

pub use check::{CheckProgress, CheckReport, CheckWatch, CheckedStructure};
pub use context::{Autocommit, Reads, Writes};
pub use db::Db;
pub use hash_index::{Entries, HashIndex};
pub use heap::{Heap, Records};
pub use pending_commit::PendingCommit;
pub use snapshot::Snapshot;
pub use transact::TransactOptions;
pub use tree::{Cursor, ExtractIf, Range, RawTree, Tree, ValueReader};
pub use txn::Txn;
