//! What users call: keys and values, options, statistics.

mod any;
pub mod budget;
pub mod catalog;
mod census;
pub mod check;
pub mod choices;
pub mod codec;
pub mod dump;
pub mod error;
mod handle;
mod housekeeping;
pub mod key;
pub mod key_range;
mod key_tuples;
pub mod memory_limit;
pub mod modes;
pub mod options;
pub mod policy_choice;
pub mod raw_tree;
pub mod salvage;
pub mod stat_file;
pub mod stats;
pub mod store;
mod store_tree;
pub mod tree;
pub mod value;

pub use catalog::{Entry, Structure};
pub use choices::{
    ChoiceError, DirectIo, EvictionMode, LatchingMode, ReclamationMode, Submission, TranslationMode,
};
pub use codec::DecodeError;
pub use error::Error;
pub use handle::Db;
pub use key::Key;
pub use key_range::KeyRange;
pub use modes::{Combination, CombinationError};
pub use options::{Lab, Options, OptionsError, Plan};
pub use raw_tree::{RawRange, RawReader, RawTree};
pub use stat_file::{Freshness, Published, Publisher};
pub use stats::{Latency, Stats};
pub use store::Store;
pub use store_tree::StoreTree;
pub use tree::{Range, Tree};
pub use value::Value;
