//! Ranges of keys as ranges of bytes.
//!
//! Encodings keep the order of keys, and different keys have different encodings. So each bound
//! stays included, excluded or unbounded. A prefix becomes the range from itself to [`prefix_end`].

use std::ops::{
    Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};

use crate::encoding::key::{KeyLike, PrefixOf, prefix_end};

/// A range of encoded keys; bytes compare as the keys do.
///
/// ```
/// # use millpond::{Db, Error, KeyRange, Options};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let birds = db.tree::<String, u32>("birds")?;
/// birds.put("heron", &3)?;
/// birds.put("hoopoe", &1)?;
/// let (range, prefix) = (KeyRange::of::<String, _>("hi"..), KeyRange::of_prefix::<String>("he"));
/// assert_eq!((birds.count(range)?, birds.count(prefix)?), (1, 1));
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct KeyRange {
    /// Beginning of the range.
    pub start: Bound<Vec<u8>>,
    /// End of the range.
    pub end: Bound<Vec<u8>>,
}

impl KeyRange {
    /// The range of all keys.
    pub const ALL: KeyRange = KeyRange { start: Bound::Unbounded, end: Bound::Unbounded };

    /// Returns the range of the keys of type `K` within `range`, whose bounds may be borrowed
    /// forms: `"a".."b"` for `String`.
    ///
    /// A range that ends before it begins is empty: see [`KeyRange::is_empty`].
    ///
    /// ```
    /// use millpond::KeyRange;
    /// let range = KeyRange::of::<String, _>("a".."c");
    /// assert!(range.contains(b"b") && !range.contains(b"c"));
    /// ```
    pub fn of<K, Q: KeyLike<K>>(range: impl RangeBounds<Q>) -> KeyRange {
        let bytes = |bound: Bound<&Q>| bound.map(|key| key.to_key_bytes());
        KeyRange { start: bytes(range.start_bound()), end: bytes(range.end_bound()) }
    }

    /// Returns the range of the keys of type `K` that begin with `prefix`.
    ///
    /// ```
    /// use millpond::KeyRange;
    /// let range = KeyRange::of_prefix::<(u16, String)>(&(258u16,));
    /// assert!(range.contains(&[1, 2, b'x']) && !range.contains(&[1, 3]));
    /// ```
    pub fn of_prefix<K>(prefix: &(impl PrefixOf<K> + ?Sized)) -> KeyRange {
        let start = prefix.to_prefix_bytes();
        let end = prefix_end(&start).map_or(Bound::Unbounded, Bound::Excluded);
        KeyRange { start: Bound::Included(start), end }
    }

    /// Returns `true` if the range can contain no key.
    ///
    /// ```
    /// use millpond::KeyRange;
    /// assert!(KeyRange::of::<u32, _>(7..7).is_empty() && !KeyRange::ALL.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        match (&self.start, &self.end) {
            (Bound::Unbounded, _) => matches!(&self.end, Bound::Excluded(end) if end.is_empty()),
            (_, Bound::Unbounded) => false,
            (Bound::Included(start), Bound::Included(end)) => start > end,
            (Bound::Included(start) | Bound::Excluded(start), Bound::Excluded(end))
            | (Bound::Excluded(start), Bound::Included(end)) => start >= end,
        }
    }

    /// Returns `true` if `key` is within the range.
    ///
    /// ```
    /// use millpond::KeyRange;
    /// assert!(KeyRange::of::<Vec<u8>, _>(&b"m"[..]..).contains(b"mill"));
    /// ```
    pub fn contains(&self, key: &[u8]) -> bool {
        let is_behind_start = match &self.start {
            Bound::Included(start) => key >= start.as_slice(),
            Bound::Excluded(start) => key > start.as_slice(),
            Bound::Unbounded => true,
        };
        is_behind_start && self.is_before_end(key)
    }

    /// Returns `true` if `key` is before the end; a scan that began within the range checks this at
    /// each step.
    #[doc(hidden)]
    #[inline]
    pub fn is_before_end(&self, key: &[u8]) -> bool {
        match &self.end {
            Bound::Included(end) => key <= end.as_slice(),
            Bound::Excluded(end) => key < end.as_slice(),
            Bound::Unbounded => true,
        }
    }
}

/// A range of keys of type `K`, for methods to take. It may be `..`, `3..7`, `"a"..="c"` or another
/// range of Rust with bounds that stand for a `K`, a pair of [`Bound`]s, or a [`KeyRange`], for
/// example of a prefix.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// use std::ops::Bound;
/// let counts = db.tree::<u32, u64>("counts")?;
/// for n in 0..10 {
///     counts.put(&n, &0)?;
/// }
/// let behind = (Bound::Excluded(3), Bound::Unbounded);
/// assert_eq!((counts.count(3..7)?, counts.count(..=3)?, counts.count(behind)?), (4, 4, 6));
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no range of keys of type `{K}`",
    note = "bounds are keys or their borrowed forms, all of one type: \"a\"..\"c\" for String, \
            &b\"a\"[..]..&b\"cd\"[..] for bytes"
)]
pub trait KeyBounds<K> {
    /// Returns the range of encoded keys.
    ///
    /// ```
    /// use millpond::codec::KeyBounds;
    /// let range = KeyBounds::<u16>::to_key_range(&(1..3));
    /// assert!(range.contains(&[0, 2]) && !range.contains(&[0, 3]));
    /// ```
    fn to_key_range(&self) -> KeyRange;
}

macro_rules! key_bounds {
    ($($range:ident)*) => {$(
        impl<K, Q: KeyLike<K>> KeyBounds<K> for $range<Q> {
            fn to_key_range(&self) -> KeyRange {
                let bytes = |bound: Bound<&Q>| bound.map(|key| key.to_key_bytes());
                KeyRange { start: bytes(self.start_bound()), end: bytes(self.end_bound()) }
            }
        }
    )*};
}
key_bounds! { Range RangeFrom RangeInclusive RangeTo RangeToInclusive }

impl<K, Q: KeyLike<K>> KeyBounds<K> for (Bound<Q>, Bound<Q>) {
    fn to_key_range(&self) -> KeyRange {
        let bytes = |bound: &Bound<Q>| bound.as_ref().map(|key| key.to_key_bytes());
        KeyRange { start: bytes(&self.0), end: bytes(&self.1) }
    }
}

impl<K> KeyBounds<K> for RangeFull {
    fn to_key_range(&self) -> KeyRange {
        KeyRange::ALL
    }
}

impl<K> KeyBounds<K> for KeyRange {
    fn to_key_range(&self) -> KeyRange {
        self.clone()
    }
}

impl<K, R: KeyBounds<K>> KeyBounds<K> for &R {
    fn to_key_range(&self) -> KeyRange {
        (**self).to_key_range()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::key::EncodeKey;

    #[test]
    fn a_range_of_bytes_holds_the_keys_that_the_range_of_keys_holds() {
        let mut random = fastrand::Rng::with_seed(51);
        for _ in 0..20_000 {
            let (low, high, key) = (random.i8(-4..5), random.i8(-4..5), random.i8(-4..5));
            let bytes = key.to_key_bytes();
            let check = |range: KeyRange, is_inside: bool| {
                assert_eq!(range.contains(&bytes), is_inside, "{key} in {range:?}");
                assert!(!(is_inside && range.is_empty()));
            };
            check(KeyRange::of::<i8, _>(low..high), (low..high).contains(&key));
            check(KeyRange::of::<i8, _>(low..=high), (low..=high).contains(&key));
            check(KeyRange::of::<i8, _>(low..), key >= low);
            check(KeyRange::of::<i8, _>(..high), key < high);
            let open = (Bound::Excluded(low), Bound::Included(high));
            check(KeyRange::of::<i8, i8>(open), key > low && key <= high);
            check(KeyRange::ALL, true);
        }
    }

    #[test]
    fn a_prefix_is_the_range_of_what_begins_with_it() {
        type K = (String, u32);
        let range = KeyRange::of_prefix::<K>(&("ab",));
        assert!(range.contains(&("ab", 0u32).to_key_bytes()));
        assert!(range.contains(&("ab", u32::MAX).to_key_bytes()));
        for other in ["a", "abc", "ab\0", "b", ""] {
            assert!(!range.contains(&(other, 7u32).to_key_bytes()), "{other}");
        }
        let strings = KeyRange::of_prefix::<String>("ab");
        assert!(strings.contains(b"ab") && strings.contains(b"ab\xFF") && !strings.contains(b"ac"));
        assert_eq!(KeyRange::of_prefix::<Vec<u8>>(&[0xFF]).end, Bound::Unbounded);
        assert!(KeyRange::of_prefix::<Vec<u8>>(&[0u8; 0]).contains(b""));
    }

    #[test]
    fn ranges_take_borrowed_bounds_and_know_when_they_are_empty() {
        let range = KeyRange::of::<String, _>("b".."d");
        assert!(range.contains(b"c") && !range.contains(b"d") && !range.is_empty());
        assert!(KeyRange::of::<String, _>("d".."b").is_empty());
        assert!(KeyRange::of::<String, _>("b".."b").is_empty());
        assert!(!KeyRange::of::<String, _>("b"..="b").is_empty());
        assert!(KeyRange::of::<String, _>(.."").is_empty() && !KeyRange::ALL.is_empty());
    }
}
