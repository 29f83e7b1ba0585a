//! What users call: a store ([`Db`]), its trees, keys and values, options, statistics.
//!
//! ```text
//! Db, RawTree, Tree<K, V>, …  enums over the compiled combinations, typed keys and values on top
//! Store<M>, StoreTree<M>, …   one combination: what measurements use
//! catalog, housekeeping       names of structures; what is done once a second
//! modes                       which combinations there are
//! options, budget             what the user asked for, and how many frames that gives
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
//! # Housekeeping
//!
//! Each store that is open for writing has a thread of its own. Once a second it lets the file grow
//! ahead of need, publishes statistics, and, when the store has little to do, merges leaves that
//! random inserts and removals left badly filled: [`Options::background_merge`].
//!
//! The modules with an enum over all combinations hold the tree's code ten times over; unit tests
//! have no use for them, and are built without.

#[cfg(not(test))]
mod any;
pub mod backup;
mod backup_file;
pub mod budget;
pub mod catalog;
mod census;
pub mod check;
mod checkpointing;
pub mod choices;
pub mod codec;
pub mod combinations;
pub mod dump;
pub mod error;
#[cfg(not(test))]
mod handle;
#[cfg(not(test))]
pub mod hash_index;
#[cfg(not(test))]
pub mod heap;
mod housekeeping;
pub mod key;
pub mod key_range;
mod key_tuples;
pub mod log_file;
mod log_salvage;
pub mod log_view;
pub mod memory_limit;
mod merging;
pub mod options;
pub mod own_policy;
pub mod policy_choice;
#[cfg(not(test))]
pub mod raw_hash_index;
#[cfg(not(test))]
pub mod raw_heap;
#[cfg(not(test))]
pub mod raw_tree;
#[cfg(test)]
mod read_path;
pub mod recovery_watch;
pub mod salvage;
#[cfg(not(test))]
mod scan_count;
#[cfg(feature = "serde")]
pub mod serde_value;
pub mod shrinking;
#[cfg(not(test))]
pub mod snapshot;
pub mod stat_file;
pub mod stats;
pub mod store;
mod store_handle;
#[cfg(not(test))]
mod store_range;
#[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
pub mod store_txn;
#[cfg(not(test))]
pub mod tree;
#[cfg(not(test))]
pub mod txn;
mod undoing;
pub mod value;

pub use backup::{Backup, BackupError, BackupPhase, BackupProgress};
pub use catalog::{Entry, Structure, TypeNames};
pub use choices::{
    ChoiceError, DirectIo, EvictionMode, HitDelivery, LatchingMode, ReclamationMode, Submission,
    TranslationMode,
};
pub use codec::DecodeError;
pub use combinations::{Combination, CombinationError};
pub use error::Error;
#[cfg(not(test))]
pub use handle::Db;
#[cfg(not(test))]
pub use hash_index::{Entries, HashIndex};
#[cfg(not(test))]
pub use heap::{Heap, Records};
pub use key::Key;
pub use key_range::KeyRange;
pub use log_view::{LogRecord, Recovery, Salvaged};
pub use options::{Lab, Options, OptionsError, Plan};
pub use own_policy::OwnPolicies;
#[cfg(not(test))]
pub use raw_hash_index::{RawEntries, RawHashIndex};
#[cfg(not(test))]
pub use raw_heap::{RawHeap, RawRecords};
#[cfg(not(test))]
pub use raw_tree::{RawRange, RawReader, RawTree};
pub use recovery_watch::RecoveryWatch;
#[cfg(feature = "serde")]
pub use serde_value::Postcard;
pub use shrinking::{ShrinkProgress, ShrinkWatch, Shrunk};
#[cfg(not(test))]
pub use snapshot::Snapshot;
pub use stat_file::{Freshness, Published, Publisher};
pub use stats::{Latency, Stats};
pub use store::Store;
pub use store_handle::{StoreHandle, StoreHashIndex, StoreHeap, StoreTree};
pub use store_txn::StoreTxn;
#[cfg(not(test))]
pub use tree::{Range, Tree};
#[cfg(not(test))]
pub use txn::{TransactOptions, Txn};
pub use value::Value;

pub use crate::recovery::{
    LogDamage, LostRecords, Obstacle, Phase, Progress, StrayPage, StrayPages,
};
pub use crate::txn::{Durability, Isolation, Savepoint, TxnError, TxnOptions};
