//! The entries of a range with typed keys and values, wherever they are read.

use std::marker::PhantomData;

use crate::api::place::Place;
use crate::api::place::range::RawRange;
use crate::api::raw::extract::Extract;
use crate::encoding::codec::DecodeError;
use crate::encoding::key::{DecodeKey, Key};
use crate::encoding::value::{DecodeValue, Value};
use crate::store::error::Error;

pub(crate) fn decoded<T>(name: &str, decoded: Result<T, impl Into<BadEntry>>) -> Result<T, Error> {
    decoded.map_err(|error| {
        let BadEntry { key, error } = error.into();
        Error::Decode { tree: name.to_string(), key, error }
    })
}

/// Why an entry cannot be decoded, and its key, if that is known.
pub(crate) struct BadEntry {
    key: Option<Vec<u8>>,
    error: DecodeError,
}

impl BadEntry {
    pub(crate) fn at(key: &[u8]) -> impl FnOnce(DecodeError) -> BadEntry {
        |error| BadEntry { key: Some(key.to_vec()), error }
    }
}

impl From<DecodeError> for BadEntry {
    fn from(error: DecodeError) -> BadEntry {
        BadEntry { key: None, error }
    }
}

/// The entries of a range of a typed tree, from both ends. After an error it ends. What it shows
/// depends on where it reads; see [`RawRange`].
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
    raw: RawRange<'t>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<'t, K: Key, V: Value> Range<'t, K, V> {
    pub(crate) fn new(raw: RawRange<'t>) -> Range<'t, K, V> {
        Range { raw, types: PhantomData }
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
        self.raw = self.raw.as_scan();
        self
    }
}

type Decoded<K, V> = Result<(K, V), BadEntry>;

pub(crate) fn decode_entry<K: Key, V: Value>((key, value): (&[u8], &[u8])) -> Decoded<K, V> {
    let entry = || Ok((<K as DecodeKey<'_>>::decode(key)?, <V as DecodeValue<'_>>::decode(value)?));
    entry().map_err(BadEntry::at(key))
}

fn item<K, V>(
    raw: &mut RawRange<'_>,
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
        let next = self.raw.next_entry().map(|next| next.map(decode_entry));
        item(&mut self.raw, next)
    }

    /// The entry behind `n` others, which are passed over without being decoded.
    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        self.raw.pass_items(n, true).or_else(|| self.next())
    }
}

impl<K: Key, V: Value> DoubleEndedIterator for Range<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let next = self.raw.next_entry_back().map(|next| next.map(decode_entry));
        item(&mut self.raw, next)
    }

    fn nth_back(&mut self, n: usize) -> Option<Self::Item> {
        self.raw.pass_items(n, false).or_else(|| self.next_back())
    }
}

/// The entries that `extract_if` of a typed tree removes, as they are taken from it.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let jobs = db.tree::<u32, String>("jobs")?;
/// jobs.put(&1, "sweep")?;
/// jobs.put(&2, "mow")?;
/// for done in jobs.extract_if(.., |_, job| job == "sweep") {
///     assert_eq!(done?, (1, "sweep".to_string()));
/// }
/// assert_eq!(jobs.len()?, 1);
/// # Ok(()) }
/// ```
pub struct ExtractIf<'t, K, V, F> {
    place: Place<'t>,
    extract: Extract<'t>,
    judge: F,
    types: PhantomData<fn() -> (K, V)>,
}

impl<'t, K, V, F> ExtractIf<'t, K, V, F> {
    pub(crate) fn new(place: Place<'t>, extract: Extract<'t>, judge: F) -> Self {
        ExtractIf { place, extract, judge, types: PhantomData }
    }
}

impl<K: Key, V: Value, F: FnMut(&K, &V) -> bool> Iterator for ExtractIf<'_, K, V, F> {
    type Item = Result<(K, V), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let (judge, name, mut removed) = (&mut self.judge, self.place.name(), None);
        let judge = &mut |key: &[u8], value: &[u8]| {
            let entry: (K, V) = decoded(name, decode_entry((key, value)))?;
            let is_chosen = judge(&entry.0, &entry.1);
            removed = Some(entry);
            Ok(is_chosen)
        };
        match self.extract.step(judge, false) {
            Ok(true) => removed.map(Ok),
            Ok(false) => None,
            Err(error) => {
                self.extract.end();
                Some(Err(error))
            }
        }
    }
}
