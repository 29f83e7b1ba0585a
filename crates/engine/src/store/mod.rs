//! A store in one compiled combination: opening, the catalog of named structures, handles,
//! checkpoints, housekeeping, options and statistics.
//!
//! # Housekeeping
//!
//! Each store that is open for writing has a thread of its own. Once a second it lets the file grow
//! ahead of need, publishes statistics, and, when the store has little to do, merges leaves that
//! random inserts and removals left badly filled: [`Options::background_merge`].
pub mod backup_error;
pub mod budget;
pub mod catalog;
mod census;
pub(crate) mod checkpointer;
pub mod choices;
pub mod combinations;
pub mod error;
pub mod handle;
mod housekeeping;
pub mod lab_error;
pub mod log_open;
mod log_salvage;
pub mod memory_limit;
pub(crate) mod merging;
pub mod options;
pub mod own_policy;
pub mod policy_choice;
#[cfg(not(test))]
pub(crate) mod range;
#[cfg(test)]
mod read_path;
pub mod recovery_watch;
pub mod stat_file;
pub mod stats;
// `Store` has a file of its own name, as everything else has.
#[allow(clippy::module_inception)]
pub mod store;
#[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
pub mod store_txn;
mod undo;

pub use backup_error::BackupError;
pub use catalog::{Entry, Structure, TypeNames};
pub use choices::{
    ChoiceError, DirectIo, EvictionMode, HitDelivery, LatchingMode, ReclamationMode, Submission,
    TranslationMode,
};
pub use combinations::{Combination, CombinationError};
pub use error::Error;
pub use handle::{StoreHandle, StoreHashIndex, StoreHeap, StoreTree};
pub use lab_error::LabError;
pub use options::{Lab, Options, OptionsError, Plan};
pub use own_policy::OwnPolicies;
pub use recovery_watch::RecoveryWatch;
pub use stat_file::{Freshness, Published, Publisher};
pub use stats::{Latency, Stats};
pub use store::Store;
pub use store_txn::StoreTxn;
