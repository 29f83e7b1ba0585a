//! What changes entries with typed keys and values, the same in a tree and in a transaction; see
//! [`typed::verbs`](crate::api::typed::verbs).

/// The methods that write.
macro_rules! typed_writes {
    ($life:lifetime, $begin:literal) => {
        fn entry(&self, raw: Option<RawEntry>) -> Result<Option<(K, V)>, Error> {
            let Some((key, value)) = raw else { return Ok(None) };
            decoded(self.name(), decode_entry((&key, &value))).map(Some)
        }

        /// Inserts an entry or replaces the value of one; returns the value that was there.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert_eq!((tree.insert("stoat", &7)?, tree.insert("stoat", &8)?), (None, Some(7)));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// A key or value that is too long, [`Error::ReadOnly`], [`Error::Decode`], or the store
        /// failed; inside a transaction, a lock was unavailable ([`Error::is_retriable`]). The same
        /// for all that writes.
        #[inline]
        pub fn insert<Q, W>(&self, key: &Q, value: &W) -> Result<Option<V>, Error>
        where
            Q: KeyLike<K> + ?Sized,
            W: ValueLike<V> + ?Sized,
        {
            let old =
                key.with_encoded(|key| value.with_encoded(|value| self.raw.insert(key, value)));
            self.optional(old?)
        }

        /// Inserts an entry or replaces the value of one; returns whether there was one. The
        /// fastest way to write.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert!(!tree.put("stoat", &7)? && tree.put("stoat", &8)?);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
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
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert!(tree.insert_if_absent("stoat", &7)? && !tree.insert_if_absent("heron", &7)?);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        #[inline]
        pub fn insert_if_absent<Q, W>(&self, key: &Q, value: &W) -> Result<bool, Error>
        where
            Q: KeyLike<K> + ?Sized,
            W: ValueLike<V> + ?Sized,
        {
            key.with_encoded(|key| {
                value.with_encoded(|value| self.raw.insert_if_absent(key, value))
            })
        }

        /// Replaces the value of a key; `false`, and nothing changed, if the key is not there.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert!(tree.replace("heron", &7)? && !tree.replace("stoat", &7)?);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        #[inline]
        pub fn replace<Q, W>(&self, key: &Q, value: &W) -> Result<bool, Error>
        where
            Q: KeyLike<K> + ?Sized,
            W: ValueLike<V> + ?Sized,
        {
            key.with_encoded(|key| value.with_encoded(|value| self.raw.replace(key, value)))
        }

        /// Sets the entry of `key` to `new` if it is `expected`, where `None` is no entry; returns
        /// whether it was. Values are compared as bytes.
        ///
        /// A loop of `get` and `compare_and_swap` is not fair: while other threads change the
        /// entry, it may fail for long. `update` is fair: in a tree it locks the key after two
        /// tries. So is a transaction that reads with `get_for_update`.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert!(tree.compare_and_swap("heron", Some(&3), Some(&4))?);
        /// assert!(!tree.compare_and_swap("heron", Some(&3), None)?);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
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
                self.raw.compare_and_swap(key, expected.as_deref(), new.as_deref())
            })
        }

        /// Sets the entry of `key` to what `f` makes of it, where `None` is no entry; returns that.
        /// In a tree, if others write in between, `f` runs again on what they wrote, a third
        /// time with the key locked. Inside a transaction it is locked first, and `f` runs once.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert_eq!(tree.update("heron", |eggs| Some(eggs.unwrap_or(0) + 1))?, Some(4));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        pub fn update<Q: KeyLike<K> + ?Sized>(
            &self,
            key: &Q,
            mut f: impl FnMut(Option<V>) -> Option<V>,
        ) -> Result<Option<V>, Error> {
            key.with_encoded(|key| {
                let mut after = None;
                self.raw.place().update(key, &mut |old| {
                    after = f(old.map(|bytes| self.value_at(key, bytes)).transpose()?);
                    Ok(after.as_ref().map(EncodeValue::to_value_bytes))
                })?;
                Ok(after)
            })
        }

        /// Lets `f` change the bytes of a value, but not their number; `None` if there is no such
        /// key. `f` runs under the leaf's latch: it must be short, and must not use the store.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// tree.update_in_place("heron", |eggs| eggs[0] += 1)?;
        /// assert_eq!(tree.get("heron")?, Some(4));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        pub fn update_in_place<Q: KeyLike<K> + ?Sized, R>(
            &self,
            key: &Q,
            f: impl FnOnce(&mut [u8]) -> R,
        ) -> Result<Option<R>, Error> {
            key.with_encoded(|key| self.raw.update_in_place(key, f))
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
        #[doc = $begin]
        /// assert_eq!((tree.remove("heron")?, tree.remove("heron")?), (Some(3), None));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
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
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert!(tree.delete("heron")? && !tree.delete("heron")?);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        #[inline]
        pub fn delete<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<bool, Error> {
            key.with_encoded(|key| self.raw.delete(key))
        }

        /// Removes all entries of a range; returns how many. In a tree it happens at one moment,
        /// and whole leaves go without their entries being read one at a time.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert_eq!(tree.remove_range("a".."i")?, 1);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        pub fn remove_range(&self, range: impl KeyBounds<K>) -> Result<u64, Error> {
            self.raw.remove_range(range.to_key_range())
        }

        /// Removes all entries whose keys begin with `prefix`; returns how many.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert_eq!(tree.remove_prefix("he")?, 1);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        pub fn remove_prefix(&self, prefix: &(impl PrefixOf<K> + ?Sized)) -> Result<u64, Error> {
            self.raw.remove_range(KeyRange::of_prefix::<K>(prefix))
        }

        /// Removes all entries; returns how many there were.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert_eq!((tree.clear()?, tree.len()?), (2, 0));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        pub fn clear(&self) -> Result<u64, Error> {
            self.raw.clear()
        }

        /// Removes the first entry, and returns it: a queue's next job.
        ///
        /// Of two transactions that pop the first entry, the second waits until the first one has
        /// committed or aborted, because which entry comes first depends on that. Nobody who adds
        /// entries behind the first one waits, nor is waited for.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert_eq!(tree.pop_first()?, Some(("heron".to_string(), 3)));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        pub fn pop_first(&self) -> Result<Option<(K, V)>, Error> {
            self.entry(self.raw.pop_first()?)
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
        #[doc = $begin]
        /// assert_eq!(tree.pop_last()?, Some(("otter".to_string(), 1)));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        pub fn pop_last(&self) -> Result<Option<(K, V)>, Error> {
            self.entry(self.raw.pop_last()?)
        }

        /// Removes the entries for which `f` returns `false`; returns how many. In a tree each
        /// removal is a call of its own, and an entry that others change meanwhile is shown to `f`
        /// again.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// assert_eq!(tree.retain(|_, eggs| *eggs > 2)?, 1);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        pub fn retain(&self, mut f: impl FnMut(&K, &V) -> bool) -> Result<u64, Error> {
            let place = self.raw.place();
            let judge = &mut |key: &[u8], value: &[u8]| {
                let (key, value) = decoded(place.name(), decode_entry((key, value)))?;
                Ok(!f(&key, &value))
            };
            Extract::remove_all(place, &KeyRange::ALL, judge)
        }

        /// Removes those entries of a range for which `f` returns `true`, one after the other, and
        /// gives them: what is not taken from the iterator stays. See `retain`.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// let few = tree.extract_if(.., |_, eggs| *eggs < 2).next().transpose()?;
        /// assert_eq!(few, Some(("otter".to_string(), 1)));
        /// # Ok(()) }
        /// ```
        pub fn extract_if<F: FnMut(&K, &V) -> bool>(
            &self,
            range: impl KeyBounds<K>,
            f: F,
        ) -> ExtractIf<$life, K, V, F> {
            let place = self.raw.place();
            ExtractIf::new(place, Extract::new(place, &range.to_key_range()), f)
        }

        /// Writes a value of `len` bytes out of a stream; returns whether there was one. The bytes
        /// must be the encoding of a `V`. Nobody sees it before it is complete.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let birds = db.tree::<String, u32>("birds")?;
        /// # birds.put("heron", &3)?;
        /// # birds.put("otter", &1)?;
        #[doc = $begin]
        /// tree.put_from("stoat", 4, &[7, 0, 0, 0][..])?;
        /// assert_eq!(tree.get("stoat")?, Some(7));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// [`Error::Stream`], or as `insert`.
        pub fn put_from<Q: KeyLike<K> + ?Sized>(
            &self,
            key: &Q,
            len: u64,
            source: impl io::Read,
        ) -> Result<bool, Error> {
            key.with_encoded(|key| self.raw.put_from(key, len, source))
        }
    };
}
pub(crate) use typed_writes;
