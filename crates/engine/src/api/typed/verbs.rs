//! What is done with typed keys and values, the same in a tree, in a transaction and in a snapshot:
//! a thin layer over the byte strings of [`raw::verbs`](crate::api::raw::verbs). `$begin` is how an
//! example gets its `tree`, `$life` how long what a method lends may be used, `$look` the method of
//! the tree of byte strings that hands a value to what decodes it.

/// The methods that read.
macro_rules! typed_reads {
    ($life:lifetime, $look:ident, $begin:literal) => {
        /// Returns the name of the tree.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        #[doc = $begin]
        /// assert_eq!(tree.name(), "birds");
        /// # Ok(()) }
        /// ```
        pub fn name(&self) -> &str {
            self.raw.place().name()
        }

        fn value_at(&self, key: &[u8], bytes: &[u8]) -> Result<V, Error> {
            let value = <V as DecodeValue<'_>>::decode(bytes);
            decoded(self.name(), value.map_err(BadEntry::at(key)))
        }

        fn value(&self, bytes: &[u8]) -> Result<V, Error> {
            decoded(self.name(), <V as DecodeValue<'_>>::decode(bytes))
        }

        fn optional(&self, bytes: Option<Vec<u8>>) -> Result<Option<V>, Error> {
            bytes.map(|bytes| self.value(&bytes)).transpose()
        }

        /// Returns the value of `key`.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert_eq!((tree.get("heron")?, tree.get("stoat")?), (Some(3), None));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// [`Error::Decode`] if the value is not a `V`, or the store failed; inside a transaction,
        /// a lock was unavailable ([`Error::is_retriable`]); in a snapshot, it is lost. The same
        /// for all that reads.
        #[inline]
        pub fn get<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error> {
            key.with_encoded(|key| {
                let decode = |bytes: &[u8]| self.value_at(key, bytes);
                self.raw.$look(key, decode)?.transpose()
            })
        }

        /// Hands the bytes of the value to `f`, and returns its result; `None` if there is no such
        /// key. They are a copy: what lies in the page may change until it was validated. Strings
        /// and byte strings are their own encoding, and anything else is read by its
        /// [`DecodeValue`].
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert_eq!(tree.get_with("heron", |value| value[0])?, Some(3));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `get`.
        #[inline]
        pub fn get_with<Q: KeyLike<K> + ?Sized, R>(
            &self,
            key: &Q,
            f: impl FnOnce(&[u8]) -> R,
        ) -> Result<Option<R>, Error> {
            key.with_encoded(|key| self.raw.get_with(key, f))
        }

        /// Returns the values of several keys, in the order of `keys`. They are looked up in the
        /// order of the tree. Outside transactions and snapshots, each is what is committed when it
        /// is looked up.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert_eq!(tree.get_many(["otter", "stoat", "heron"])?, [Some(1), None, Some(3)]);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `get`.
        pub fn get_many<Q: KeyLike<K>>(
            &self,
            keys: impl IntoIterator<Item = Q>,
        ) -> Result<Vec<Option<V>>, Error> {
            let keys: Vec<Vec<u8>> = keys.into_iter().map(|key| key.to_key_bytes()).collect();
            let values = self.raw.get_many(keys.iter().map(Vec::as_slice))?;
            values.into_iter().map(|value| self.optional(value)).collect()
        }

        /// Returns whether there is such a key.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert!(tree.contains("heron")? && !tree.contains("stoat")?);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `get`.
        #[inline]
        pub fn contains<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<bool, Error> {
            key.with_encoded(|key| self.raw.contains(key))
        }

        /// Returns the entries of a range of keys, from both ends, whose bounds may be borrowed
        /// forms: `"a".."c"` for `String`.
        ///
        /// In a tree: what is committed; as soon as others write meanwhile, all the rest is of one
        /// moment. In a transaction: what it sees, its own writes among it; what was given is
        /// locked, and no key behind it but those of a batch that was read ahead, an eighth of what
        /// was given at most. In a snapshot: what that shows.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// let birds: Result<Vec<_>, Error> = tree.range("h"..="otter").rev().collect();
        /// assert_eq!(birds?, [("otter".to_string(), 1), ("heron".to_string(), 3)]);
        /// # Ok(()) }
        /// ```
        #[track_caller]
        pub fn range(&self, range: impl KeyBounds<K>) -> Range<$life, K, V> {
            Range::new(self.raw.range(range.to_key_range()))
        }

        /// Returns the entries whose keys begin with `prefix`: the first elements of a tuple, the
        /// first characters of a string.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert_eq!(tree.prefix("he").count(), 1);
        /// # Ok(()) }
        /// ```
        #[track_caller]
        pub fn prefix(&self, prefix: &(impl PrefixOf<K> + ?Sized)) -> Range<$life, K, V> {
            Range::new(self.raw.range(KeyRange::of_prefix::<K>(prefix)))
        }

        /// Returns all entries, in order.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert_eq!(tree.iter().count(), 2);
        /// # Ok(()) }
        /// ```
        #[track_caller]
        pub fn iter(&self) -> Range<$life, K, V> {
            Range::new(self.raw.iter())
        }

        /// Returns a cursor over all entries, which is moved by seeks and steps.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// let mut cursor = tree.cursor();
        /// assert_eq!(cursor.seek("k")?, Some(("otter".to_string(), 1)));
        /// assert_eq!(cursor.prev()?, Some(("heron".to_string(), 3)));
        /// # Ok(()) }
        /// ```
        pub fn cursor(&self) -> Cursor<$life, K, V> {
            Cursor::new(self.raw.place())
        }

        /// Returns the first entry. Inside a transaction, the keys up to it are locked.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert_eq!(tree.first()?, Some(("heron".to_string(), 3)));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `get`.
        #[track_caller]
        pub fn first(&self) -> Result<Option<(K, V)>, Error> {
            self.iter().next().transpose()
        }

        /// Returns the last entry. Inside a transaction, the keys from it on are locked.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert_eq!(tree.last()?, Some(("otter".to_string(), 1)));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `get`.
        #[track_caller]
        pub fn last(&self) -> Result<Option<(K, V)>, Error> {
            self.iter().next_back().transpose()
        }

        /// Counts the entries of a range: a walk over its keys.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert_eq!((tree.count(.."k")?, tree.count("p"..)?), (1, 0));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `get`.
        #[track_caller]
        pub fn count(&self, range: impl KeyBounds<K>) -> Result<u64, Error> {
            self.raw.count(range.to_key_range())
        }

        /// Returns the number of entries: the store counts them as they come and go. In a
        /// transaction the whole tree is locked as by a range; in a snapshot the keys are looked up
        /// that were changed since.
        ///
        /// It takes a walk over all keys in a snapshot of a tree to which others write meanwhile,
        /// and once, for a tree to which something was written while the store had no log.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert_eq!(tree.len()?, 2);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `get`.
        #[track_caller]
        pub fn len(&self) -> Result<u64, Error> {
            self.raw.len()
        }

        /// Returns whether there is no entry.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert!(!tree.is_empty()?);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `get`.
        #[track_caller]
        pub fn is_empty(&self) -> Result<bool, Error> {
            self.raw.is_empty()
        }

        /// Returns the encoding of a value as a stream, for values too large for memory: that of
        /// `Vec<u8>` and `String` is their bytes. In a tree, the stream fails if the value is
        /// changed meanwhile; a transaction has it locked, and a snapshot keeps it.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert_eq!(tree.reader("heron")?.map(|value| value.len()), Some(4));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `get`.
        pub fn reader<Q: KeyLike<K> + ?Sized>(
            &self,
            key: &Q,
        ) -> Result<Option<RawReader<$life>>, Error> {
            self.raw.reader(&key.to_key_bytes())
        }
    };
}
pub(crate) use typed_reads;
