//! The writing verbs of a tree.

use std::io;

use crate::api::context::{Writes, update_once};
use crate::api::tree::Tree;
use crate::api::tree::extract::{Extract, ExtractIf};
use crate::api::tree::range::{decode_entry, decoded};
use crate::btree::{WriteCondition, WriteOutcome};
use crate::encoding::key::{Key, KeyLike, PrefixOf};
use crate::encoding::key_range::{KeyBounds, KeyRange};
use crate::encoding::value::{EncodeValue, Value, ValueLike};
use crate::store::error::Error;

impl<K: Key, V: Value, At: Writes> Tree<K, V, At> {
    /// Inserts an entry or replaces its value; returns the previous value.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// assert_eq!((birds.insert("stoat", &7)?, birds.insert("stoat", &8)?), (None, Some(7)));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A key or value that is too long, [`Error::ReadOnly`], [`Error::Decode`], or the store
    /// failed. Inside a transaction: a lock was unavailable ([`Error::is_retriable`]). All writing
    /// methods return these errors.
    #[inline]
    pub fn insert<Q, W>(&self, key: &Q, value: &W) -> Result<Option<V>, Error>
    where
        Q: KeyLike<K> + ?Sized,
        W: ValueLike<V> + ?Sized,
    {
        let mut old = Vec::new();
        let written = self.write_value(key, value, WriteCondition::Always, Some(&mut old))?;
        self.decode_optional(written.existed.then_some(old))
    }

    /// Inserts an entry or replaces its value; returns `true` if the key existed. The fastest way
    /// to write.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// assert!(!birds.put("stoat", &7)? && birds.put("stoat", &8)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `insert`.
    #[inline]
    pub fn put<Q, W>(&self, key: &Q, value: &W) -> Result<bool, Error>
    where
        Q: KeyLike<K> + ?Sized,
        W: ValueLike<V> + ?Sized,
    {
        Ok(self.write_value(key, value, WriteCondition::Always, None)?.existed)
    }

    /// Inserts an entry if its key is new; returns `false`, and changes nothing, if the key exists.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// assert!(birds.insert_if_absent("stoat", &7)? && !birds.insert_if_absent("heron", &7)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `insert`.
    #[inline]
    pub fn insert_if_absent<Q, W>(&self, key: &Q, value: &W) -> Result<bool, Error>
    where
        Q: KeyLike<K> + ?Sized,
        W: ValueLike<V> + ?Sized,
    {
        Ok(self.write_value(key, value, WriteCondition::Absent, None)?.applied)
    }

    /// Replaces the value of an existing key; returns `false`, and changes nothing, if there is no
    /// such key.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// assert!(birds.replace("heron", &7)? && !birds.replace("stoat", &7)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `insert`.
    #[inline]
    pub fn replace<Q, W>(&self, key: &Q, value: &W) -> Result<bool, Error>
    where
        Q: KeyLike<K> + ?Sized,
        W: ValueLike<V> + ?Sized,
    {
        Ok(self.write_value(key, value, WriteCondition::Present, None)?.applied)
    }

    /// Sets the entry of `key` to `new` if it equals `expected`, where `None` means no entry.
    /// Returns `true` if it was equal. Values are compared as bytes.
    ///
    /// A loop of `get` and `compare_and_swap` is not fair: while other threads change the entry, it
    /// may fail for long. `update` is fair: in a tree it locks the key after two tries. A
    /// transaction that reads with `get_for_update` is fair, too.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// assert!(birds.compare_and_swap("heron", Some(&3), Some(&4))?);
    /// assert!(!birds.compare_and_swap("heron", Some(&3), None)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `insert`.
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
        key.with_encoded(|key| {
            let (expected, new) = (expected.as_deref(), new.as_deref());
            self.context.compare_and_swap(self.handle(), key, expected, new)
        })
    }

    /// Replaces the entry of `key` by the result of `f`, where `None` means no entry, and returns
    /// the result. In a tree, `f` runs again if others write in between, and a third time with the
    /// key locked. Inside a transaction the key is locked first, and `f` runs once.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// assert_eq!(birds.update("heron", |eggs| Some(eggs.unwrap_or(0) + 1))?, Some(4));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `insert`.
    pub fn update<Q: KeyLike<K> + ?Sized>(
        &self,
        key: &Q,
        mut f: impl FnMut(Option<V>) -> Option<V>,
    ) -> Result<Option<V>, Error> {
        key.with_encoded(|key| {
            let mut after = None;
            self.context.update(self.handle(), key, &mut |old| {
                after = f(old.map(|bytes| self.decode_value(Some(key), bytes)).transpose()?);
                Ok(after.as_ref().map(EncodeValue::to_value_bytes))
            })?;
            Ok(after)
        })
    }

    /// Lets `f` change the bytes of a value, but not their number; returns `None` if there is no
    /// such key. `f` runs under the leaf's latch: it must be short and must not use the store.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// birds.update_in_place("heron", |eggs| eggs[0] += 1)?;
    /// assert_eq!(birds.get("heron")?, Some(4));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `insert`.
    pub fn update_in_place<Q: KeyLike<K> + ?Sized, R>(
        &self,
        key: &Q,
        f: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<Option<R>, Error> {
        key.with_encoded(|key| {
            update_once(f, |once| self.context.update_in_place(self.handle(), key, once))
        })
    }

    /// Removes an entry; returns its value.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// assert_eq!((birds.remove("heron")?, birds.remove("heron")?), (Some(3), None));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `insert`.
    #[inline]
    pub fn remove<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error> {
        let mut old = Vec::new();
        let removed = self.remove_key(key, Some(&mut old))?;
        self.decode_optional(removed.then_some(old))
    }

    /// Removes an entry; returns `true` if the key existed.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// assert!(birds.delete("heron")? && !birds.delete("heron")?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `insert`.
    #[inline]
    pub fn delete<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<bool, Error> {
        self.remove_key(key, None)
    }

    /// Removes all entries of a range; returns their number. In a tree, the removal happens at one
    /// moment, and whole leaves are removed without reading their entries one by one.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// assert_eq!(birds.remove_range("a".."i")?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `insert`.
    pub fn remove_range(&self, range: impl KeyBounds<K>) -> Result<u64, Error> {
        self.context.remove_range(self.handle(), &range.to_key_range())
    }

    /// Removes all entries whose keys begin with `prefix`; returns their number.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// assert_eq!(birds.remove_prefix("he")?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `insert`.
    pub fn remove_prefix(&self, prefix: &(impl PrefixOf<K> + ?Sized)) -> Result<u64, Error> {
        self.context.remove_range(self.handle(), &KeyRange::of_prefix::<K>(prefix))
    }

    /// Removes all entries; returns their number.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// assert_eq!((birds.clear()?, birds.len()?), (2, 0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `insert`.
    pub fn clear(&self) -> Result<u64, Error> {
        self.context.remove_range(self.handle(), &KeyRange::ALL)
    }

    /// Removes the first entry, and returns it: a queue's next job.
    ///
    /// If two transactions pop the first entry, the second waits until the first has committed or
    /// aborted, because the first entry depends on that. Threads that add entries further back
    /// neither wait nor are waited for.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// assert_eq!(birds.pop_first()?, Some(("heron".to_string(), 3)));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `insert`.
    pub fn pop_first(&self) -> Result<Option<(K, V)>, Error> {
        self.pop(true)
    }

    /// Removes the last entry, and returns it; see `pop_first`.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// assert_eq!(birds.pop_last()?, Some(("otter".to_string(), 1)));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `insert`.
    pub fn pop_last(&self) -> Result<Option<(K, V)>, Error> {
        self.pop(false)
    }

    /// Removes the entries for which `f` returns `false`; returns their number. In a tree each
    /// removal is a call of its own, and `f` sees an entry again if others change it in the
    /// meantime.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// assert_eq!(birds.retain(|_, eggs| *eggs > 2)?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `insert`.
    pub fn retain(&self, mut f: impl FnMut(&K, &V) -> bool) -> Result<u64, Error> {
        let judge = &mut |key: &[u8], value: &[u8]| {
            let (key, value) = decoded(self.name(), decode_entry(key, value))?;
            Ok(!f(&key, &value))
        };
        Extract::remove_all(self.context, self.handle(), &KeyRange::ALL, judge)
    }

    /// Removes the entries of a range for which `f` returns `true`, one by one, and returns them.
    /// An entry that is not taken from the iterator stays. See `retain`.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// let few = birds.extract_if(.., |_, eggs| *eggs < 2).next().transpose()?;
    /// assert_eq!(few, Some(("otter".to_string(), 1)));
    /// # Ok(()) }
    /// ```
    pub fn extract_if<F: FnMut(&K, &V) -> bool>(
        &self,
        range: impl KeyBounds<K>,
        f: F,
    ) -> ExtractIf<'_, K, V, F, At> {
        ExtractIf::new(self.context, self.handle(), &range.to_key_range(), f)
    }

    /// Writes a value of `len` bytes from a stream; returns `true` if the key existed. The bytes
    /// must be the encoding of a `V`. Readers see the value only when it is complete.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// birds.put_from("stoat", 4, &[7, 0, 0, 0][..])?;
    /// assert_eq!(birds.get("stoat")?, Some(7));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Stream`], or any error of `insert`.
    pub fn put_from<Q: KeyLike<K> + ?Sized>(
        &self,
        key: &Q,
        len: u64,
        mut source: impl io::Read,
    ) -> Result<bool, Error> {
        key.with_encoded(|key| self.context.put_from(self.handle(), key, len, &mut source))
    }

    /// Writes an encoded entry, if `condition` holds.
    #[inline]
    fn write_value<Q, W>(
        &self,
        key: &Q,
        value: &W,
        condition: WriteCondition<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Result<WriteOutcome, Error>
    where
        Q: KeyLike<K> + ?Sized,
        W: ValueLike<V> + ?Sized,
    {
        key.with_encoded(|key| {
            value.with_encoded(|value| {
                self.context.write(self.handle(), key, Some(value), condition, old)
            })
        })
    }

    /// Removes an entry, whose value goes to `old`; returns `true` if the key existed.
    #[inline]
    fn remove_key<Q: KeyLike<K> + ?Sized>(
        &self,
        key: &Q,
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, Error> {
        let present = WriteCondition::Present;
        let remove = |key: &[u8]| self.context.write(self.handle(), key, None, present, old);
        Ok(key.with_encoded(remove)?.applied)
    }

    /// Removes the first entry, or the last, and returns it.
    fn pop(&self, first: bool) -> Result<Option<(K, V)>, Error> {
        let Some((key, value)) = self.context.pop(self.handle(), first)? else { return Ok(None) };
        decoded(self.name(), decode_entry(&key, &value)).map(Some)
    }
}
