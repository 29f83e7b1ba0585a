//! Values of a type that is known only at run time, in the engine's encoding.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

use millpond::{
    codec::{DecodeValue, EncodeValue, Reader},
    error::DecodeError,
};

use crate::datum::{Datum, DatumError};
use crate::type_name::{TypeName, TypeNameError};

/// A type of values by its name, such as `(u64, String)`. It encodes like [`EncodeValue`] and
/// decodes like [`DecodeValue`] of that Rust type.
///
/// ```
/// use millpond::codec::EncodeValue;
/// use millpond_handles::{Datum, ValueType};
/// let value: ValueType = "Option<u16>".parse().unwrap();
/// assert_eq!(value.encode(&Datum::Int(258)).unwrap(), Some(258u16).to_value_bytes());
/// assert_eq!(value.decode(&[]), Ok(Datum::None));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValueType(TypeName);

impl Display for ValueType {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ValueType {
    type Err = TypeNameError;

    fn from_str(name: &str) -> Result<ValueType, TypeNameError> {
        name.parse().map(ValueType)
    }
}

impl ValueType {
    /// Encodes a value.
    ///
    /// # Errors
    /// [`DatumError`] if `value` is not of this type.
    pub fn encode(&self, value: &Datum) -> Result<Vec<u8>, DatumError> {
        let mut out = Vec::new();
        encode(&self.0, value, &mut out)?;
        Ok(out)
    }

    /// Decodes a value.
    ///
    /// # Errors
    /// [`DatumError::Decode`] if the bytes do not decode as this type.
    pub fn decode(&self, bytes: &[u8]) -> Result<Datum, DatumError> {
        Ok(decode(&self.0, bytes)?)
    }
}

/// Returns the length of all encodings, or `None` if it varies.
fn length(of: &TypeName) -> Option<usize> {
    match of {
        TypeName::Unit => Some(0),
        TypeName::Bool => Some(1),
        TypeName::Char | TypeName::F32 => Some(4),
        TypeName::F64 => Some(8),
        TypeName::Unsigned(bits) | TypeName::Signed(bits) => Some(*bits as usize / 8),
        TypeName::Array(length) => Some(*length),
        TypeName::String | TypeName::Bytes | TypeName::Option(_) => None,
        TypeName::Tuple(elements) => elements.iter().map(length).sum(),
    }
}

fn encode(of: &TypeName, value: &Datum, out: &mut Vec<u8>) -> Result<(), DatumError> {
    match of {
        TypeName::Unit if *value == Datum::None => {}
        TypeName::Unit => return Err(value.is_no(of)),
        TypeName::Bool => value.bool(of)?.encode(out),
        TypeName::Char => value.char(of)?.encode(out),
        TypeName::Unsigned(8) => value.int::<u8>(of)?.encode(out),
        TypeName::Unsigned(16) => value.int::<u16>(of)?.encode(out),
        TypeName::Unsigned(32) => value.int::<u32>(of)?.encode(out),
        TypeName::Unsigned(64) => value.int::<u64>(of)?.encode(out),
        TypeName::Unsigned(_) => value.int::<u128>(of)?.encode(out),
        TypeName::Signed(8) => value.int::<i8>(of)?.encode(out),
        TypeName::Signed(16) => value.int::<i16>(of)?.encode(out),
        TypeName::Signed(32) => value.int::<i32>(of)?.encode(out),
        TypeName::Signed(64) => value.int::<i64>(of)?.encode(out),
        TypeName::Signed(_) => value.int::<i128>(of)?.encode(out),
        TypeName::F32 => value.single(of)?.encode(out),
        TypeName::F64 => value.float(of)?.encode(out),
        TypeName::String => value.str(of)?.encode(out),
        TypeName::Bytes => value.bytes(of)?.encode(out),
        TypeName::Array(length) => out.extend_from_slice(value.array(*length, of)?),
        TypeName::Option(inner) => {
            if *value != Datum::None {
                out.push(1);
                encode(inner, value, out)?;
            }
        }
        TypeName::Tuple(elements) => {
            let values = value.tuple(elements.len(), false, of)?;
            for (at, (element, value)) in elements.iter().zip(values).enumerate() {
                if at + 1 == elements.len() || length(element).is_some() {
                    encode(element, value, out)?;
                    continue;
                }
                let mut bytes = Vec::new();
                encode(element, value, &mut bytes)?;
                put_length(bytes.len(), out);
                out.extend_from_slice(&bytes);
            }
        }
    }
    Ok(())
}

/// Appends a length in the format of the engine's tuples: seven bits per byte, low bits first.
fn put_length(mut length: usize, out: &mut Vec<u8>) {
    while length > 0x7F {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

fn take_length(reader: &mut Reader<'_>) -> Result<usize, DecodeError> {
    let mut length = 0u64;
    for shift in (0..63).step_by(7) {
        let at = reader.at();
        let byte = reader.take(1)?[0];
        length |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            if byte == 0 && shift > 0 {
                return Err(bad_length(at));
            }
            return Ok(usize::try_from(length).unwrap_or(usize::MAX));
        }
    }
    Err(bad_length(reader.at() - 1))
}

fn bad_length(at: usize) -> DecodeError {
    DecodeError::Custom { at, reason: "it is no length".into() }
}

fn decode(of: &TypeName, bytes: &[u8]) -> Result<Datum, DecodeError> {
    Ok(match of {
        TypeName::Unit => {
            <()>::decode(bytes)?;
            Datum::None
        }
        TypeName::Bool => Datum::Bool(bool::decode(bytes)?),
        TypeName::Char => Datum::Str(char::decode(bytes)?.to_string()),
        TypeName::Unsigned(8) => Datum::Int(u8::decode(bytes)?.into()),
        TypeName::Unsigned(16) => Datum::Int(u16::decode(bytes)?.into()),
        TypeName::Unsigned(32) => Datum::Int(u32::decode(bytes)?.into()),
        TypeName::Unsigned(64) => Datum::Int(u64::decode(bytes)?.into()),
        TypeName::Unsigned(_) => Datum::of_u128(u128::decode(bytes)?),
        TypeName::Signed(8) => Datum::Int(i8::decode(bytes)?.into()),
        TypeName::Signed(16) => Datum::Int(i16::decode(bytes)?.into()),
        TypeName::Signed(32) => Datum::Int(i32::decode(bytes)?.into()),
        TypeName::Signed(64) => Datum::Int(i64::decode(bytes)?.into()),
        TypeName::Signed(_) => Datum::Int(i128::decode(bytes)?),
        TypeName::F32 => Datum::Float(f32::decode(bytes)?.into()),
        TypeName::F64 => Datum::Float(f64::decode(bytes)?),
        TypeName::String => Datum::Str(String::decode(bytes)?),
        TypeName::Bytes => Datum::Bytes(bytes.to_vec()),
        TypeName::Array(length) => {
            let mut reader = Reader::new(bytes);
            let taken = reader.take(*length)?;
            end(&reader)?;
            Datum::Bytes(taken.to_vec())
        }
        TypeName::Option(inner) => match bytes {
            [] => Datum::None,
            [1, value @ ..] => decode(inner, value)?,
            // The encoding of a bool, without the 0 of `false`.
            [tag, ..] => {
                let reason = format!("{tag:#04x} is no tag of an Option").into();
                return Err(DecodeError::Custom { at: 0, reason });
            }
        },
        TypeName::Tuple(elements) => {
            let mut reader = Reader::new(bytes);
            let mut values = Vec::with_capacity(elements.len());
            for (at, element) in elements.iter().enumerate() {
                let length = match length(element) {
                    _ if at + 1 == elements.len() => reader.rest().len(),
                    Some(length) => length,
                    None => take_length(&mut reader)?,
                };
                values.push(decode(element, reader.take(length)?)?);
            }
            Datum::Tuple(values)
        }
    })
}

fn end(reader: &Reader<'_>) -> Result<(), DecodeError> {
    let left = reader.rest().len();
    if left > 0 { Err(DecodeError::Trailing { at: reader.at(), left }) } else { Ok(()) }
}
