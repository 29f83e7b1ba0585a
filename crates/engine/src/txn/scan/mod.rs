//! Scans in transactions and snapshots: of ranges of a tree, in batches that lock the entries read,
//! and of hash indexes and heaps.

mod batches;
mod range;
mod some;

pub use some::{OwnedEntry, ScanSome};
