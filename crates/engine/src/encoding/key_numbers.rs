//! Numbers, booleans, characters and arrays of bytes as keys.

use crate::encoding::codec::{DecodeError, Expected, Reader, Sink};
use crate::encoding::key::{DecodeKey, EncodeKey, PartLike};

/// Keys of a fixed length: `$bytes` of `self` on the way out, `$value` of `bytes` on the way in.
macro_rules! fixed_key {
    ($($ty:ty: |$this:ident| $bytes:expr, |$read:ident| $value:expr;)*) => {$(
        impl EncodeKey for $ty {
            #[inline]
            fn encode_part(&self, out: &mut impl Sink) {
                let $this = *self;
                out.put(&$bytes);
            }
            #[inline]
            fn with_encoded<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
                let $this = *self;
                then(&$bytes)
            }
        }

        impl<'a> DecodeKey<'a> for $ty {
            #[inline]
            fn decode_part(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
                let $read = reader.array()?;
                Ok($value)
            }

            fn type_name() -> Option<String> {
                Some(stringify!($ty).to_string())
            }
        }

        impl PartLike<$ty> for $ty {}
    )*};
}

macro_rules! integer_keys {
    ($($unsigned:ident $signed:ident)*) => {
        fixed_key! {
            $(
                $unsigned: |v| v.to_be_bytes(), |bytes| $unsigned::from_be_bytes(bytes);
                $signed: |v| (v ^ $signed::MIN).to_be_bytes(),
                    |bytes| $signed::from_be_bytes(bytes) ^ $signed::MIN;
            )*
        }
    };
}
integer_keys!(u8 i8 u16 i16 u32 i32 u64 i64 u128 i128);

/// Flips all bits if the sign is set, and only the sign otherwise. Decoding does the same, with the
/// two cases swapped.
macro_rules! float_keys {
    ($($float:ident $bits:ident;)*) => {
        fixed_key! {
            $($float:
                |v| {
                    let (bits, sign) = (v.to_bits(), 1 << ($bits::BITS - 1));
                    if bits & sign == 0 { bits | sign } else { !bits }.to_be_bytes()
                },
                |bytes| {
                    let (bits, sign) = ($bits::from_be_bytes(bytes), 1 << ($bits::BITS - 1));
                    $float::from_bits(if bits & sign == 0 { !bits } else { bits ^ sign })
                };
            )*
        }
    };
}
float_keys! { f32 u32; f64 u64; }

impl<const N: usize> EncodeKey for [u8; N] {
    #[inline]
    fn encode_part(&self, out: &mut impl Sink) {
        out.put(self);
    }
    #[inline]
    fn with_encoded<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        then(self)
    }
}

impl<'a, const N: usize> DecodeKey<'a> for [u8; N] {
    fn decode_part(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.array()
    }

    fn type_name() -> Option<String> {
        Some(format!("[u8; {N}]"))
    }
}

impl<const N: usize> PartLike<[u8; N]> for [u8; N] {}

impl EncodeKey for bool {
    #[inline]
    fn encode_part(&self, out: &mut impl Sink) {
        out.put(&[u8::from(*self)]);
    }
}

impl<'a> DecodeKey<'a> for bool {
    fn decode_part(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.flag(Expected::Bool)
    }

    fn type_name() -> Option<String> {
        Some("bool".to_string())
    }
}

impl PartLike<bool> for bool {}

impl EncodeKey for char {
    #[inline]
    fn encode_part(&self, out: &mut impl Sink) {
        u32::from(*self).encode_part(out);
    }
}

impl<'a> DecodeKey<'a> for char {
    fn decode_part(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let at = reader.at();
        let value = u32::decode_part(reader)?;
        char::from_u32(value).ok_or(DecodeError::NotChar { at, value })
    }

    fn type_name() -> Option<String> {
        Some("char".to_string())
    }
}

impl PartLike<char> for char {}
