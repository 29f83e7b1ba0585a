//! What changes byte strings, the same in a tree and in a transaction; see
//! [`raw::verbs`](crate::api::raw::verbs).

/// The methods that write.
macro_rules! raw_writes {
    ($life:lifetime, $begin:literal) => {
        /// Inserts an entry or replaces the value of one; returns the value that was there.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        #[doc = $begin]
        /// tree.insert(b"mill", b"deep")?;
        /// assert_eq!(tree.insert(b"mill", b"dry")?, Some(b"deep".to_vec()));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// [`Error::ReadOnly`], a key or value that is too long, or the store failed; inside a
        /// transaction, a lock was unavailable ([`Error::is_retriable`]). The same for all that
        /// writes.
        pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, Error> {
            self.place().upsert_returning(key, value)
        }

        /// Inserts an entry or replaces the value of one; returns whether there was one. The
        /// fastest way to write.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        #[doc = $begin]
        /// assert!(!tree.put(b"mill", b"deep")? && tree.put(b"mill", b"dry")?);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        pub fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
            self.place().upsert(key, value)
        }

        /// Inserts an entry; `false`, and nothing changed, if the key is there already.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        #[doc = $begin]
        /// assert!(tree.insert_if_absent(b"mill", b"deep")?);
        /// assert!(!tree.insert_if_absent(b"mill", b"dry")?);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        pub fn insert_if_absent(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
            self.place().insert_new(key, value)
        }

        /// Replaces the value of a key; `false`, and nothing changed, if the key is not there.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        #[doc = $begin]
        /// assert!(!tree.replace(b"mill", b"deep")?);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        pub fn replace(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
            self.place().replace_old(key, value)
        }

        /// Sets the entry of `key` to `new` if it is `expected`, where `None` is no entry; returns
        /// whether it was.
        ///
        /// A loop of `get` and `compare_and_swap` is not fair: while other threads change the
        /// entry, it may fail for long. A transaction that reads with `get_for_update` is fair.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        #[doc = $begin]
        /// assert!(tree.compare_and_swap(b"mill", None, Some(b"deep"))?);
        /// assert!(!tree.compare_and_swap(b"mill", Some(b"dry"), None)?);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        pub fn compare_and_swap(
            &self,
            key: &[u8],
            expected: Option<&[u8]>,
            new: Option<&[u8]>,
        ) -> Result<bool, Error> {
            self.place().swap(key, expected, new)
        }

        /// Sets the entry of `key` to what `f` makes of it, where `None` is no entry; returns that.
        /// In a tree, if others write in between, `f` runs again on what they wrote, a third
        /// time with the key locked. Inside a transaction it is locked first, and `f` runs once.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        #[doc = $begin]
        /// tree.put(b"mill", b"deep")?;
        /// let now = tree.update(b"mill", |value| Some([value?, b"er"].concat()))?;
        /// assert_eq!(now.as_deref(), Some(&b"deeper"[..]));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        pub fn update(
            &self,
            key: &[u8],
            mut f: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
        ) -> Result<Option<Vec<u8>>, Error> {
            let mut new = None;
            self.place().update(key, &mut |old| {
                new = f(old);
                Ok(new.clone())
            })?;
            Ok(new)
        }

        /// Lets `f` change the bytes of a value, but not their number; `None` if there is no such
        /// key. `f` runs under the leaf's latch: it must be short, and must not use the store.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        #[doc = $begin]
        /// tree.put(b"mill", b"deep")?;
        /// tree.update_in_place(b"mill", |value| value.make_ascii_uppercase())?;
        /// assert_eq!(tree.get(b"mill")?.as_deref(), Some(&b"DEEP"[..]));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        pub fn update_in_place<R>(
            &self,
            key: &[u8],
            f: impl FnOnce(&mut [u8]) -> R,
        ) -> Result<Option<R>, Error> {
            update_once(f, |once| self.place().update_bytes(key, once))
        }

        /// Removes an entry; returns its value.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        #[doc = $begin]
        /// tree.put(b"mill", b"deep")?;
        /// assert_eq!(tree.remove(b"mill")?, Some(b"deep".to_vec()));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        pub fn remove(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
            self.place().remove_returning(key)
        }

        /// Removes an entry; returns whether there was one.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        #[doc = $begin]
        /// assert!(!tree.delete(b"mill")?);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        pub fn delete(&self, key: &[u8]) -> Result<bool, Error> {
            self.place().remove_key(key)
        }

        /// Removes all entries of a range; returns how many. In a tree it happens at one moment,
        /// and whole leaves go without their entries being read one at a time.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        #[doc = $begin]
        /// tree.put(b"mill", b"deep")?;
        /// assert_eq!(tree.remove_range(&b"a"[..]..&b"n"[..])?, 1);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        pub fn remove_range(&self, range: impl KeyBounds<Vec<u8>>) -> Result<u64, Error> {
            self.place().remove_all(&range.to_key_range())
        }

        /// Removes all entries; returns how many there were.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        #[doc = $begin]
        /// tree.put(b"mill", b"deep")?;
        /// assert_eq!(tree.clear()?, 1);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        pub fn clear(&self) -> Result<u64, Error> {
            self.place().remove_everything()
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
        /// # let ponds = db.raw_tree("ponds")?;
        #[doc = $begin]
        /// tree.put(b"mill", b"deep")?;
        /// assert_eq!(tree.pop_first()?, Some((b"mill".to_vec(), b"deep".to_vec())));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        pub fn pop_first(&self) -> Result<Option<RawEntry>, Error> {
            self.place().pop(true)
        }

        /// Removes the last entry, and returns it; see `pop_first`.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        #[doc = $begin]
        /// tree.put(b"mill", b"deep")?;
        /// assert_eq!(tree.pop_last()?, Some((b"mill".to_vec(), b"deep".to_vec())));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        pub fn pop_last(&self) -> Result<Option<RawEntry>, Error> {
            self.place().pop(false)
        }

        /// Removes the entries for which `f` returns `false`; returns how many. In a tree each
        /// removal is a call of its own, and an entry that others change meanwhile is shown to `f`
        /// again.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        #[doc = $begin]
        /// tree.put(b"mill", b"deep")?;
        /// assert_eq!(tree.retain(|_, value| value.len() > 4)?, 1);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `insert`.
        pub fn retain(&self, mut f: impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64, Error> {
            let judge = &mut |key: &[u8], value: &[u8]| Ok(!f(key, value));
            Extract::remove_all(self.place(), &KeyRange::ALL, judge)
        }

        /// Removes those entries of a range for which `f` returns `true`, one after the other, and
        /// gives them: what is not taken from the iterator stays. See `retain`.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        #[doc = $begin]
        /// tree.put(b"mill", b"deep")?;
        /// let deep = tree.extract_if(.., |_, value| value == b"deep").count();
        /// assert!(deep == 1 && tree.is_empty()?);
        /// # Ok(()) }
        /// ```
        pub fn extract_if<F: FnMut(&[u8], &[u8]) -> bool>(
            &self,
            range: impl KeyBounds<Vec<u8>>,
            f: F,
        ) -> RawExtractIf<$life, F> {
            RawExtractIf::new(Extract::new(self.place(), &range.to_key_range()), f)
        }

        /// Inserts or replaces a value of `len` bytes that comes out of `source`, page by page;
        /// returns whether there was one. Nobody sees it before it is complete.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        #[doc = $begin]
        /// tree.put_from(b"film", 1 << 20, std::io::repeat(7))?;
        /// assert_eq!(tree.reader(b"film")?.map(|film| film.len()), Some(1 << 20));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// [`Error::Stream`], or as `insert`.
        pub fn put_from(
            &self,
            key: &[u8],
            len: u64,
            mut source: impl io::Read,
        ) -> Result<bool, Error> {
            self.place().put_stream(key, len, &mut source)
        }
    };
}
pub(crate) use raw_writes;
