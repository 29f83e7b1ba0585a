//! Values of any type that serde can serialise, in postcard's format: with the feature `serde`.
//!
//! postcard writes fields one after the other, without their names. That is compact, but the
//! reader's type must have the same fields in the same order as the writer's. So a tree records the
//! shape of the type that it was created with (`types/shape.rs`).

use std::any::type_name;
use std::ops::Deref;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::encoding::codec::{DecodeError, Sink};
use crate::encoding::value::{DecodeValue, EncodeValue, ValueLike};
use crate::store::error::Error;
use crate::store::types::shape::shape_of;

/// A value of a type with serde's traits, and its encoding. It is encoded when it is created,
/// because that may fail, and read by dereferencing.
///
/// A tree records the type's name, the names and types of its fields, and the names of the variants
/// of its enums. It does not open with a type of another shape ([`Error::OtherType`]);
/// `docs/guide.md` explains how values evolve.
///
/// ```
/// use millpond::{Db, Error, Options, Postcard};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Bird {
///     name: String,
///     eggs: Vec<u32>,
/// }
///
/// # fn main() -> Result<(), Error> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let birds = db.tree::<u64, Postcard<Bird>>("birds")?;
/// let heron = Bird { name: "heron".to_string(), eggs: vec![4, 5] };
/// birds.put(&7, &Postcard::new(heron)?)?;
/// let heron = birds.get(&7)?.unwrap();
/// assert_eq!((&*heron.name, heron.eggs.len()), ("heron", 2));
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Postcard<T> {
    value: T,
    bytes: Vec<u8>,
}

impl<T: Serialize> Postcard<T> {
    /// Encodes a value.
    ///
    /// # Errors
    /// [`Error::Encode`]: the type's `Serialize` refuses this value, or needs a feature that
    /// postcard lacks, such as sequences of unknown length (`#[serde(flatten)]`).
    pub fn new(value: T) -> Result<Postcard<T>, Error> {
        match postcard::to_allocvec(&value) {
            Ok(bytes) => Ok(Postcard { value, bytes }),
            Err(error) => {
                Err(Error::Encode { type_name: type_name::<T>(), reason: error.to_string() })
            }
        }
    }
}

impl<T> Postcard<T> {
    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T> Deref for Postcard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> EncodeValue for Postcard<T> {
    fn encode(&self, out: &mut impl Sink) {
        out.put(&self.bytes);
    }

    fn with_encoded<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        then(&self.bytes)
    }
}

impl<'a, T: DeserializeOwned> DecodeValue<'a> for Postcard<T> {
    fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let custom = |error| DecodeError::custom(format!("no {}: {error}", type_name::<T>()));
        let (value, rest) = postcard::take_from_bytes(bytes).map_err(custom)?;
        match rest.len() {
            0 => Ok(Postcard { value, bytes: bytes.to_vec() }),
            left => Err(DecodeError::Trailing { at: bytes.len() - left, left }),
        }
    }

    fn type_name() -> Option<String> {
        Some(format!("postcard<{}>", shape_of::<T>()))
    }
}

impl<T> ValueLike<Postcard<T>> for Postcard<T> {}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
    enum Shape {
        Dot,
        Line { from: (i32, i32), to: (i32, i32) },
        Named(String, Vec<Option<u64>>),
    }

    #[derive(Serialize)]
    struct Flat {
        #[serde(flatten)]
        more: HashMap<String, u32>,
    }

    #[test]
    fn what_serde_serialises_comes_back() {
        let line = Shape::Line { from: (-1, 2), to: (i32::MAX, 0) };
        for shape in [Shape::Dot, line, Shape::Named("ä".to_string(), vec![None, Some(9)])] {
            let value = Postcard::new(shape.clone()).unwrap();
            let bytes = value.to_value_bytes();
            let back = Postcard::<Shape>::decode(&bytes).unwrap();
            assert_eq!(back, value);
            assert_eq!((back.to_value_bytes(), back.into_inner()), (bytes.clone(), shape));
            // Also in a tuple, where it does not know its end.
            let pair = (value.clone(), 7u8);
            let back = <(Postcard<Shape>, u8)>::decode(&pair.to_value_bytes()).unwrap();
            assert_eq!(back, pair);
        }
    }

    #[test]
    fn what_it_cannot_encode_or_decode_is_an_error_that_says_why() {
        let error = Postcard::new(Flat { more: HashMap::new() }).err().unwrap().to_string();
        assert!(error.contains("Flat") && error.contains("length"), "{error}");
        let mut bytes = Postcard::new(Shape::Dot).unwrap().to_value_bytes();
        bytes.push(0);
        let trailing = Postcard::<Shape>::decode(&bytes).unwrap_err();
        assert_eq!(trailing, DecodeError::Trailing { at: 1, left: 1 });
        let error = Postcard::<Shape>::decode(&[9]).unwrap_err();
        assert!(error.to_string().contains("Shape"), "{error}");
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..random.usize(..20)).map(|_| random.u8(..)).collect();
            let _ = Postcard::<Shape>::decode(&bytes);
        }
    }
}
