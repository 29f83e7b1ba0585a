//! The entries of a range of a tree.

use std::marker::PhantomData;

use crate::api::tree::byte_range::ByteRange;
use crate::btree::Entry;
use crate::encoding::codec::DecodeError;
use crate::encoding::key::{DecodeKey, Key};
use crate::encoding::value::{DecodeValue, Value};
use crate::store::error::Error;

pub(crate) fn decoded<T>(name: &str, decoded: Result<T, BadEntry>) -> Result<T, Error> {
    decoded.map_err(|BadEntry { key, error }| Error::Decode { tree: name.to_string(), key, error })
}

/// The error of decoding an entry, with its key if known.
pub(crate) struct BadEntry {
    key: Option<Vec<u8>>,
    error: DecodeError,
}

impl BadEntry {
    pub(crate) fn new(key: Option<&[u8]>, error: DecodeError) -> BadEntry {
        BadEntry { key: key.map(<[u8]>::to_vec), error }
    }
}

/// The entries of a range of a tree, from both ends.
///
/// The iterator returns decoded entries; [`Range::next_entry`] lends encoded ones. It ends after an
/// error. Outside transactions and snapshots it shows committed entries, each leaf as it was at
/// some moment. In a transaction it shows the transaction's view, and locks it. In a snapshot it
/// shows the entries committed when that began.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let squares = db.tree::<u32, u64>("squares")?;
/// for i in 0..100 {
///     squares.put(&i, &(u64::from(i) * u64::from(i)))?;
/// }
/// let large: Result<Vec<_>, Error> = squares.range(..50).rev().take(2).collect();
/// assert_eq!(large?, [(49, 2401), (48, 2304)]);
/// # Ok(()) }
/// ```
pub struct Range<'t, K, V> {
    raw: ByteRange<'t>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<'t, K: Key, V: Value> Range<'t, K, V> {
    pub(crate) fn new(raw: ByteRange<'t>) -> Range<'t, K, V> {
        Range { raw, types: PhantomData }
    }

    /// Leaves values unread: only keys are decoded.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let birds = db.tree::<String, u32>("birds")?;
    /// birds.put("heron", &3)?;
    /// let names: Result<Vec<_>, Error> = birds.iter().keys_only().map(|row| Ok(row?.0)).collect();
    /// assert_eq!(names?, ["heron"]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn keys_only(self) -> Range<'t, K, ()> {
        Range::new(self.raw.keys_only())
    }

    /// Returns the same range with keys and values in encoded form.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let birds = db.tree::<String, u32>("birds")?;
    /// birds.put("heron", &3)?;
    /// let first = birds.iter().raw().next().transpose()?;
    /// assert_eq!(first, Some((b"heron".to_vec(), vec![3, 0, 0, 0])));
    /// # Ok(()) }
    /// ```
    pub fn raw(self) -> Range<'t, Vec<u8>, Vec<u8>> {
        Range::new(self.raw)
    }

    /// Returns the next entry from the front, encoded, borrowed until the next call. A byte string
    /// is its own encoding.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.raw_tree("ponds")?;
    /// ponds.put(b"mill", b"deep")?;
    /// ponds.put(b"weir", b"wide")?;
    /// let (mut rows, mut bytes) = (ponds.iter(), 0);
    /// while let Some((_, value)) = rows.next_entry()? {
    ///     bytes += value.len();
    /// }
    /// assert_eq!(bytes, 8);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The store failed, or the transaction or the snapshot that the range reads from.
    pub fn next_entry(&mut self) -> Result<Option<Entry<'_>>, Error> {
        self.raw.next_entry()
    }

    /// Returns the next entry from the back, encoded, borrowed until the next call.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.raw_tree("ponds")?;
    /// ponds.put(b"mill", b"deep")?;
    /// ponds.put(b"weir", b"wide")?;
    /// let mut rows = ponds.iter();
    /// assert_eq!(rows.next_entry_back()?, Some((&b"weir"[..], &b"wide"[..])));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Range::next_entry`].
    pub fn next_entry_back(&mut self) -> Result<Option<Entry<'_>>, Error> {
        self.raw.next_entry_back()
    }

    /// Marks a large scan: leaves that only scans have referenced leave memory before all others,
    /// the oldest first, whichever policy decides.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let birds = db.tree::<String, u32>("birds")?;
    /// birds.put("heron", &3)?;
    /// assert_eq!(birds.iter().as_scan().count(), 1);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn as_scan(mut self) -> Self {
        self.raw = self.raw.for_scan();
        self
    }
}

type Decoded<K, V> = Result<(K, V), BadEntry>;

pub(crate) fn decode_entry<K: Key, V: Value>(key: &[u8], value: &[u8]) -> Decoded<K, V> {
    let entry = || Ok((<K as DecodeKey<'_>>::decode(key)?, <V as DecodeValue<'_>>::decode(value)?));
    entry().map_err(|error| BadEntry::new(Some(key), error))
}

fn item<K, V>(
    raw: &mut ByteRange<'_>,
    next: Result<Option<Decoded<K, V>>, Error>,
) -> Option<Result<(K, V), Error>> {
    let entry = match next.transpose()? {
        Ok(entry) => decoded(raw.tree_name(), entry),
        Err(error) => Err(error),
    };
    if entry.is_err() {
        raw.end();
    }
    Some(entry)
}

impl<K: Key, V: Value> Iterator for Range<'_, K, V> {
    type Item = Result<(K, V), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let next =
            self.raw.next_entry().map(|next| next.map(|entry| decode_entry(entry.0, entry.1)));
        item(&mut self.raw, next)
    }

    /// Returns the entry after `n` others, which are skipped without being decoded.
    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        self.raw.pass_items(n, true).or_else(|| self.next())
    }

    /// Counts the remaining entries without decoding them; an error counts as one.
    fn count(mut self) -> usize {
        let (passed, end) = self.raw.pass(usize::MAX, true);
        passed + usize::from(end.is_err())
    }
}

impl<K: Key, V: Value> DoubleEndedIterator for Range<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let next =
            self.raw.next_entry_back().map(|next| next.map(|entry| decode_entry(entry.0, entry.1)));
        item(&mut self.raw, next)
    }

    fn nth_back(&mut self, n: usize) -> Option<Self::Item> {
        self.raw.pass_items(n, false).or_else(|| self.next_back())
    }
}
