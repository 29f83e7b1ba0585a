//! Keys of a type that is known only at run time, in the engine's encoding.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

use millpond::{
    codec::{DecodeKey, EncodeKey, Reader},
    error::DecodeError,
};

use crate::datum::{Datum, DatumError};
use crate::type_name::{TypeName, TypeNameError};

/// A type of keys by its name, such as `(String, u32)`. It encodes like [`EncodeKey`] and decodes
/// like [`DecodeKey`] of that Rust type.
///
/// ```
/// use millpond::codec::EncodeKey;
/// use millpond_handles::{Datum, KeyType};
/// let key: KeyType = "i64".parse().unwrap();
/// assert_eq!(key.encode(&Datum::Int(-7)).unwrap(), (-7i64).to_key_bytes());
/// assert_eq!(key.to_string(), "i64");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyType(TypeName);

impl Display for KeyType {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for KeyType {
    type Err = TypeNameError;

    fn from_str(name: &str) -> Result<KeyType, TypeNameError> {
        let found: TypeName = name.parse()?;
        if found.has_unit() {
            return Err(TypeNameError::NoKey { name: name.to_string() });
        }
        Ok(KeyType(found))
    }
}

impl KeyType {
    /// Encodes a key.
    ///
    /// # Errors
    /// [`DatumError`] if `key` is not of this type.
    pub fn encode(&self, key: &Datum) -> Result<Vec<u8>, DatumError> {
        let mut out = Vec::new();
        match &self.0 {
            // A key that is one string ends where its bytes end.
            TypeName::String => out.extend_from_slice(key.str(&self.0)?.as_bytes()),
            TypeName::Bytes => out.extend_from_slice(key.bytes(&self.0)?),
            whole => encode_part(whole, key, &mut out)?,
        }
        Ok(out)
    }

    /// Encodes a prefix of keys: the first elements of a tuple, or the front of a string.
    ///
    /// # Errors
    /// [`DatumError`] if `prefix` does not fit this type.
    pub fn encode_prefix(&self, prefix: &Datum) -> Result<Vec<u8>, DatumError> {
        let TypeName::Tuple(elements) = &self.0 else { return self.encode(prefix) };
        let mut out = Vec::new();
        let given = prefix.tuple(elements.len(), true, &self.0)?;
        for (element, datum) in elements.iter().zip(given) {
            encode_part(element, datum, &mut out)?;
        }
        Ok(out)
    }

    /// Decodes a key.
    ///
    /// # Errors
    /// [`DatumError::Decode`] if the bytes do not decode as this type.
    pub fn decode(&self, bytes: &[u8]) -> Result<Datum, DatumError> {
        match &self.0 {
            TypeName::String => Ok(Datum::Str(String::decode(bytes)?)),
            TypeName::Bytes => Ok(Datum::Bytes(bytes.to_vec())),
            whole => {
                let mut reader = Reader::new(bytes);
                let key = decode_part(whole, &mut reader)?;
                let left = reader.rest().len();
                if left > 0 {
                    return Err(DecodeError::Trailing { at: reader.at(), left }.into());
                }
                Ok(key)
            }
        }
    }
}

fn encode_part(of: &TypeName, key: &Datum, out: &mut Vec<u8>) -> Result<(), DatumError> {
    match of {
        TypeName::Unit => {}
        TypeName::Bool => key.bool(of)?.encode_part(out),
        TypeName::Char => key.char(of)?.encode_part(out),
        TypeName::Unsigned(8) => key.int::<u8>(of)?.encode_part(out),
        TypeName::Unsigned(16) => key.int::<u16>(of)?.encode_part(out),
        TypeName::Unsigned(32) => key.int::<u32>(of)?.encode_part(out),
        TypeName::Unsigned(64) => key.int::<u64>(of)?.encode_part(out),
        TypeName::Unsigned(_) => key.int::<u128>(of)?.encode_part(out),
        TypeName::Signed(8) => key.int::<i8>(of)?.encode_part(out),
        TypeName::Signed(16) => key.int::<i16>(of)?.encode_part(out),
        TypeName::Signed(32) => key.int::<i32>(of)?.encode_part(out),
        TypeName::Signed(64) => key.int::<i64>(of)?.encode_part(out),
        TypeName::Signed(_) => key.int::<i128>(of)?.encode_part(out),
        TypeName::F32 => key.single(of)?.encode_part(out),
        TypeName::F64 => key.float(of)?.encode_part(out),
        TypeName::String => key.str(of)?.encode_part(out),
        TypeName::Bytes => key.bytes(of)?.encode_part(out),
        TypeName::Array(length) => out.extend_from_slice(key.array(*length, of)?),
        TypeName::Option(inner) => match key {
            Datum::None => out.push(0),
            some => {
                out.push(1);
                encode_part(inner, some, out)?;
            }
        },
        TypeName::Tuple(elements) => {
            for (element, datum) in elements.iter().zip(key.tuple(elements.len(), false, of)?) {
                encode_part(element, datum, out)?;
            }
        }
    }
    Ok(())
}

fn decode_part(of: &TypeName, from: &mut Reader<'_>) -> Result<Datum, DecodeError> {
    Ok(match of {
        TypeName::Unit => Datum::None,
        TypeName::Bool => Datum::Bool(bool::decode_part(from)?),
        TypeName::Char => Datum::Str(char::decode_part(from)?.to_string()),
        TypeName::Unsigned(8) => Datum::Int(u8::decode_part(from)?.into()),
        TypeName::Unsigned(16) => Datum::Int(u16::decode_part(from)?.into()),
        TypeName::Unsigned(32) => Datum::Int(u32::decode_part(from)?.into()),
        TypeName::Unsigned(64) => Datum::Int(u64::decode_part(from)?.into()),
        TypeName::Unsigned(_) => Datum::of_u128(u128::decode_part(from)?),
        TypeName::Signed(8) => Datum::Int(i8::decode_part(from)?.into()),
        TypeName::Signed(16) => Datum::Int(i16::decode_part(from)?.into()),
        TypeName::Signed(32) => Datum::Int(i32::decode_part(from)?.into()),
        TypeName::Signed(64) => Datum::Int(i64::decode_part(from)?.into()),
        TypeName::Signed(_) => Datum::Int(i128::decode_part(from)?),
        TypeName::F32 => Datum::Float(f32::decode_part(from)?.into()),
        TypeName::F64 => Datum::Float(f64::decode_part(from)?),
        TypeName::String => Datum::Str(String::decode_part(from)?),
        TypeName::Bytes => Datum::Bytes(Vec::decode_part(from)?),
        TypeName::Array(length) => Datum::Bytes(from.take(*length)?.to_vec()),
        // A bool has the same two bytes.
        TypeName::Option(inner) => match bool::decode_part(from)? {
            true => decode_part(inner, from)?,
            false => Datum::None,
        },
        TypeName::Tuple(elements) => {
            let decoded: Result<_, _> = elements.iter().map(|of| decode_part(of, from)).collect();
            Datum::Tuple(decoded?)
        }
    })
}
