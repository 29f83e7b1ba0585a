//! Keys of byte strings, text and options.

use crate::encoding::codec::{DecodeError, Expected, Reader, Sink};
use crate::encoding::key::{DecodeKey, EncodeKey, PartLike};
use std::borrow::Cow;

impl<T: EncodeKey> EncodeKey for Option<T> {
    #[inline]
    fn encode_part(&self, out: &mut impl Sink) {
        out.put(&[u8::from(self.is_some())]);
        if let Some(value) = self {
            value.encode_part(out);
        }
    }
}

impl<'a, T: DecodeKey<'a>> DecodeKey<'a> for Option<T> {
    fn decode_part(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        if reader.flag(Expected::OptionTag)? { T::decode_part(reader).map(Some) } else { Ok(None) }
    }

    fn type_name() -> Option<String> {
        T::type_name().map(|name| format!("Option<{name}>"))
    }
}

impl<K, Q: PartLike<K>> PartLike<Option<K>> for Option<Q> {}

const ESCAPED_ZERO: [u8; 2] = [0, 0xFF];
const END: [u8; 2] = [0, 0];

impl EncodeKey for [u8] {
    #[inline]
    fn encode_part(&self, out: &mut impl Sink) {
        if !self.contains(&0) {
            out.put(self);
            return out.put(&END);
        }
        let mut runs = self.split(|byte| *byte == 0);
        out.put(runs.next().unwrap_or(&[]));
        for run in runs {
            out.put(&ESCAPED_ZERO);
            out.put(run);
        }
        out.put(&END);
    }
    #[inline]
    fn encode(&self, out: &mut impl Sink) {
        out.put(self);
    }
    #[inline]
    fn with_encoded<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        then(self)
    }
}

/// Encodes strings as the byte strings that they consist of.
macro_rules! string_keys {
    ($($ty:ty: $owned:ty;)*) => {$(
        impl EncodeKey for $ty {
            #[inline]
            fn encode_part(&self, out: &mut impl Sink) {
                <[u8]>::encode_part(self.as_ref(), out);
            }
            #[inline]
            fn encode(&self, out: &mut impl Sink) {
                out.put(self.as_ref());
            }
            #[inline]
            fn with_encoded<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
                then(self.as_ref())
            }
        }

        impl PartLike<$owned> for $ty {}
    )*};
}
string_keys! { str: String; String: String; Cow<'_, [u8]>: Vec<u8>; }

impl EncodeKey for Vec<u8> {
    #[inline]
    fn encode_part(&self, out: &mut impl Sink) {
        self.as_slice().encode_part(out);
    }
    #[inline]
    fn encode(&self, out: &mut impl Sink) {
        out.put(self);
    }
    #[inline]
    fn with_encoded<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        then(self)
    }
    fn into_key_bytes(self) -> Vec<u8> {
        self
    }
}

impl PartLike<Vec<u8>> for Vec<u8> {}
impl PartLike<Vec<u8>> for [u8] {}

impl EncodeKey for Cow<'_, str> {
    fn encode_part(&self, out: &mut impl Sink) {
        str::encode_part(self, out);
    }
    fn encode(&self, out: &mut impl Sink) {
        str::encode(self, out);
    }
    fn with_encoded<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        then(self.as_bytes())
    }
}

impl PartLike<String> for Cow<'_, str> {}

impl<'a> DecodeKey<'a> for Cow<'a, [u8]> {
    fn decode_part(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut owned: Option<Vec<u8>> = None;
        loop {
            let rest = reader.rest();
            // Without a zero byte the string has no end: both bytes of the end mark are missing.
            let run = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
            let run = reader.take(run)?;
            let at = reader.at() + 1;
            match reader.array()? {
                END => {
                    return Ok(match owned {
                        None => Cow::Borrowed(run),
                        Some(mut bytes) => {
                            bytes.extend_from_slice(run);
                            Cow::Owned(bytes)
                        }
                    });
                }
                ESCAPED_ZERO => {
                    let bytes = owned.get_or_insert_default();
                    bytes.extend_from_slice(run);
                    bytes.push(0);
                }
                [_, byte] => {
                    return Err(DecodeError::BadByte { at, byte, expected: Expected::Escape });
                }
            }
        }
    }

    fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Ok(Cow::Borrowed(bytes))
    }

    fn type_name() -> Option<String> {
        Some("Vec<u8>".to_string())
    }
}

fn utf8(bytes: Cow<'_, [u8]>, at: usize) -> Result<Cow<'_, str>, DecodeError> {
    let wrong = DecodeError::NotUtf8 { at };
    match bytes {
        Cow::Borrowed(bytes) => str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| wrong),
        Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).map_err(|_| wrong),
    }
}

impl<'a> DecodeKey<'a> for Cow<'a, str> {
    fn decode_part(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let at = reader.at();
        utf8(Cow::decode_part(reader)?, at)
    }
    fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        utf8(Cow::Borrowed(bytes), 0)
    }

    fn type_name() -> Option<String> {
        Some("String".to_string())
    }
}

macro_rules! owned_strings {
    ($($owned:ty: $borrowed:ty;)*) => {$(
        impl<'a> DecodeKey<'a> for $owned {
            fn decode_part(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
                Cow::<'a, $borrowed>::decode_part(reader).map(Cow::into_owned)
            }
            fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
                Cow::<'a, $borrowed>::decode(bytes).map(Cow::into_owned)
            }

            fn type_name() -> Option<String> {
                Some(stringify!($owned).to_string())
            }
        }
    )*};
}
owned_strings! { String: str; Vec<u8>: [u8]; }
