//! Typed hash indexes.

use std::fmt;
use std::marker::PhantomData;

use crate::api::place::at::{Alone, InTxn, Where, Writes};
use crate::api::raw::hash_entries::RawEntries;
use crate::api::raw::hash_index::RawHashIndex;
use crate::api::typed::range::decoded;
use crate::encoding::key::{DecodeKey, Key, KeyLike};
use crate::encoding::value::{DecodeValue, Value, ValueLike};
use crate::hash_index::HashStats;
use crate::store::error::Error;

/// A named hash index: an unordered map from `K` to `V`, like a `HashMap` that outgrows memory.
///
/// Keys and values are taken in their borrowed forms, too: `&str` for `String`, `&[u8]` for
/// `Vec<u8>`. A handle: clones are cheap, and any thread may use them. Each call takes effect as a
/// whole.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let sessions = db.hash_index::<String, u64>("sessions")?;
/// sessions.insert("4f1c", &17)?;
/// assert_eq!(sessions.get("4f1c")?, Some(17));
/// assert_eq!(sessions.remove("4f1c")?, Some(17));
/// # Ok(()) }
/// ```
pub struct HashIndex<K, V, P = Alone> {
    raw: RawHashIndex<P>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V, P: Clone> Clone for HashIndex<K, V, P> {
    fn clone(&self) -> Self {
        HashIndex { raw: self.raw.clone(), types: PhantomData }
    }
}

impl<K, V, P: Where> fmt::Debug for HashIndex<K, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HashIndex").field("name", &self.raw.name()).finish_non_exhaustive()
    }
}

impl RawHashIndex {
    /// The same index, read and written with these types.
    pub fn typed<K: Key, V: Value>(self) -> HashIndex<K, V> {
        HashIndex::new(self)
    }
}

impl<K: Key, V: Value> HashIndex<K, V> {
    /// Walks the whole index and says what it is made of.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<String, u64>("sessions")?;
    /// sessions.put("4f1c", &17)?;
    /// println!("{:?}", sessions.stats()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`HashIndex::get`].
    pub fn stats(&self) -> Result<HashStats, Error> {
        self.raw.stats()
    }
}

impl<K: Key, V: Value, P: Where> HashIndex<K, V, P> {
    pub(crate) fn new(raw: RawHashIndex<P>) -> HashIndex<K, V, P> {
        HashIndex { raw, types: PhantomData }
    }

    /// The index of bytes below.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<String, u64>("sessions")?;
    /// sessions.put("4f1c", &17)?;
    /// assert!(sessions.raw().contains(b"4f1c")?);
    /// # Ok(()) }
    /// ```
    pub fn raw(&self) -> &RawHashIndex<P> {
        &self.raw
    }

    /// Its name.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<String, u64>("sessions")?;
    /// sessions.put("4f1c", &17)?;
    /// assert_eq!(sessions.name(), "sessions");
    /// # Ok(()) }
    /// ```
    pub fn name(&self) -> &str {
        self.raw.name()
    }

    fn optional(&self, bytes: Option<Vec<u8>>) -> Result<Option<V>, Error> {
        let value = |bytes: Vec<u8>| decoded(self.name(), <V as DecodeValue<'_>>::decode(&bytes));
        bytes.map(value).transpose()
    }

    /// The value of `key`.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<String, u64>("sessions")?;
    /// sessions.put("4f1c", &17)?;
    /// assert_eq!(sessions.get("4f1c")?, Some(17));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Decode`] if the value is not a `V`, or the store failed; the same for all that
    /// reads.
    #[inline]
    pub fn get<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error> {
        let found = self.get_with(key, |bytes| <V as DecodeValue<'_>>::decode(bytes))?;
        found.map(|value| decoded(self.name(), value)).transpose()
    }

    /// Hands a copy of the bytes of the value to `f`; `None` if there is no such key.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<String, u64>("sessions")?;
    /// sessions.put("4f1c", &17)?;
    /// assert_eq!(sessions.get_with("4f1c", |value| value.len())?, Some(8));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`HashIndex::get`].
    #[inline]
    pub fn get_with<Q: KeyLike<K> + ?Sized, R>(
        &self,
        key: &Q,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        key.with_encoded(|key| self.raw.get_with(key, f))
    }

    /// Hands the bytes of the value itself to `f`, where they lie in their page; see
    /// [`Tree::read`](crate::api::typed::tree::Tree::read).
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<String, u64>("sessions")?;
    /// sessions.put("4f1c", &17)?;
    /// assert_eq!(sessions.read("4f1c", |value| value[0])?, Some(17));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`HashIndex::get`].
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
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<String, u64>("sessions")?;
    /// sessions.put("4f1c", &17)?;
    /// assert!(sessions.contains("4f1c")?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`HashIndex::get`].
    #[inline]
    pub fn contains<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<bool, Error> {
        key.with_encoded(|key| self.raw.contains(key))
    }

    /// All entries, in no order that means anything.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<String, u64>("sessions")?;
    /// sessions.put("4f1c", &17)?;
    /// assert_eq!(sessions.iter().count(), 1);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn iter(&self) -> Entries<'_, K, V> {
        Entries { raw: self.raw.iter(), types: PhantomData }
    }

    /// Counts the entries: a walk over all buckets.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<String, u64>("sessions")?;
    /// sessions.put("4f1c", &17)?;
    /// assert_eq!(sessions.len()?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`HashIndex::get`].
    #[track_caller]
    pub fn len(&self) -> Result<u64, Error> {
        self.raw.len()
    }

    /// Whether there is no entry.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<String, u64>("sessions")?;
    /// sessions.put("4f1c", &17)?;
    /// assert!(!sessions.is_empty()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`HashIndex::get`].
    #[track_caller]
    pub fn is_empty(&self) -> Result<bool, Error> {
        self.raw.is_empty()
    }
}

impl<K: Key, V: Value> HashIndex<K, V, InTxn<'_>> {
    /// The value of `key`, which is locked as if it were written: for what is read to be changed.
    /// Two transactions that only read at first, and then both write, end in a deadlock.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<String, u64>("sessions")?;
    /// let tx = db.begin()?;
    /// let inside = tx.hash_index(&sessions);
    /// let count = inside.get_for_update("4f1c")?.unwrap_or(0);
    /// inside.put("4f1c", &(count + 1))?;
    /// tx.commit()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`HashIndex::get`].
    pub fn get_for_update<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error> {
        let found = key.with_encoded(|key| self.raw.get_for_update(key))?;
        self.optional(found)
    }
}

impl<K: Key, V: Value, P: Writes> HashIndex<K, V, P> {
    /// Inserts an entry or replaces the value of one; returns the value that was there.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<String, u64>("sessions")?;
    /// sessions.put("4f1c", &17)?;
    /// assert_eq!(sessions.insert("4f1c", &18)?, Some(17));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::ReadOnly`], an entry that is too long, or the store failed; the same for all that
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

    /// Inserts an entry or replaces the value of one; returns whether there was one. The fastest
    /// way to write.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<String, u64>("sessions")?;
    /// sessions.put("4f1c", &17)?;
    /// assert!(sessions.put("4f1c", &18)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`HashIndex::insert`].
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
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<String, u64>("sessions")?;
    /// sessions.put("4f1c", &17)?;
    /// assert!(!sessions.insert_if_absent("4f1c", &18)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`HashIndex::insert`].
    #[inline]
    pub fn insert_if_absent<Q, W>(&self, key: &Q, value: &W) -> Result<bool, Error>
    where
        Q: KeyLike<K> + ?Sized,
        W: ValueLike<V> + ?Sized,
    {
        key.with_encoded(|key| value.with_encoded(|value| self.raw.insert_if_absent(key, value)))
    }

    /// Removes an entry; returns its value.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<String, u64>("sessions")?;
    /// sessions.put("4f1c", &17)?;
    /// assert_eq!(sessions.remove("4f1c")?, Some(17));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`HashIndex::insert`].
    #[inline]
    pub fn remove<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error> {
        let old = key.with_encoded(|key| self.raw.remove(key))?;
        self.optional(old)
    }

    /// Removes an entry; returns whether there was one.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<String, u64>("sessions")?;
    /// sessions.put("4f1c", &17)?;
    /// assert!(sessions.delete("4f1c")?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`HashIndex::insert`].
    #[inline]
    pub fn delete<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<bool, Error> {
        key.with_encoded(|key| self.raw.delete(key))
    }

    /// Removes all entries, and gives their pages back; returns how many there were.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<String, u64>("sessions")?;
    /// sessions.put("4f1c", &17)?;
    /// assert_eq!(sessions.clear()?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`HashIndex::insert`].
    pub fn clear(&self) -> Result<u64, Error> {
        self.raw.clear()
    }
}

/// The entries of a typed hash index. After an error it ends.
pub struct Entries<'t, K, V> {
    raw: RawEntries<'t>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Value> Iterator for Entries<'_, K, V> {
    type Item = Result<(K, V), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.raw.next()?.and_then(|(key, value)| {
            let key = <K as DecodeKey<'_>>::decode(&key);
            let entry = key.and_then(|key| Ok((key, <V as DecodeValue<'_>>::decode(&value)?)));
            decoded(self.raw.name(), entry)
        });
        if entry.is_err() {
            self.raw.end();
        }
        Some(entry)
    }
}

impl<'t, K: Key, V: Value, P: Where> IntoIterator for &'t HashIndex<K, V, P> {
    type Item = Result<(K, V), Error>;
    type IntoIter = Entries<'t, K, V>;

    fn into_iter(self) -> Entries<'t, K, V> {
        self.iter()
    }
}
