//! Types of keys and values, as the catalog records them.
pub(in crate::store) mod recorded;
#[cfg(feature = "serde")]
pub(in crate::store) mod shape;
