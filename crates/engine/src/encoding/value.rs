//! Encoding of values: compact, and equal to the memory representation where possible.
//!
//! ```text
//! integers        little-endian
//! f32, f64        little-endian bits
//! bool, char      0 or 1; its u32
//! ()              nothing: a tree of keys only
//! byte strings, [u8; N], str, String
//!                 as they are, so that they are read in place
//! Option<T>       empty for None; 1 and then T for Some
//! tuples          one element behind the other; before each one whose length can vary, except
//!                 the last, its length
//! a length        seven bits per byte, the low ones first, the high bit set if more follow
//! ```
//! Unlike a key, a value has no order to keep, and its end is known. So strings need no escaping.

use std::borrow::Cow;

use crate::encoding::codec::{Buffer, DecodeError, Expected, Reader, Sink};

/// A type that can be written as (a part of) a value.
///
/// Also implemented for borrowed forms: `str`, `[u8]`, references.
///
/// ```
/// use millpond::codec::EncodeValue;
/// assert_eq!("deep".to_value_bytes(), b"deep");
/// assert_eq!(258u16.to_value_bytes(), [2, 1]);
/// ```
pub trait EncodeValue {
    /// Length of every encoding in bytes; `None` if lengths differ. The type that decodes it has
    /// the same [`DecodeValue::LENGTH`].
    const LENGTH: Option<usize> = None;

    /// Appends the encoding.
    ///
    /// ```
    /// use millpond::codec::EncodeValue;
    /// let mut bytes = Vec::new();
    /// Some(7u8).encode(&mut bytes);
    /// assert_eq!(bytes, [1, 7]);
    /// ```
    fn encode(&self, out: &mut impl Sink);

    /// Calls `then` with the encoding. Allocates nothing if the encoding is short (64 bytes) or is
    /// the value's own bytes.
    ///
    /// ```
    /// use millpond::codec::EncodeValue;
    /// assert_eq!(7u64.with_encoded(|bytes| bytes.len()), 8);
    /// ```
    #[inline]
    fn with_encoded<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        let mut buffer = Buffer::new();
        self.encode(&mut buffer);
        then(buffer.as_slice())
    }

    /// Returns the encoding as a vector.
    ///
    /// ```
    /// use millpond::codec::EncodeValue;
    /// assert_eq!((7u8, true).to_value_bytes(), [7, 1]);
    /// ```
    fn to_value_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
    }

    /// Returns the value whose encoding is `bytes`, if the type is a byte string: a large one is
    /// then not copied. Any other type returns `bytes` as an error.
    ///
    /// # Errors
    /// The bytes, which are still to be decoded.
    #[doc(hidden)]
    fn adopt(bytes: Vec<u8>) -> Result<Self, Vec<u8>>
    where
        Self: Sized,
    {
        Err(bytes)
    }

    /// Returns the encoding of an owned value. A byte string is its own encoding and is not copied.
    ///
    /// ```
    /// use millpond::codec::EncodeValue;
    /// assert_eq!(vec![1, 2].into_value_bytes(), [1, 2]);
    /// ```
    fn into_value_bytes(self) -> Vec<u8>
    where
        Self: Sized,
    {
        self.to_value_bytes()
    }
}

/// A type that can be decoded from a value's bytes. `&str`, `&[u8]` and the two `Cow`s copy
/// nothing.
///
/// ```
/// use millpond::codec::DecodeValue;
/// assert_eq!(<&str>::decode(b"deep"), Ok("deep")); // nothing is copied
/// ```
pub trait DecodeValue<'a>: Sized {
    /// Same as [`EncodeValue::LENGTH`].
    const LENGTH: Option<usize> = None;

    /// Decodes a value that fills `bytes`.
    ///
    /// ```
    /// use millpond::{error::DecodeError, codec::DecodeValue};
    /// assert_eq!(u16::decode(&[2, 1]), Ok(258));
    /// assert!(matches!(u16::decode(&[2, 1, 0]), Err(DecodeError::Trailing { .. })));
    /// ```
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are not the encoding of this type.
    fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError>;

    /// Returns the name of the type, which trees store; see
    /// [`DecodeKey::type_name`](crate::encoding::key::DecodeKey::type_name).
    ///
    /// ```
    /// use millpond::codec::DecodeValue;
    /// assert_eq!(<u64 as DecodeValue>::type_name().as_deref(), Some("u64"));
    /// ```
    fn type_name() -> Option<String> {
        None
    }
}

/// A type of values: [`DecodeValue`] reads the encoding of [`EncodeValue`].
///
/// Implemented for every type that has both. For a type of your own, implement those two and
/// `ValueLike<Self>`.
///
/// ```
/// use millpond::{error::DecodeError, codec::{DecodeValue, EncodeValue, Sink, ValueLike}};
///
/// #[derive(Debug, PartialEq)]
/// struct Depth(u16);
///
/// impl EncodeValue for Depth {
///     fn encode(&self, out: &mut impl Sink) {
///         self.0.encode(out);
///     }
/// }
///
/// impl DecodeValue<'_> for Depth {
///     fn decode(bytes: &[u8]) -> Result<Depth, DecodeError> {
///         Ok(Depth(u16::decode(bytes)?))
///     }
/// }
///
/// impl ValueLike<Depth> for Depth {}
///
/// # fn main() -> Result<(), millpond::Error> {
/// # let db = millpond::Db::in_memory(millpond::Options::new().memory(16 << 20))?;
/// let ponds = db.tree::<String, Depth>("ponds")?;
/// ponds.put("mill", &Depth(3))?;
/// assert_eq!(ponds.get("mill")?, Some(Depth(3)));
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a value",
    note = "integers but usize and isize, floats, bool, char, (), String, Vec<u8>, [u8; N], \
            Option and tuples of up to eight of them can"
)]
pub trait Value: EncodeValue + for<'a> DecodeValue<'a> {}

impl<V: EncodeValue + for<'a> DecodeValue<'a>> Value for V {}

/// A type whose encoding is that of a `V`: `str` for `String`, `&T` for `T`.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let ponds = db.tree::<u32, String>("ponds")?;
/// ponds.put(&7, "mill")?; // a `&str` stands for a `String`
/// assert_eq!(ponds.get(&7)?.as_deref(), Some("mill"));
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand for a value of type `{V}`",
    note = "pass the value type itself, or its borrowed form: str for String, [u8] for Vec<u8>"
)]
pub trait ValueLike<V>: EncodeValue {}

impl<T: EncodeValue + ?Sized> EncodeValue for &T {
    const LENGTH: Option<usize> = T::LENGTH;
    #[inline]
    fn encode(&self, out: &mut impl Sink) {
        (**self).encode(out);
    }
    #[inline]
    fn with_encoded<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        (**self).with_encoded(then)
    }
}

impl<V, Q: ValueLike<V> + ?Sized> ValueLike<V> for &Q {}

macro_rules! number_values {
    ($($ty:ident)*) => {$(
        impl EncodeValue for $ty {
            const LENGTH: Option<usize> = Some(size_of::<$ty>());
            #[inline]
            fn encode(&self, out: &mut impl Sink) {
                out.put(&self.to_le_bytes());
            }
            #[inline]
            fn with_encoded<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
                then(&self.to_le_bytes())
            }
        }

        impl<'a> DecodeValue<'a> for $ty {
            const LENGTH: Option<usize> = Some(size_of::<$ty>());
            #[inline]
            fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
                exactly(bytes).map($ty::from_le_bytes)
            }

            fn type_name() -> Option<String> {
                Some(stringify!($ty).to_string())
            }
        }

        impl ValueLike<$ty> for $ty {}
    )*};
}
number_values!(u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 f32 f64);

#[inline]
fn exactly<const N: usize>(bytes: &[u8]) -> Result<[u8; N], DecodeError> {
    let mut reader = Reader::new(bytes);
    let array = reader.array()?;
    reader.end()?;
    Ok(array)
}

impl EncodeValue for () {
    const LENGTH: Option<usize> = Some(0);
    fn encode(&self, _out: &mut impl Sink) {}
}

impl<'a> DecodeValue<'a> for () {
    const LENGTH: Option<usize> = Some(0);
    fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Reader::new(bytes).end()
    }

    fn type_name() -> Option<String> {
        Some("()".to_string())
    }
}

impl ValueLike<()> for () {}

impl EncodeValue for bool {
    const LENGTH: Option<usize> = Some(1);
    fn encode(&self, out: &mut impl Sink) {
        out.put(&[u8::from(*self)]);
    }
}

impl<'a> DecodeValue<'a> for bool {
    const LENGTH: Option<usize> = Some(1);
    fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let value = reader.flag(Expected::Bool)?;
        reader.end()?;
        Ok(value)
    }

    fn type_name() -> Option<String> {
        Some("bool".to_string())
    }
}

impl ValueLike<bool> for bool {}

impl EncodeValue for char {
    const LENGTH: Option<usize> = Some(4);
    fn encode(&self, out: &mut impl Sink) {
        u32::from(*self).encode(out);
    }
}

impl<'a> DecodeValue<'a> for char {
    const LENGTH: Option<usize> = Some(4);
    fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let value = u32::decode(bytes)?;
        char::from_u32(value).ok_or(DecodeError::NotChar { at: 0, value })
    }

    fn type_name() -> Option<String> {
        Some("char".to_string())
    }
}

impl ValueLike<char> for char {}

impl<const N: usize> EncodeValue for [u8; N] {
    const LENGTH: Option<usize> = Some(N);
    #[inline]
    fn encode(&self, out: &mut impl Sink) {
        out.put(self);
    }
    #[inline]
    fn with_encoded<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        then(self)
    }
}

impl<'a, const N: usize> DecodeValue<'a> for [u8; N] {
    const LENGTH: Option<usize> = Some(N);
    fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        exactly(bytes)
    }

    fn type_name() -> Option<String> {
        Some(format!("[u8; {N}]"))
    }
}

impl<const N: usize> ValueLike<[u8; N]> for [u8; N] {}

impl<T: EncodeValue> EncodeValue for Option<T> {
    fn encode(&self, out: &mut impl Sink) {
        if let Some(value) = self {
            out.put(&[1]);
            value.encode(out);
        }
    }
}

impl<'a, T: DecodeValue<'a>> DecodeValue<'a> for Option<T> {
    fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        match bytes {
            [] => Ok(None),
            [1, value @ ..] => T::decode(value).map(Some).map_err(|e| e.further(1)),
            [byte, ..] => {
                Err(DecodeError::BadByte { at: 0, byte: *byte, expected: Expected::OptionTag })
            }
        }
    }

    fn type_name() -> Option<String> {
        T::type_name().map(|name| format!("Option<{name}>"))
    }
}

impl<V, Q: ValueLike<V>> ValueLike<Option<V>> for Option<Q> {}

/// Encodes strings as their bytes.
macro_rules! string_values {
    ($($ty:ty: $owned:ty;)*) => {$(
        impl EncodeValue for $ty {
            #[inline]
            fn encode(&self, out: &mut impl Sink) {
                self.with_encoded(|bytes| out.put(bytes));
            }
            #[inline]
            fn with_encoded<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
                let text: &<$owned as std::ops::Deref>::Target = self;
                then(text.as_ref())
            }
        }

        impl ValueLike<$owned> for $ty {}
    )*};
}
string_values! {
    [u8]: Vec<u8>; Cow<'_, [u8]>: Vec<u8>;
    str: String; String: String; Cow<'_, str>: String;
}

impl EncodeValue for Vec<u8> {
    fn adopt(bytes: Vec<u8>) -> Result<Self, Vec<u8>> {
        Ok(bytes)
    }

    #[inline]
    fn encode(&self, out: &mut impl Sink) {
        out.put(self);
    }
    #[inline]
    fn with_encoded<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        then(self)
    }
    fn into_value_bytes(self) -> Vec<u8> {
        self
    }
}

impl ValueLike<Vec<u8>> for Vec<u8> {}
// Arrays store no length, so they stand for byte strings.
impl<const N: usize> ValueLike<Vec<u8>> for [u8; N] {}

macro_rules! strings_back {
    ($($ty:ty as $name:literal: |$bytes:ident| $value:expr;)*) => {$(
        impl<'a> DecodeValue<'a> for $ty {
            fn decode($bytes: &'a [u8]) -> Result<Self, DecodeError> {
                $value
            }

            fn type_name() -> Option<String> {
                Some($name.to_string())
            }
        }
    )*};
}
strings_back! {
    &'a [u8] as "Vec<u8>": |bytes| Ok(bytes);
    Vec<u8> as "Vec<u8>": |bytes| Ok(bytes.to_vec());
    Cow<'a, [u8]> as "Vec<u8>": |bytes| Ok(Cow::Borrowed(bytes));
    &'a str as "String": |bytes| str::from_utf8(bytes).map_err(|_| DecodeError::NotUtf8 { at: 0 });
    String as "String": |bytes| <&str>::decode(bytes).map(str::to_string);
    Cow<'a, str> as "String": |bytes| <&str>::decode(bytes).map(Cow::Borrowed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::value_tuples::{put_length, take_length};
    use std::fmt::Debug;

    fn assert_comes_back<V: Value + PartialEq + Debug>(value: &V) {
        let bytes = value.to_value_bytes();
        assert_eq!(&V::decode(&bytes).unwrap(), value);
        value.with_encoded(|same| assert_eq!(same, bytes));
        let length = <V as EncodeValue>::LENGTH;
        assert_eq!(length, <V as DecodeValue<'_>>::LENGTH);
        assert!(length.is_none_or(|n| n == bytes.len()));
    }

    #[test]
    fn every_kind_of_value_comes_back() {
        assert_comes_back(&0x0102_0304u32);
        assert_comes_back(&i128::MIN);
        assert_comes_back(&-0.5f64);
        assert_comes_back(&true);
        assert_comes_back(&'ÿ');
        assert_comes_back(&());
        assert_comes_back(&[1u8, 0, 2]);
        assert_comes_back(&vec![0u8, 255]);
        assert_comes_back(&"text\0".to_string());
        for nested in [None, Some(None), Some(Some(String::new())), Some(Some("x".to_string()))] {
            assert_comes_back(&nested);
            assert_comes_back(&(nested.clone(), nested, 7u16));
        }
        assert_comes_back(&("a".to_string(), vec![0u8; 300], (1u8, "b".to_string()), ()));
        assert_comes_back(&(1u8, 2u16, 3u32, 4u64, 5i8, "six".to_string(), 7.0f32, vec![8u8]));
        assert_eq!(0x0102_0304u32.to_value_bytes(), [4, 3, 2, 1]);
        assert_eq!(("ab", 5u8, "cd").to_value_bytes(), b"\x02ab\x05cd");
        assert_eq!(<(u8, (u16, [u8; 3])) as EncodeValue>::LENGTH, Some(6));
    }

    #[test]
    fn strings_are_read_in_place() {
        let bytes = ("key", "value").to_value_bytes();
        let (key, value) = <(&str, &str)>::decode(&bytes).unwrap();
        assert_eq!((key, value), ("key", "value"));
        assert!(bytes.as_ptr_range().contains(&value.as_ptr()));
        assert_eq!(<&[u8]>::decode(&bytes).unwrap(), bytes);
    }

    #[test]
    fn lengths_have_one_form() {
        for length in [0, 1, 0x7F, 0x80, 0x3FFF, 0x4000, 1 << 30, usize::MAX >> 1] {
            let mut bytes = Vec::new();
            put_length(length, &mut bytes);
            let mut reader = Reader::new(&bytes);
            assert_eq!(take_length(&mut reader), Ok(length));
            assert_eq!(reader.end(), Ok(()));
        }
        let wrong = |bytes: &[u8]| take_length(&mut Reader::new(bytes));
        assert!(matches!(wrong(&[0x81, 0]), Err(DecodeError::BadByte { at: 1, .. })));
        assert!(matches!(wrong(&[0xFF; 20]), Err(DecodeError::BadByte { .. })));
        assert!(matches!(wrong(&[0x80]), Err(DecodeError::TooShort { .. })));
    }

    #[test]
    fn errors_in_tuples_say_where_in_the_whole_value() {
        let bytes = (7u32, "abc", true).to_value_bytes();
        let mut broken = bytes.clone();
        broken[8] = 9;
        let wrong = <(u32, String, bool)>::decode(&broken).unwrap_err();
        assert!(matches!(wrong, DecodeError::BadByte { at: 8, byte: 9, .. }), "{wrong}");
        let wrong = <(u32, Option<String>)>::decode(b"\0\0\0\0\x01\xFF").unwrap_err();
        assert_eq!(wrong, DecodeError::NotUtf8 { at: 5 });
        assert!(matches!(u16::decode(&[1, 2, 3]), Err(DecodeError::Trailing { at: 2, left: 1 })));
    }

    #[test]
    fn garbage_gives_an_error_or_a_value_and_never_a_panic() {
        type Everything = (Option<String>, (bool, char, Vec<u8>), [u8; 2], Option<(u8, i16)>);
        let mut random = fastrand::Rng::with_seed(31);
        let mut decoded = 0;
        for _ in 0..50_000 {
            let r = &mut random;
            let text = r.bool().then(|| r.char(..).to_string());
            let inner = (r.bool(), r.char(..), vec![r.u8(..); r.usize(..200)]);
            let last = r.bool().then(|| (r.u8(..), r.i16(..)));
            let mut bytes = (text, inner, [r.u8(..); 2], last).to_value_bytes();
            for _ in 0..r.usize(..3) {
                let at = r.usize(..bytes.len());
                bytes[at] = [0, 1, 0xFF, r.u8(..)][r.usize(..4)];
            }
            bytes.truncate(r.usize(..bytes.len() * 4));
            if let Ok(value) = Everything::decode(&bytes) {
                assert_eq!(value.to_value_bytes(), bytes);
                decoded += 1;
            }
        }
        assert!((1000..49_000).contains(&decoded), "{decoded}");
    }
}
