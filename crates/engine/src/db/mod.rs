//! What users call: keys and values, options, statistics.

pub mod codec;
pub mod key;
mod key_tuples;
pub mod stats;
pub mod value;

pub use codec::DecodeError;
pub use key::Key;
pub use stats::{Latency, Stats};
pub use value::Value;
