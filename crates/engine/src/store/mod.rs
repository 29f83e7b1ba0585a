//! A store in one compiled combination: opening, the catalog of named structures, handles,
//! checkpoints, housekeeping, options and statistics.
//!
//! # Housekeeping
//!
//! Each store that is open for writing has its own thread. Once a second it lets the file grow
//! ahead of need, and publishes statistics. When the store has little to do, it merges leaves that
//! random inserts and removals left badly filled: [`Lab::background_merge`].
mod aborting;
pub mod catalog;
mod checkpoint_thread;
pub mod combinations;
pub(crate) mod counted;
mod dropping;
pub mod entry;
pub mod error;
pub mod handle;
mod housekeeping;
pub(crate) mod member;
mod member_txn;
pub mod merging;
mod named;
pub(crate) mod opened;
pub mod opening;
pub mod options;
pub(crate) mod own_txn;
#[cfg(not(test))]
pub(crate) mod range;
#[cfg(feature = "serde")]
pub mod serde_value;
mod snapshot_trees;
pub mod stats;
// `Store` has a file of its own name, like everything else.
#[allow(clippy::module_inception)]
pub mod store;
#[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
pub mod store_txn;
mod structures;
mod types;

pub use combinations::{Combination, CombinationError};
pub use entry::{Entry, Structure, TypeNames};
pub use error::{BackupError, Error, ErrorKind, LabError};
pub use handle::{StoreHandle, StoreHashIndex, StoreHeap, StoreTree};
pub use opening::Builder;
pub use options::{
    DirectIo, Lab, LatchingMode, Options, OptionsError, OwnPolicies, Plan, RecoveryWatch,
    SecondTierOptions, TranslationMode,
};

pub use crate::pool::{EvictionMode, HitDelivery, Reclamation, SyncMode};
#[cfg(feature = "serde")]
pub use serde_value::Postcard;
pub use stats::{Freshness, Latency, Published, Publisher, Stats};
pub use store::Store;
pub use store_txn::StoreTxn;
