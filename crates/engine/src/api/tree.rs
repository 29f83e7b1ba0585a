//! Typed trees.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use crate::api::raw_tree::{RawRange, RawReader, RawTree};
use crate::btree::{BulkOptions, TreeStats};
use crate::encoding::codec::DecodeError;
use crate::encoding::key::{DecodeKey, Key, KeyLike, PrefixOf};
use crate::encoding::key_range::KeyRange;
use crate::encoding::value::{DecodeValue, EncodeValue, Value, ValueLike};
use crate::store::error::Error;

/// A named tree: an ordered map from `K` to `V`, like a `BTreeMap` that outgrows memory.
///
/// Keys and values are taken in their borrowed forms, too: `&str` for `String`, `&[u8]` for
/// `Vec<u8>`. A handle: clones are cheap, and any thread may use them. Each call takes effect as a
/// whole.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let tree = db.tree::<(String, u32), f64>("readings")?;
/// tree.insert(&("oslo", 2), &-3.5)?;
/// tree.insert(&("oslo", 1), &-4.0)?;
/// tree.insert(&("rome", 1), &11.0)?;
/// let oslo: Result<Vec<_>, _> = tree.prefix(&("oslo",)).rev().collect();
/// assert_eq!(oslo?, [(("oslo".to_string(), 2), -3.5), (("oslo".to_string(), 1), -4.0)]);
/// # Ok(()) }
/// ```
pub struct Tree<K, V> {
    raw: RawTree,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Clone for Tree<K, V> {
    fn clone(&self) -> Self {
        Tree { raw: self.raw.clone(), types: PhantomData }
    }
}

impl<K, V> fmt::Debug for Tree<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("name", &self.raw.name()).finish_non_exhaustive()
    }
}

pub(crate) fn decoded<T>(name: &str, decoded: Result<T, DecodeError>) -> Result<T, Error> {
    decoded.map_err(|error| Error::Decode { tree: name.to_string(), error })
}

impl<K: Key, V: Value> Tree<K, V> {
    pub(crate) fn new(raw: RawTree) -> Tree<K, V> {
        Tree { raw, types: PhantomData }
    }

    /// The tree of bytes below.
    pub fn raw(&self) -> &RawTree {
        &self.raw
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.raw.name()
    }

    fn value(&self, bytes: &[u8]) -> Result<V, Error> {
        decoded(self.name(), <V as DecodeValue<'_>>::decode(bytes))
    }

    fn optional(&self, bytes: Option<Vec<u8>>) -> Result<Option<V>, Error> {
        bytes.map(|bytes| self.value(&bytes)).transpose()
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// [`Error::Decode`] if the value is not a `V`, or the store failed; so for all that reads.
    #[inline]
    pub fn get<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error> {
        let found = key.with_encoded(|key| {
            self.raw.get_with(key, |bytes| <V as DecodeValue<'_>>::decode(bytes))
        })?;
        found.map(|value| decoded(self.name(), value)).transpose()
    }

    /// Hands the bytes of the value to `f`; `None` if there is no such key. They are a copy, on the
    /// stack while they are few: what lies in the page may change until it was validated.
    /// [`Tree::read`] makes none. Strings and byte strings are their own encoding, and anything
    /// else is read by its [`DecodeValue`].
    ///
    /// # Errors
    /// As [`Tree::get`].
    #[inline]
    pub fn get_with<Q: KeyLike<K> + ?Sized, R>(
        &self,
        key: &Q,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        key.with_encoded(|key| self.raw.get_with(key, f))
    }

    /// Hands the bytes of the value itself to `f`, where they lie in their page: for large values.
    /// The page is latched until `f` returns; [`RawTree::read`] says what `f` may do meanwhile, and
    /// when [`Tree::get_with`] is faster.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let poems = db.tree::<u32, String>("poems")?;
    /// poems.insert(&1, &"A frog jumps in.\n".repeat(40))?;
    /// let lines = poems.read(&1, |text| text.iter().filter(|c| **c == b'\n').count())?;
    /// assert_eq!(lines, Some(40));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tree::get`].
    #[inline]
    pub fn read<Q: KeyLike<K> + ?Sized, R>(
        &self,
        key: &Q,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        key.with_encoded(|key| self.raw.read(key, f))
    }

    /// Whether there is such a key.
    ///
    /// # Errors
    /// As [`Tree::get`].
    #[inline]
    pub fn contains<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<bool, Error> {
        key.with_encoded(|key| self.raw.contains(key))
    }

    /// Inserts an entry or replaces the value of one; answers with the value that was there.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], a key or value that is too long, or the store failed; so for all that
    /// writes.
    #[inline]
    pub fn insert<Q, W>(&self, key: &Q, value: &W) -> Result<Option<V>, Error>
    where
        Q: KeyLike<K> + ?Sized,
        W: ValueLike<V> + ?Sized,
    {
        let old = key.with_encoded(|key| value.with_encoded(|value| self.raw.insert(key, value)));
        self.optional(old?)
    }

    /// Inserts an entry or replaces the value of one; answers whether there was one. The fastest
    /// way to write.
    ///
    /// # Errors
    /// As [`Tree::insert`].
    #[inline]
    pub fn put<Q, W>(&self, key: &Q, value: &W) -> Result<bool, Error>
    where
        Q: KeyLike<K> + ?Sized,
        W: ValueLike<V> + ?Sized,
    {
        key.with_encoded(|key| value.with_encoded(|value| self.raw.put(key, value)))
    }

    /// Inserts an entry; `false`, and nothing changed, if the key is there already.
    ///
    /// # Errors
    /// As [`Tree::insert`].
    #[inline]
    pub fn insert_if_absent<Q, W>(&self, key: &Q, value: &W) -> Result<bool, Error>
    where
        Q: KeyLike<K> + ?Sized,
        W: ValueLike<V> + ?Sized,
    {
        key.with_encoded(|key| value.with_encoded(|value| self.raw.insert_if_absent(key, value)))
    }

    /// Replaces the value of a key; `false`, and nothing changed, if the key is not there.
    ///
    /// # Errors
    /// As [`Tree::insert`].
    #[inline]
    pub fn replace<Q, W>(&self, key: &Q, value: &W) -> Result<bool, Error>
    where
        Q: KeyLike<K> + ?Sized,
        W: ValueLike<V> + ?Sized,
    {
        key.with_encoded(|key| value.with_encoded(|value| self.raw.replace(key, value)))
    }

    /// Sets the entry of `key` to `new` if it is `expected`, where `None` is no entry; answers
    /// whether it was. Values are compared as bytes.
    ///
    /// # Errors
    /// As [`Tree::insert`].
    pub fn compare_and_swap<Q, W>(
        &self,
        key: &Q,
        expected: Option<&W>,
        new: Option<&W>,
    ) -> Result<bool, Error>
    where
        Q: KeyLike<K> + ?Sized,
        W: ValueLike<V> + ?Sized,
    {
        let bytes = |value: Option<&W>| value.map(EncodeValue::to_value_bytes);
        let (expected, new) = (bytes(expected), bytes(new));
        key.with_encoded(|key| self.raw.compare_and_swap(key, expected.as_deref(), new.as_deref()))
    }

    /// Sets the entry of `key` to what `f` makes of it, where `None` is no entry; answers with
    /// that. Others may write meanwhile: `f` is then called again with what they wrote.
    ///
    /// # Errors
    /// As [`Tree::get`] and [`Tree::insert`].
    pub fn update<Q: KeyLike<K> + ?Sized>(
        &self,
        key: &Q,
        mut f: impl FnMut(Option<V>) -> Option<V>,
    ) -> Result<Option<V>, Error> {
        key.with_encoded(|key| {
            loop {
                let old = self.raw.get(key)?;
                let before = old.as_deref().map(|bytes| self.value(bytes)).transpose()?;
                let after = f(before);
                let new = after.as_ref().map(EncodeValue::to_value_bytes);
                if self.raw.compare_and_swap(key, old.as_deref(), new.as_deref())? {
                    return Ok(after);
                }
            }
        })
    }

    /// Lets `f` change the bytes of a value, but not how many they are; see
    /// [`RawTree::update_in_place`].
    ///
    /// # Errors
    /// As [`Tree::insert`].
    pub fn update_in_place<Q: KeyLike<K> + ?Sized, R>(
        &self,
        key: &Q,
        f: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<Option<R>, Error> {
        key.with_encoded(|key| self.raw.update_in_place(key, f))
    }

    /// Removes an entry; answers with its value.
    ///
    /// # Errors
    /// As [`Tree::insert`].
    #[inline]
    pub fn remove<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error> {
        let old = key.with_encoded(|key| self.raw.remove(key))?;
        self.optional(old)
    }

    /// Removes an entry; answers whether there was one.
    ///
    /// # Errors
    /// As [`Tree::insert`].
    #[inline]
    pub fn delete<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<bool, Error> {
        key.with_encoded(|key| self.raw.delete(key))
    }

    /// Removes all entries of a range; answers how many.
    ///
    /// # Errors
    /// As [`Tree::insert`].
    pub fn remove_range<Q: KeyLike<K>>(&self, range: impl RangeBounds<Q>) -> Result<u64, Error> {
        self.raw.remove_range(&KeyRange::of::<K, Q>(range))
    }

    /// Removes all entries whose keys begin with `prefix`; answers how many.
    ///
    /// # Errors
    /// As [`Tree::insert`].
    pub fn remove_prefix(&self, prefix: &(impl PrefixOf<K> + ?Sized)) -> Result<u64, Error> {
        self.raw.remove_range(&KeyRange::of_prefix::<K>(prefix))
    }

    /// Removes all entries; answers how many there were.
    ///
    /// # Errors
    /// As [`Tree::insert`].
    pub fn clear(&self) -> Result<u64, Error> {
        self.raw.clear()
    }

    /// All entries, in order.
    #[track_caller]
    pub fn iter(&self) -> Range<'_, K, V> {
        Range::new(self.raw.iter())
    }

    /// The entries of a range of keys.
    #[track_caller]
    pub fn range<Q: KeyLike<K>>(&self, range: impl RangeBounds<Q>) -> Range<'_, K, V> {
        Range::new(self.raw.key_range(&KeyRange::of::<K, Q>(range)))
    }

    /// The entries whose keys begin with `prefix`: the first elements of a tuple, the first
    /// characters of a string.
    #[track_caller]
    pub fn prefix(&self, prefix: &(impl PrefixOf<K> + ?Sized)) -> Range<'_, K, V> {
        Range::new(self.raw.key_range(&KeyRange::of_prefix::<K>(prefix)))
    }

    /// The first entry.
    ///
    /// # Errors
    /// As [`Tree::get`].
    #[track_caller]
    pub fn first(&self) -> Result<Option<(K, V)>, Error> {
        self.iter().next().transpose()
    }

    /// The last entry.
    ///
    /// # Errors
    /// As [`Tree::get`].
    #[track_caller]
    pub fn last(&self) -> Result<Option<(K, V)>, Error> {
        self.iter().next_back().transpose()
    }

    /// Counts the entries that are committed: a walk over all leaves, and over all keys where
    /// somebody writes meanwhile. [`RawTree::len_estimate`] is cheap.
    ///
    /// # Errors
    /// As [`Tree::get`].
    #[track_caller]
    pub fn len(&self) -> Result<u64, Error> {
        self.raw.len()
    }

    /// Whether there is no entry.
    ///
    /// # Errors
    /// As [`Tree::get`].
    pub fn is_empty(&self) -> Result<bool, Error> {
        self.raw.is_empty()
    }

    /// Walks the whole tree and says what it is made of.
    ///
    /// # Errors
    /// As [`Tree::get`].
    pub fn stats(&self) -> Result<TreeStats, Error> {
        self.raw.stats()
    }

    /// Loads entries whose keys ascend into this tree, which must be empty; answers how many. Much
    /// faster than inserting them, and leaves are as full as `options` say.
    ///
    /// # Errors
    /// [`Error::Bulk`], or as [`Tree::insert`].
    pub fn bulk_load<Q, W>(
        &self,
        rows: impl IntoIterator<Item = (Q, W)>,
        options: BulkOptions,
    ) -> Result<u64, Error>
    where
        Q: KeyLike<K>,
        W: ValueLike<V>,
    {
        let rows = rows.into_iter();
        let rows = rows.map(|(key, value)| (key.to_key_bytes(), value.to_value_bytes()));
        self.raw.bulk_load(rows, options)
    }

    /// The encoding of a value as a stream, for values too large for memory: that of `Vec<u8>` and
    /// `String` is their bytes.
    ///
    /// # Errors
    /// As [`Tree::get`].
    pub fn reader<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<Option<RawReader<'_>>, Error> {
        self.raw.reader(&key.to_key_bytes())
    }

    /// Writes a value of `len` bytes out of a stream; answers whether there was one. The bytes must
    /// be the encoding of a `V`.
    ///
    /// # Errors
    /// [`Error::Stream`], or as [`Tree::insert`].
    pub fn put_from<Q: KeyLike<K> + ?Sized>(
        &self,
        key: &Q,
        len: u64,
        source: impl io::Read,
    ) -> Result<bool, Error> {
        key.with_encoded(|key| self.raw.put_from(key, len, source))
    }
}

/// The entries of a range of a typed tree, from both ends. After an error it ends.
pub struct Range<'t, K, V> {
    raw: RawRange<'t>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<'t, K: Key, V: Value> Range<'t, K, V> {
    pub(crate) fn new(raw: RawRange<'t>) -> Range<'t, K, V> {
        Range { raw, types: PhantomData }
    }

    /// A large scan: leaves that only scans have referenced leave memory before all others, the
    /// oldest first, whichever policy decides.
    #[must_use]
    pub fn as_scan(mut self) -> Self {
        self.raw = self.raw.as_scan();
        self
    }
}

type Decoded<K, V> = Result<(K, V), DecodeError>;

fn entry<K: Key, V: Value>((key, value): (&[u8], &[u8])) -> Decoded<K, V> {
    Ok((<K as DecodeKey<'_>>::decode(key)?, <V as DecodeValue<'_>>::decode(value)?))
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
        let next = self.raw.next_entry().map(|next| next.map(entry));
        item(&mut self.raw, next)
    }
}

impl<K: Key, V: Value> DoubleEndedIterator for Range<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let next = self.raw.next_entry_back().map(|next| next.map(entry));
        item(&mut self.raw, next)
    }
}

impl<'t, K: Key, V: Value> IntoIterator for &'t Tree<K, V> {
    type Item = Result<(K, V), Error>;
    type IntoIter = Range<'t, K, V>;

    #[track_caller]
    fn into_iter(self) -> Range<'t, K, V> {
        self.iter()
    }
}
