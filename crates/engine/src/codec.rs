//! Encodings of keys and values: the traits behind [`Key`](crate::Key) and
//! [`Value`](crate::Value), for types of your own.
pub use crate::encoding::KeyBounds;
pub use crate::encoding::codec::{Reader, Sink};
pub use crate::encoding::key::{DecodeKey, EncodeKey, KeyLike, PartLike, PrefixOf};
pub use crate::encoding::value::{DecodeValue, EncodeValue, ValueLike};
