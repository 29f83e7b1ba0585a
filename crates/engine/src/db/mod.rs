//! What users call: keys and values, options, statistics.

pub mod budget;
pub mod check;
pub mod choices;
pub mod codec;
pub mod key;
pub mod key_range;
mod key_tuples;
pub mod memory_limit;
pub mod modes;
pub mod options;
pub mod policy_choice;
pub mod stat_file;
pub mod stats;
pub mod value;

pub use choices::{
    ChoiceError, DirectIo, EvictionMode, LatchingMode, ReclamationMode, Submission, TranslationMode,
};
pub use codec::DecodeError;
pub use key::Key;
pub use key_range::KeyRange;
pub use modes::{Combination, CombinationError};
pub use options::{Lab, Options, OptionsError, Plan};
pub use stat_file::{Freshness, Published, Publisher};
pub use stats::{Latency, Stats};
pub use value::Value;
