//! The writing verbs of a hash index.

use crate::api::context::{Writes, update_once};
use crate::api::hash_index::HashIndex;
use crate::api::hash_index::calls::{self, Change};
use crate::api::scan::Scan;
use crate::encoding::key::{Key, KeyLike};
use crate::encoding::value::{EncodeValue, Value, ValueLike};
use crate::store::error::Error;

impl<K: Key, V: Value, At: Writes> HashIndex<K, V, At> {
    /// Inserts an entry or replaces its value; returns the previous value.
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
    /// [`Error::ReadOnly`], an entry that is too long, or the store failed. All writing methods
    /// return these errors.
    #[inline]
    pub fn insert<Q, W>(&self, key: &Q, value: &W) -> Result<Option<V>, Error>
    where
        Q: KeyLike<K> + ?Sized,
        W: ValueLike<V> + ?Sized,
    {
        let mut old = Vec::new();
        let existed =
            value.with_encoded(|value| self.change(key, Change::Put(value), Some(&mut old)))?;
        self.decode_optional(existed.then_some(old))
    }

    /// Inserts an entry or replaces its value; returns `true` if the key existed. The fastest way
    /// to write.
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
    /// Same as [`HashIndex::insert`].
    #[inline]
    pub fn put<Q, W>(&self, key: &Q, value: &W) -> Result<bool, Error>
    where
        Q: KeyLike<K> + ?Sized,
        W: ValueLike<V> + ?Sized,
    {
        value.with_encoded(|value| self.change(key, Change::Put(value), None))
    }

    /// Inserts an entry if its key is new; returns `false`, and changes nothing, if the key exists.
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
    /// Same as [`HashIndex::insert`].
    #[inline]
    pub fn insert_if_absent<Q, W>(&self, key: &Q, value: &W) -> Result<bool, Error>
    where
        Q: KeyLike<K> + ?Sized,
        W: ValueLike<V> + ?Sized,
    {
        value.with_encoded(|value| self.change(key, Change::InsertIfAbsent(value), None))
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
    /// Same as [`HashIndex::insert`].
    #[inline]
    pub fn remove<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error> {
        let mut old = Vec::new();
        let removed = self.change(key, Change::Remove, Some(&mut old))?;
        self.decode_optional(removed.then_some(old))
    }

    /// Removes an entry; returns `true` if the key existed.
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
    /// Same as [`HashIndex::insert`].
    #[inline]
    pub fn delete<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<bool, Error> {
        self.change(key, Change::Remove, None)
    }

    /// Removes all entries and frees their pages; returns the number of entries.
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
    /// Same as [`HashIndex::insert`].
    pub fn clear(&self) -> Result<u64, Error> {
        let Some(inside) = self.context.inside() else { return calls::clear(self.handle()) };
        inside.lock_all(self.handle())?;
        let keys: Vec<_> = self.raw_keys()?;
        let mut removed = 0;
        for key in keys {
            let gone = calls::change(Some(inside), self.handle(), &key, Change::Remove, None)?;
            removed += u64::from(gone);
        }
        Ok(removed)
    }

    /// Replaces the value of an existing key; returns `false`, and changes nothing, if there is no
    /// such key.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<Vec<u8>, Vec<u8>>("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert!(sessions.replace(b"4f1c", b"18")?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`HashIndex::insert`].
    #[inline]
    pub fn replace<Q, W>(&self, key: &Q, value: &W) -> Result<bool, Error>
    where
        Q: KeyLike<K> + ?Sized,
        W: ValueLike<V> + ?Sized,
    {
        value.with_encoded(|value| self.change(key, Change::Replace(value), None))
    }

    /// Sets the entry of `key` to `new` if it equals `expected`, where `None` means no entry.
    /// Returns `true` if it was equal.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<Vec<u8>, Vec<u8>>("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert!(sessions.compare_and_swap(b"4f1c", Some(b"17"), None)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`HashIndex::insert`].
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
        self.change(key, Change::Swap(expected.as_deref(), new.as_deref()), None)
    }

    /// Lets `f` change the bytes of a value, but not their number; returns `None` if there is no
    /// such key. `f` runs under the bucket's latch: it must be short and must not use the store.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<Vec<u8>, Vec<u8>>("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// sessions.update_in_place(b"4f1c", |value| value[0] = b'9')?;
    /// assert_eq!(sessions.get(b"4f1c")?, Some(b"97".to_vec()));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`HashIndex::insert`].
    pub fn update_in_place<Q: KeyLike<K> + ?Sized, R>(
        &self,
        key: &Q,
        f: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<Option<R>, Error> {
        let inside = self.context.inside();
        key.with_encoded(|key| {
            update_once(f, |once| calls::update_in_place(inside, self.handle(), key, once))
        })
    }

    #[inline]
    fn change<Q: KeyLike<K> + ?Sized>(
        &self,
        key: &Q,
        change: Change<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, Error> {
        let inside = self.context.inside();
        key.with_encoded(|key| calls::change(inside, self.handle(), key, change, old))
    }

    /// Returns the encoded keys of all entries.
    fn raw_keys(&self) -> Result<Vec<Vec<u8>>, Error> {
        let (mut entries, mut keys) =
            (Scan::begin(self.handle(), self.context.inside(), 0), Vec::new());
        while let Some(entry) = entries.next(true) {
            keys.push(entry?.key);
        }
        Ok(keys)
    }
}
