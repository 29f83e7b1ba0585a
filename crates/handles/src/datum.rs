//! Values of types that are known only at run time.

use crate::type_name::TypeName;

/// A value in the form that dynamically typed languages have.
///
/// ```
/// use millpond_handles::{Datum, KeyType};
/// let key: KeyType = "(String, u32)".parse().unwrap();
/// let bolts = Datum::Tuple(vec![Datum::Str("bolts".into()), Datum::Int(8)]);
/// let bytes = key.encode(&bolts).unwrap();
/// assert_eq!(key.decode(&bytes), Ok(bolts));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub enum Datum {
    /// Nothing: `None` of an `Option`, or `()`.
    None,
    /// A `bool`.
    Bool(bool),
    /// Any integer type.
    Int(i128),
    /// A `u128` above the largest `i128`.
    Uint(u128),
    /// An `f32` or `f64`.
    Float(f64),
    /// A `String` or `char`.
    Str(String),
    /// A `Vec<u8>` or `[u8; N]`.
    Bytes(Vec<u8>),
    /// A tuple.
    Tuple(Vec<Datum>),
}

/// Reason that a value does not fit a type.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatumError {
    /// The value has another type.
    #[error("{found} is no {wanted}")]
    OtherType {
        /// The requested type.
        wanted: String,
        /// Type of the value.
        found: &'static str,
    },
    /// The number is too large, or too small.
    #[error("{number} does not fit into {wanted}")]
    OutOfRange {
        /// The requested type.
        wanted: String,
        /// The number.
        number: String,
    },
    /// The tuple or array has another length.
    #[error("{found} elements are not those of {wanted}, which has {length}")]
    Length {
        /// The requested type.
        wanted: String,
        /// Number of elements of the type.
        length: usize,
        /// Number of elements of the value.
        found: usize,
    },
    /// The bytes do not decode as the type.
    #[error(transparent)]
    Decode(#[from] millpond::error::DecodeError),
}

impl Datum {
    /// Returns the type's name for messages.
    fn what(&self) -> &'static str {
        match self {
            Datum::None => "nothing",
            Datum::Bool(_) => "a truth value",
            Datum::Int(_) | Datum::Uint(_) => "an integer",
            Datum::Float(_) => "a floating-point number",
            Datum::Str(_) => "a string",
            Datum::Bytes(_) => "a byte string",
            Datum::Tuple(_) => "a tuple",
        }
    }

    pub(crate) fn is_no(&self, wanted: &TypeName) -> DatumError {
        DatumError::OtherType { wanted: wanted.to_string(), found: self.what() }
    }

    /// Converts the value to an integer.
    pub(crate) fn int<T>(&self, wanted: &TypeName) -> Result<T, DatumError>
    where
        T: TryFrom<i128> + TryFrom<u128>,
    {
        let out_of_range =
            |number: String| DatumError::OutOfRange { wanted: wanted.to_string(), number };
        match *self {
            Datum::Int(number) => T::try_from(number).map_err(|_| out_of_range(number.to_string())),
            Datum::Uint(number) => {
                T::try_from(number).map_err(|_| out_of_range(number.to_string()))
            }
            _ => Err(self.is_no(wanted)),
        }
    }

    /// Converts the value to a float; accepts integers that a float represents exactly.
    pub(crate) fn float(&self, wanted: &TypeName) -> Result<f64, DatumError> {
        match *self {
            Datum::Float(number) => Ok(number),
            Datum::Int(number) if number.unsigned_abs() <= 1 << 53 => Ok(number as f64),
            Datum::Int(number) => {
                let number = number.to_string();
                Err(DatumError::OutOfRange { wanted: wanted.to_string(), number })
            }
            _ => Err(self.is_no(wanted)),
        }
    }

    /// Converts the value to the nearest `f32`.
    pub(crate) fn single(&self, wanted: &TypeName) -> Result<f32, DatumError> {
        let number = self.float(wanted)?;
        let single = number as f32;
        if single.is_infinite() && number.is_finite() {
            let number = number.to_string();
            return Err(DatumError::OutOfRange { wanted: wanted.to_string(), number });
        }
        Ok(single)
    }

    pub(crate) fn bool(&self, wanted: &TypeName) -> Result<bool, DatumError> {
        if let Datum::Bool(value) = self { Ok(*value) } else { Err(self.is_no(wanted)) }
    }

    pub(crate) fn str(&self, wanted: &TypeName) -> Result<&str, DatumError> {
        if let Datum::Str(text) = self { Ok(text) } else { Err(self.is_no(wanted)) }
    }

    /// Converts the value to one character.
    pub(crate) fn char(&self, wanted: &TypeName) -> Result<char, DatumError> {
        let mut chars = self.str(wanted)?.chars();
        match (chars.next(), chars.next()) {
            (Some(char), None) => Ok(char),
            _ => {
                let found = self.str(wanted)?.chars().count();
                Err(DatumError::Length { wanted: wanted.to_string(), length: 1, found })
            }
        }
    }

    pub(crate) fn bytes(&self, wanted: &TypeName) -> Result<&[u8], DatumError> {
        if let Datum::Bytes(bytes) = self { Ok(bytes) } else { Err(self.is_no(wanted)) }
    }

    /// Converts the value to a byte string of `length` bytes.
    pub(crate) fn array(&self, length: usize, wanted: &TypeName) -> Result<&[u8], DatumError> {
        let bytes = self.bytes(wanted)?;
        if bytes.len() == length {
            return Ok(bytes);
        }
        let found = bytes.len();
        Err(DatumError::Length { wanted: wanted.to_string(), length, found })
    }

    /// Converts the value to a tuple with as many elements as `wanted`, or fewer if a prefix is
    /// allowed.
    pub(crate) fn tuple(
        &self,
        length: usize,
        prefix: bool,
        wanted: &TypeName,
    ) -> Result<&[Datum], DatumError> {
        let Datum::Tuple(elements) = self else { return Err(self.is_no(wanted)) };
        let found = elements.len();
        if found == length || (prefix && found < length) {
            return Ok(elements);
        }
        Err(DatumError::Length { wanted: wanted.to_string(), length, found })
    }

    /// Returns the value of an integer.
    pub(crate) fn of_u128(number: u128) -> Datum {
        i128::try_from(number).map_or(Datum::Uint(number), Datum::Int)
    }
}
