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
pub mod budget;
pub mod catalog;
mod census;
pub mod check;
pub mod choices;
pub mod codec;
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
pub mod memory_limit;
mod merging;
pub mod modes;
pub mod options;
pub mod policy_choice;
#[cfg(not(test))]
pub mod raw_hash_index;
#[cfg(not(test))]
pub mod raw_heap;
#[cfg(not(test))]
pub mod raw_tree;
pub mod salvage;
#[cfg(not(test))]
mod scan_count;
pub mod stat_file;
pub mod stats;
pub mod store;
mod store_handle;
#[cfg(not(test))]
pub mod tree;
pub mod value;

pub use catalog::{Entry, Structure};
pub use choices::{
    ChoiceError, DirectIo, EvictionMode, LatchingMode, ReclamationMode, Submission, TranslationMode,
};
pub use codec::DecodeError;
pub use error::Error;
#[cfg(not(test))]
pub use handle::Db;
#[cfg(not(test))]
pub use hash_index::{Entries, HashIndex};
#[cfg(not(test))]
pub use heap::{Heap, Records};
pub use key::Key;
pub use key_range::KeyRange;
pub use modes::{Combination, CombinationError};
pub use options::{Lab, Options, OptionsError, Plan};
#[cfg(not(test))]
pub use raw_hash_index::{RawEntries, RawHashIndex};
#[cfg(not(test))]
pub use raw_heap::{RawHeap, RawRecords};
#[cfg(not(test))]
pub use raw_tree::{RawRange, RawReader, RawTree};
pub use stat_file::{Freshness, Published, Publisher};
pub use stats::{Latency, Stats};
pub use store::Store;
pub use store_handle::{StoreHandle, StoreHashIndex, StoreHeap, StoreTree};
#[cfg(not(test))]
pub use tree::{Range, Tree};
pub use value::Value;
