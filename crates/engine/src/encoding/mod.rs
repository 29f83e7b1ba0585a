//! Encoding of typed keys and values as bytes: order-preserving keys, ranges of keys, values.
pub mod codec;
pub mod key;
mod key_numbers;
pub mod key_range;
mod key_strings;
mod key_tuples;
pub mod value;
mod value_tuples;

pub use codec::DecodeError;
pub use key::Key;
pub use key_range::{KeyBounds, KeyRange};
pub use value::Value;
