//! Byte sinks and readers, and the errors of decoding: shared by the encodings of keys and values.

use std::fmt;

/// Bytes that do not decode to the expected type.
///
/// `at` is the offset in the key or value, in bytes.
///
/// ```
/// # use millpond::{Db, Error, Options, error::DecodeError};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// db.raw_tree("ponds")?.put(b"mill", b"deep")?;
/// let ponds = db.tree::<String, u16>("ponds")?; // its values have four bytes
/// let wrong = ponds.get("mill");
/// assert!(matches!(wrong, Err(Error::Decode { error: DecodeError::Trailing { .. }, .. })));
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end too early.
    #[error(
        "{wanted} bytes are needed at byte {at}, and {left} are left: read the tree with the \
         types that it was written with"
    )]
    TooShort {
        /// Offset of the fault.
        at: usize,
        /// Bytes needed from there on.
        wanted: usize,
        /// Bytes there are from there on.
        left: usize,
    },
    /// Bytes are left over.
    #[error(
        "{left} bytes are left over at byte {at}: read the tree with the types that it was \
         written with"
    )]
    Trailing {
        /// End of the decoded part.
        at: usize,
        /// Bytes behind it.
        left: usize,
    },
    /// A byte has a value that no encoding has there.
    #[error(
        "byte {at} is {byte:#04x}, which is no {expected}: read the tree with the types that it \
         was written with"
    )]
    BadByte {
        /// Offset of the byte.
        at: usize,
        /// The byte found.
        byte: u8,
        /// The expected byte.
        expected: Expected,
    },
    /// A string that is not UTF-8.
    #[error("the string at byte {at} is not UTF-8: read it as Vec<u8>")]
    NotUtf8 {
        /// Beginning of the string.
        at: usize,
    },
    /// A number that is no `char`.
    #[error("{value:#x} at byte {at} is no Unicode scalar value: read it as u32")]
    NotChar {
        /// Offset of the character.
        at: usize,
        /// The value found.
        value: u32,
    },
    /// A user-defined type refuses the bytes: [`DecodeError::custom`].
    #[error("at byte {at}: {reason}")]
    Custom {
        /// Beginning of the decoded part.
        at: usize,
        /// The type's reason.
        reason: Box<str>,
    },
}

impl DecodeError {
    /// Returns the error of a user-defined type that refuses the bytes, with its reason.
    ///
    /// ```
    /// use millpond::error::DecodeError;
    /// use millpond::internals::encoding::value::DecodeValue;
    ///
    /// struct Even(u32);
    ///
    /// impl<'a> DecodeValue<'a> for Even {
    ///     fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
    ///         match u32::decode(bytes)? {
    ///             odd if odd % 2 == 1 => Err(DecodeError::custom(format!("{odd} is odd"))),
    ///             even => Ok(Even(even)),
    ///         }
    ///     }
    /// }
    /// assert!(Even::decode(&[3, 0, 0, 0]).is_err_and(|error| error.to_string().contains("odd")));
    /// ```
    pub fn custom(reason: impl fmt::Display) -> DecodeError {
        DecodeError::Custom { at: 0, reason: reason.to_string().into() }
    }

    /// Returns the error for bytes that begin `by` bytes further on in the key or value.
    #[must_use]
    #[doc(hidden)]
    pub fn further(mut self, by: usize) -> DecodeError {
        let (DecodeError::TooShort { at, .. }
        | DecodeError::Trailing { at, .. }
        | DecodeError::BadByte { at, .. }
        | DecodeError::NotUtf8 { at }
        | DecodeError::NotChar { at, .. }
        | DecodeError::Custom { at, .. }) = &mut self;
        *at += by;
        self
    }
}

/// The byte that was expected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Expected {
    /// 0 or 1.
    Bool,
    /// 0 for `None` or 1 for `Some`.
    OptionTag,
    /// The byte after a zero byte inside an escaped string: 0 or 0xFF.
    Escape,
    /// The shortest form of a length.
    Length,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Expected::Bool => "bool (0 or 1)",
            Expected::OptionTag => "option's tag (0 or 1)",
            Expected::Escape => "escape (0 or 0xff)",
            Expected::Length => "length",
        })
    }
}

/// Returns the name of a tuple of types with these names, if all have one.
pub(crate) fn tuple_name(parts: &[Option<String>]) -> Option<String> {
    let names: Option<Vec<&str>> = parts.iter().map(Option::as_deref).collect();
    let names = names?;
    Some(if names.len() == 1 {
        format!("({},)", names[0])
    } else {
        format!("({})", names.join(", "))
    })
}

/// A buffer to which an encoding is appended.
///
/// ```
/// use millpond::{codec::{EncodeKey, Sink}};
/// /// Counts bytes.
/// struct Length(usize);
/// impl Sink for Length {
///     fn put(&mut self, bytes: &[u8]) {
///         self.0 += bytes.len();
///     }
/// }
/// let mut length = Length(0);
/// ("bolts", 8u32).encode(&mut length);
/// assert_eq!(length.0, 11);
/// ```
pub trait Sink {
    /// Appends `bytes`.
    ///
    /// ```
    /// use millpond::codec::Sink;
    /// let mut bytes = Vec::new();
    /// bytes.put(b"deep");
    /// assert_eq!(bytes, b"deep");
    /// ```
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// A byte buffer that stays on the stack while it is short, so that a lookup needs no allocation.
pub struct Buffer {
    inline: [u8; Buffer::INLINE],
    len: usize,
    /// All bytes, once they no longer fit inline; empty before.
    spilled: Vec<u8>,
}

impl Default for Buffer {
    fn default() -> Self {
        Self::new()
    }
}

impl Buffer {
    /// Number of bytes that fit without an allocation.
    pub const INLINE: usize = 64;

    /// Returns an empty buffer.
    #[inline]
    pub fn new() -> Buffer {
        Buffer { inline: [0; Self::INLINE], len: 0, spilled: Vec::new() }
    }

    /// Returns the bytes put so far.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        if self.spilled.is_empty() {
            self.inline.get(..self.len).unwrap_or(&[])
        } else {
            &self.spilled
        }
    }

    #[cold]
    fn spill(&mut self, bytes: &[u8]) {
        if self.spilled.is_empty() {
            self.spilled.extend_from_slice(&self.inline[..self.len]);
        }
        self.spilled.extend_from_slice(bytes);
        self.len = Self::INLINE;
    }
}

impl Sink for Buffer {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        match self.inline.get_mut(self.len..end) {
            Some(place) if self.spilled.is_empty() => {
                place.copy_from_slice(bytes);
                self.len = end;
            }
            _ if bytes.is_empty() => {}
            _ => self.spill(bytes),
        }
    }
}

/// Decodes bytes from front to back.
///
/// ```
/// use millpond::{error::DecodeError, codec::{DecodeKey, EncodeKey, Reader, Sink}};
///
/// /// A colour: three bytes.
/// #[derive(Debug, PartialEq)]
/// struct Colour([u8; 3]);
///
/// impl EncodeKey for Colour {
///     fn encode_part(&self, out: &mut impl Sink) {
///         out.put(&self.0);
///     }
/// }
///
/// impl DecodeKey<'_> for Colour {
///     fn decode_part(reader: &mut Reader<'_>) -> Result<Colour, DecodeError> {
///         reader.array().map(Colour)
///     }
/// }
///
/// assert_eq!(Colour::decode(&[7, 8, 9]), Ok(Colour([7, 8, 9])));
/// assert!(matches!(Colour::decode(&[7, 8]), Err(DecodeError::TooShort { .. })));
/// ```
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Returns a reader at the front of `bytes`.
    #[doc(hidden)]
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    /// Returns the offset of the next byte.
    #[doc(hidden)]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns the remaining bytes.
    #[doc(hidden)]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or(&[])
    }

    /// Takes the next `count` bytes.
    ///
    /// ```
    /// use millpond::{error::DecodeError, codec::{DecodeKey, EncodeKey, Reader, Sink}};
    ///
    /// /// A colour: three bytes.
    /// #[derive(Debug, PartialEq)]
    /// struct Colour([u8; 3]);
    ///
    /// impl EncodeKey for Colour {
    ///     fn encode_part(&self, out: &mut impl Sink) {
    ///         out.put(&self.0);
    ///     }
    /// }
    ///
    /// impl DecodeKey<'_> for Colour {
    ///     fn decode_part(reader: &mut Reader<'_>) -> Result<Colour, DecodeError> {
    ///         let bytes = reader.take(3)?;
    ///         Ok(Colour([bytes[0], bytes[1], bytes[2]]))
    ///     }
    /// }
    ///
    /// assert_eq!(Colour::decode(&[7, 8, 9]), Ok(Colour([7, 8, 9])));
    /// assert!(matches!(Colour::decode(&[7, 8]), Err(DecodeError::TooShort { .. })));
    /// ```
    ///
    /// # Errors
    /// [`DecodeError::TooShort`].
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let rest = self.rest();
        let taken = rest.get(..count).ok_or(DecodeError::TooShort {
            at: self.at,
            wanted: count,
            left: rest.len(),
        })?;
        self.at += count;
        Ok(taken)
    }

    /// Takes the next `N` bytes.
    ///
    /// ```
    /// use millpond::{error::DecodeError, codec::{DecodeKey, EncodeKey, Reader, Sink}};
    ///
    /// /// A colour: three bytes.
    /// #[derive(Debug, PartialEq)]
    /// struct Colour([u8; 3]);
    ///
    /// impl EncodeKey for Colour {
    ///     fn encode_part(&self, out: &mut impl Sink) {
    ///         out.put(&self.0);
    ///     }
    /// }
    ///
    /// impl DecodeKey<'_> for Colour {
    ///     fn decode_part(reader: &mut Reader<'_>) -> Result<Colour, DecodeError> {
    ///         Ok(Colour(reader.array()?))
    ///     }
    /// }
    ///
    /// assert_eq!(Colour::decode(&[7, 8, 9]), Ok(Colour([7, 8, 9])));
    /// assert!(matches!(Colour::decode(&[7, 8]), Err(DecodeError::TooShort { .. })));
    /// ```
    ///
    /// # Errors
    /// [`DecodeError::TooShort`].
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// Takes a byte that is 0 or 1.
    ///
    /// # Errors
    /// [`DecodeError::TooShort`], [`DecodeError::BadByte`].
    #[doc(hidden)]
    pub fn flag(&mut self, expected: Expected) -> Result<bool, DecodeError> {
        let at = self.at;
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [byte] => Err(DecodeError::BadByte { at, byte, expected }),
        }
    }

    /// Fails if bytes are left over.
    ///
    /// # Errors
    /// [`DecodeError::Trailing`].
    #[doc(hidden)]
    pub fn end(&self) -> Result<(), DecodeError> {
        match self.rest().len() {
            0 => Ok(()),
            left => Err(DecodeError::Trailing { at: self.at, left }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_holds_what_was_put_whether_it_fits_inline_or_not() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..500 {
            let (mut buffer, mut expected) = (Buffer::new(), Vec::new());
            for _ in 0..random.usize(..12) {
                let bytes: Vec<u8> = (0..random.usize(..30)).map(|_| random.u8(..)).collect();
                buffer.put(&bytes);
                expected.put(&bytes);
                assert_eq!(buffer.as_slice(), expected);
            }
        }
    }

    #[test]
    fn a_reader_says_where_bytes_are_missing_or_left() {
        let mut reader = Reader::new(&[1, 2, 3, 4, 5]);
        assert_eq!(reader.array(), Ok([1, 2]));
        assert_eq!(reader.take(4), Err(DecodeError::TooShort { at: 2, wanted: 4, left: 3 }));
        assert_eq!(reader.end(), Err(DecodeError::Trailing { at: 2, left: 3 }));
        let bad = DecodeError::BadByte { at: 2, byte: 3, expected: Expected::Bool };
        assert_eq!(reader.flag(Expected::Bool), Err(bad.clone()));
        assert!(bad.to_string().contains("byte 2 is 0x03, which is no bool"));
    }
}
