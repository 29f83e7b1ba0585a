//! Order-preserving encoding of keys: comparing encodings with `memcmp` gives the order of the
//! keys.
//!
//! ```text
//! u8 … u128     big-endian
//! i8 … i128     big-endian, sign bit flipped: the negative ones come first
//! bool          0 or 1
//! char          its u32
//! f32, f64      big-endian bits; sign bit flipped if it is clear, all bits flipped if it is set
//! [u8; N]       as it is
//! Option<T>     0 for None; 1 and then T for Some: None comes first
//! tuples        one element behind the other, each in its part form
//! byte strings, str, String
//!   whole form  as it is
//!   part form   each 0x00 becomes 0x00 0xFF, then 0x00 0x00 ends it
//! ```
//!
//! **Floats** are ordered by `total_cmp`, not by `<`: −NaN < −∞ < … < −0.0 < +0.0 < … < ∞ < NaN. So
//! every float is a key and decodes to the same bits; −0.0 and +0.0 are two different keys, and so
//! are NaNs of different bits. `usize` and `isize` cannot be keys, because a store moves between
//! machines.
//!
//! **Two forms.** A key that is a single string needs no end mark: the page stores its length, and
//! under `memcmp` a string precedes any longer one that begins with it. Inside a tuple more
//! elements may follow, and tuples nest, so no element knows whether it is the last. There, in the
//! *part form*, a string carries its own end mark. Every other type has one form only.
//!
//! **Why part forms keep the order.** Claim: for any values v < w of one type, the encodings differ
//! at some byte, neither is a prefix of the other, and the first byte that differs is the smaller
//! one in v. Then any bytes that follow cannot matter, so tuples compare element by element, and so
//! do tuples of tuples.
//!
//! For fixed lengths that is plain. For `Option`, the tag differs, or the claim for T holds behind
//! equal tags. For strings, let i be the first place where v and w differ. If both have a byte
//! there, at most one of the two is 0x00, which is written as 0x00 first, and any other byte as
//! itself, so the order stays. If v ends there, v has 0x00 0x00, and w has either a byte above
//! 0x00, or 0x00 0xFF: v is smaller at the first or at the second byte.
//!
//! **Prefixes.** Elements follow each other without gaps. So the encoding of the first elements of
//! a tuple is a byte prefix of exactly those tuples that begin with them: see [`PrefixOf`], and
//! [`prefix_end`] for the end of the range.

use crate::encoding::codec::{Buffer, DecodeError, Reader, Sink};

/// A type that can be written as (a part of) a key, in an order-preserving form.
///
/// Also implemented for borrowed forms: `str`, `[u8]`, references.
///
/// ```
/// use millpond::codec::EncodeKey;
/// // The order of the bytes is that of the keys.
/// assert!((-1i32).to_key_bytes() < 7i32.to_key_bytes());
/// assert!(("bolt", 8u32).to_key_bytes() < ("bolts", 6u32).to_key_bytes());
/// ```
pub trait EncodeKey {
    /// Appends the part form: order-preserving and self-delimiting, whatever follows it.
    ///
    /// ```
    /// use millpond::codec::EncodeKey;
    /// let mut bytes = Vec::new();
    /// "ab".encode_part(&mut bytes); // ends itself, as more may follow
    /// assert_eq!(bytes, [b'a', b'b', 0, 0]);
    /// ```
    fn encode_part(&self, out: &mut impl Sink);

    /// Appends the whole form: order-preserving where nothing follows.
    ///
    /// ```
    /// use millpond::codec::EncodeKey;
    /// let mut bytes = Vec::new();
    /// "ab".encode(&mut bytes);
    /// assert_eq!(bytes, b"ab");
    /// ```
    #[inline]
    fn encode(&self, out: &mut impl Sink) {
        self.encode_part(out);
    }

    /// Calls `then` with the whole form. Allocates nothing if the form is short (64 bytes) or is
    /// the value's own bytes.
    ///
    /// ```
    /// use millpond::codec::EncodeKey;
    /// assert_eq!(7u64.with_encoded(|bytes| bytes.len()), 8);
    /// ```
    #[inline]
    fn with_encoded<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        let mut buffer = Buffer::new();
        self.encode(&mut buffer);
        then(buffer.as_slice())
    }

    /// Returns the whole form as a vector.
    ///
    /// ```
    /// use millpond::codec::EncodeKey;
    /// assert_eq!(258u16.to_key_bytes(), [1, 2]);
    /// ```
    fn to_key_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
    }

    /// Returns the encoding of an owned key. A byte string is its own encoding and is not copied.
    ///
    /// ```
    /// use millpond::codec::EncodeKey;
    /// assert_eq!(vec![1, 2].into_key_bytes(), [1, 2]);
    /// ```
    fn into_key_bytes(self) -> Vec<u8>
    where
        Self: Sized,
    {
        self.to_key_bytes()
    }
}

/// A type that can be decoded from a key's bytes, and may borrow from them.
///
/// `Cow<str>` and `Cow<[u8]>` borrow unless the string was escaped, that is, was in a tuple and has
/// a zero byte.
///
/// ```
/// use millpond::{codec::{DecodeKey, EncodeKey}};
/// let bytes = ("bolts", 8u32).to_key_bytes();
/// assert_eq!(<(String, u32)>::decode(&bytes), Ok(("bolts".to_string(), 8)));
/// ```
pub trait DecodeKey<'a>: Sized {
    /// Decodes a part form from the front of `reader`.
    ///
    /// ```
    /// use millpond::{error::DecodeError, codec::{DecodeKey, EncodeKey, Reader, Sink}};
    ///
    /// #[derive(Debug, PartialEq)]
    /// struct Day { year: u16, day: u16 }
    ///
    /// impl EncodeKey for Day {
    ///     fn encode_part(&self, out: &mut impl Sink) {
    ///         (self.year, self.day).encode_part(out);
    ///     }
    /// }
    ///
    /// impl DecodeKey<'_> for Day {
    ///     fn decode_part(reader: &mut Reader<'_>) -> Result<Day, DecodeError> {
    ///         let (year, day) = DecodeKey::decode_part(reader)?;
    ///         Ok(Day { year, day })
    ///     }
    /// }
    ///
    ///
    /// let bytes = Day { year: 1815, day: 344 }.to_key_bytes();
    /// assert_eq!(Day::decode(&bytes), Ok(Day { year: 1815, day: 344 }));
    /// ```
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are not the part form of this type.
    fn decode_part(reader: &mut Reader<'a>) -> Result<Self, DecodeError>;

    /// Returns the name of the type, which trees store: opening a tree with keys of another name is
    /// an error. Types that are encoded in the same way have the same name.
    ///
    /// Returns `None` by default; the type is then neither stored nor compared. For a type of your
    /// own, choose a name that identifies its encoding, and another one when the encoding changes.
    ///
    /// ```
    /// use millpond::codec::DecodeKey;
    /// assert_eq!(<(String, u32)>::type_name().as_deref(), Some("(String, u32)"));
    /// ```
    fn type_name() -> Option<String> {
        None
    }

    /// Decodes a whole form.
    ///
    /// ```
    /// use millpond::{error::DecodeError, codec::DecodeKey};
    /// assert_eq!(u16::decode(&[1, 2]), Ok(258));
    /// assert!(matches!(u16::decode(&[1]), Err(DecodeError::TooShort { .. })));
    /// ```
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are not the whole form of this type.
    fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let value = Self::decode_part(&mut reader)?;
        reader.end()?;
        Ok(value)
    }
}

/// A type of keys: [`DecodeKey`] reads the encoding of [`EncodeKey`], and the order of the
/// encodings is that of the values.
///
/// Implemented for every type that has both. For a type of your own, implement those two and
/// `PartLike<Self>`, usually by delegating to a tuple of its fields.
///
/// ```
/// use millpond::{error::DecodeError, codec::{DecodeKey, EncodeKey, PartLike, Reader, Sink}};
///
/// #[derive(Debug, PartialEq)]
/// struct Day { year: u16, day: u16 }
///
/// impl EncodeKey for Day {
///     fn encode_part(&self, out: &mut impl Sink) {
///         (self.year, self.day).encode_part(out);
///     }
/// }
///
/// impl DecodeKey<'_> for Day {
///     fn decode_part(reader: &mut Reader<'_>) -> Result<Day, DecodeError> {
///         let (year, day) = DecodeKey::decode_part(reader)?;
///         Ok(Day { year, day })
///     }
/// }
///
/// impl PartLike<Day> for Day {}
///
/// # fn main() -> Result<(), millpond::Error> {
/// # let db = millpond::Db::in_memory(millpond::Options::new().memory(16 << 20))?;
/// let tides = db.tree::<Day, String>("tides")?;
/// tides.put(&Day { year: 1815, day: 344 }, "spring")?;
/// assert_eq!(tides.first()?.map(|(day, _)| day.year), Some(1815));
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key",
    note = "integers but usize and isize, floats, bool, char, String, Vec<u8>, [u8; N], Option \
            and tuples of up to eight of them can"
)]
pub trait Key: EncodeKey + for<'a> DecodeKey<'a> {}

impl<K: EncodeKey + for<'a> DecodeKey<'a>> Key for K {}

/// A type whose *part form* is that of a `K`: `str` for `String`, `&T` for `T`, `(&str, u32)` for
/// `(String, u32)`. The compiler does not check this promise about encodings.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// // `str` is written as `String` is, so it stands for one inside a tuple.
/// let stock = db.tree::<(String, u32), u64>("stock")?;
/// stock.put(&("bolts", 8), &1200)?;
/// assert_eq!(stock.get(&("bolts", 8))?, Some(1200));
/// # Ok(()) }
/// ```
pub trait PartLike<K>: EncodeKey {}

/// A type whose *whole form* is that of a `K`, so that a `K` can be looked up with it.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let birds = db.tree::<String, u32>("birds")?;
/// birds.put("heron", &3)?; // a `&str` stands for a `String`
/// assert_eq!(birds.get(&"heron".to_string())?, Some(3));
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand for a key of type `{K}`",
    note = "pass the key type itself, or its borrowed form: str for String, [u8] for Vec<u8>, \
            (&str, u64) for (String, u64)"
)]
pub trait KeyLike<K>: EncodeKey {}

impl<K, Q: PartLike<K> + ?Sized> KeyLike<K> for Q {}
// Arrays have no end mark, so they stand for byte strings only where nothing follows.
impl<const N: usize> KeyLike<Vec<u8>> for [u8; N] {}

/// A type whose encoding is a byte prefix of exactly those keys of type `K` that begin with it: the
/// first elements of a tuple, the first characters of a string.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let stock = db.tree::<(String, u32), u64>("stock")?;
/// stock.put(&("bolts", 8), &1200)?;
/// assert_eq!(stock.prefix(&("bolts",)).count(), 1);
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a prefix of keys of type `{K}`",
    note = "tuples begin with tuples of their first elements, (A,) for (A, B); String begins with \
            str, Vec<u8> with [u8]"
)]
pub trait PrefixOf<K> {
    /// Appends the prefix.
    ///
    /// ```
    /// use millpond::codec::PrefixOf;
    /// let mut bytes = Vec::new();
    /// PrefixOf::<String>::encode_prefix("bo", &mut bytes);
    /// assert_eq!(bytes, b"bo");
    /// ```
    fn encode_prefix(&self, out: &mut impl Sink);

    /// Returns the prefix as a vector.
    ///
    /// ```
    /// use millpond::codec::PrefixOf;
    /// let prefix = PrefixOf::<(u16, String)>::to_prefix_bytes(&(258u16,));
    /// assert_eq!(prefix, [1, 2]);
    /// ```
    fn to_prefix_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode_prefix(&mut bytes);
        bytes
    }
}

/// Returns the smallest byte string above all that begin with `prefix`: the excluded end of a
/// prefix scan. Returns `None` if `prefix` is empty or all 0xFF: the scan then goes on to the last
/// key.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

impl PrefixOf<String> for str {
    fn encode_prefix(&self, out: &mut impl Sink) {
        out.put(self.as_bytes());
    }
}

impl PrefixOf<Vec<u8>> for [u8] {
    fn encode_prefix(&self, out: &mut impl Sink) {
        out.put(self);
    }
}

impl<const N: usize> PrefixOf<Vec<u8>> for [u8; N] {
    fn encode_prefix(&self, out: &mut impl Sink) {
        out.put(self);
    }
}

impl<K, Q: PrefixOf<K> + ?Sized> PrefixOf<K> for &Q {
    fn encode_prefix(&self, out: &mut impl Sink) {
        (**self).encode_prefix(out);
    }
}

impl<T: EncodeKey + ?Sized> EncodeKey for &T {
    #[inline]
    fn encode_part(&self, out: &mut impl Sink) {
        (**self).encode_part(out);
    }
    #[inline]
    fn encode(&self, out: &mut impl Sink) {
        (**self).encode(out);
    }
    #[inline]
    fn with_encoded<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        (**self).with_encoded(then)
    }
}

impl<K, Q: PartLike<K> + ?Sized> PartLike<K> for &Q {}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use std::cmp::Ordering;
    use std::fmt::Debug;

    /// Checks keys that stand for those of type `T`: all pairs are in the order of `compare` in
    /// both forms, and all decode to themselves.
    fn assert_ordered<T>(values: &[T], compare: impl Fn(&T, &T) -> Ordering)
    where
        T: Key + Debug,
    {
        let part = |value: &T| {
            let mut bytes = Vec::new();
            value.encode_part(&mut bytes);
            bytes
        };
        let encoded: Vec<_> = values.iter().map(|v| (v.to_key_bytes(), part(v))).collect();
        for (v, (v_whole, v_part)) in values.iter().zip(&encoded) {
            let back = T::decode(v_whole).unwrap();
            assert!(compare(&back, v).is_eq(), "{v:?} came back as {back:?}");
            v.with_encoded(|bytes| assert_eq!(bytes, v_whole));
            let mut followed = v_part.clone();
            followed.extend([0, 0xFF, 7]);
            let mut reader = Reader::new(&followed);
            assert!(compare(&T::decode_part(&mut reader).unwrap(), v).is_eq());
            assert_eq!(reader.rest(), [0, 0xFF, 7], "{v:?} does not end where it ends");
            for (w, (w_whole, w_part)) in values.iter().zip(&encoded) {
                let order = compare(v, w);
                assert_eq!(v_whole.cmp(w_whole), order, "{v:?} and {w:?}");
                assert_eq!(v_part.cmp(w_part), order, "{v:?} and {w:?} as parts");
                let (v_high, w_low) =
                    ([&v_part[..], &[0xFF]].concat(), [&w_part[..], &[0]].concat());
                if order.is_ne() {
                    assert_eq!(v_high.cmp(&w_low), order, "{v:?} and {w:?} with more behind");
                }
            }
        }
    }

    #[test]
    fn integers_are_ordered_and_come_back() {
        let mut random = fastrand::Rng::with_seed(11);
        macro_rules! check {
            ($($ty:ident)*) => {$({
                let mut values = vec![$ty::MIN, $ty::MIN + 1, $ty::MAX, $ty::MAX - 1, 0, 1];
                values.push((0 as $ty).wrapping_sub(1));
                values.extend((0..80).map(|_| random.$ty(..) >> random.u32(..$ty::BITS)));
                assert_ordered(&values, Ord::cmp);
                assert_eq!(values[0].to_key_bytes().len(), size_of::<$ty>());
            })*};
        }
        check!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128);
    }

    #[test]
    fn floats_are_ordered_totally_and_come_back_bit_by_bit() {
        let mut random = fastrand::Rng::with_seed(12);
        let special = [0.0, 1.0, f64::MIN_POSITIVE, 5e-324, f64::MAX, f64::INFINITY, f64::NAN];
        let mut values: Vec<f64> = special.iter().flat_map(|v| [*v, -*v]).collect();
        values.extend((0..100).map(|_| f64::from_bits(random.u64(..))));
        assert_ordered(&values, f64::total_cmp);
        let mut small: Vec<f32> = special.iter().flat_map(|v| [*v as f32, -*v as f32]).collect();
        small.extend((0..100).map(|_| f32::from_bits(random.u32(..))));
        assert_ordered(&small, f32::total_cmp);
        assert_ne!((-0.0f64).to_key_bytes(), 0.0f64.to_key_bytes());
        assert!((-0.0f64).to_key_bytes() < 0.0f64.to_key_bytes());
    }

    #[test]
    fn bools_chars_arrays_and_options_are_ordered_and_come_back() {
        assert_ordered(&[false, true], Ord::cmp);
        assert_ordered(&['\0', 'a', 'ä', '\u{D7FF}', '\u{E000}', char::MAX], Ord::cmp);
        assert_ordered(&[[0, 0], [0, 255], [1, 0], [255, 255]], Ord::cmp);
        assert_ordered(&[None, Some(i32::MIN), Some(-1), Some(0)], Ord::cmp);
        let nested = [None, Some(None), Some(Some(String::new())), Some(Some("\0".to_string()))];
        assert_ordered(&nested, Ord::cmp);
    }

    /// Strings rich in the bytes that escaping could get wrong.
    pub(crate) fn nasty_bytes(random: &mut fastrand::Rng) -> Vec<u8> {
        let alphabet = [0x00, 0x00, 0x01, 0xFE, 0xFF, 0xFF, b'a'];
        (0..random.usize(..6)).map(|_| alphabet[random.usize(..alphabet.len())]).collect()
    }

    #[test]
    fn strings_with_zeros_and_ones_are_ordered_and_come_back() {
        let mut random = fastrand::Rng::with_seed(13);
        let bytes: Vec<Vec<u8>> = (0..300).map(|_| nasty_bytes(&mut random)).collect();
        assert_ordered(&bytes, Ord::cmp);
        let text = |random: &mut fastrand::Rng| -> String {
            let alphabet = ['\0', '\u{1}', 'a', 'ÿ', '\u{FFFF}', char::MAX];
            (0..random.usize(..5)).map(|_| alphabet[random.usize(..alphabet.len())]).collect()
        };
        let texts: Vec<String> = (0..300).map(|_| text(&mut random)).collect();
        assert_ordered(&texts, Ord::cmp);
        let cows: Vec<Cow<'_, str>> = texts.iter().map(|t| Cow::Borrowed(&**t)).collect();
        for (cow, text) in cows.iter().zip(&texts) {
            assert_eq!(cow.to_key_bytes(), text.to_key_bytes());
        }
    }

    #[test]
    fn a_whole_string_is_its_bytes_and_a_part_borrows_unless_escaped() {
        assert_eq!("a\0b".to_key_bytes(), b"a\0b");
        let mut part = Vec::new();
        "ab".encode_part(&mut part);
        assert_eq!(part, b"ab\0\0");
        let mut reader = Reader::new(&part);
        assert!(matches!(Cow::<str>::decode_part(&mut reader), Ok(Cow::Borrowed("ab"))));
        part.clear();
        "a\0b".encode_part(&mut part);
        assert_eq!(part, b"a\0\xFFb\0\0");
        let mut reader = Reader::new(&part);
        assert!(matches!(Cow::<str>::decode_part(&mut reader), Ok(Cow::Owned(t)) if t == "a\0b"));
    }

    #[test]
    fn what_is_no_key_gives_an_error_that_says_where() {
        use DecodeError as E;
        assert_eq!(u32::decode(&[1]), Err(E::TooShort { at: 0, wanted: 4, left: 1 }));
        assert_eq!(u8::decode(&[1, 2]), Err(E::Trailing { at: 1, left: 1 }));
        assert!(matches!(bool::decode(&[2]), Err(E::BadByte { at: 0, byte: 2, .. })));
        assert_eq!(char::decode(&[0, 0, 0xD8, 0]), Err(E::NotChar { at: 0, value: 0xD800 }));
        assert_eq!(String::decode(&[0xFF]), Err(E::NotUtf8 { at: 0 }));
        let mut reader = Reader::new(b"ab\0\x03");
        let wrong = Vec::<u8>::decode_part(&mut reader);
        assert!(matches!(wrong, Err(E::BadByte { at: 3, byte: 3, .. })));
        let mut reader = Reader::new(b"ab");
        let open = Vec::<u8>::decode_part(&mut reader);
        assert_eq!(open, Err(E::TooShort { at: 2, wanted: 2, left: 0 }));
    }

    #[test]
    fn the_end_of_a_prefix_is_the_next_string_that_lacks_it() {
        assert_eq!(prefix_end(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(prefix_end(b"a\xFF\xFF"), Some(b"b".to_vec()));
        assert_eq!((prefix_end(b""), prefix_end(b"\xFF\xFF")), (None, None));
        let mut random = fastrand::Rng::with_seed(14);
        for _ in 0..5000 {
            let (prefix, other) = (nasty_bytes(&mut random), nasty_bytes(&mut random));
            let is_inside = other >= prefix && prefix_end(&prefix).is_none_or(|end| other < end);
            assert_eq!(is_inside, other.starts_with(&prefix), "{prefix:?} {other:?}");
        }
    }
}
