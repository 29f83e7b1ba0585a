//! What is done with byte strings, the same in a tree, in a transaction and in a snapshot.
//!
//! Each place has a type with a few private calls, which are compiled in this crate: `find`, `has`,
//! `key_range`, `stream`, and for writing `upsert`, `swap` and so on. The public methods over them
//! are written once, here, and so are their documentation and its examples. `$begin` is how an
//! example gets its `tree`, `$life` how long what a method lends may be used.

/// The methods that read.
macro_rules! raw_reads {
    ($life:lifetime, $begin:literal) => {
        /// Hands a copy of the value of `key` to `f`, and returns its result; `None` if there is no
        /// such key. Outside transactions and snapshots, a copy of up to 1 KiB is on the stack, and
        /// the call writes nothing that other threads read.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        /// # ponds.put(b"mill", b"deep")?;
        #[doc = $begin]
        /// assert_eq!(tree.get_with(b"mill", |value| value.len())?, Some(4));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// The store failed; inside a transaction, a lock was unavailable
        /// ([`Error::is_retriable`]); in a snapshot, it is lost. The same for all that reads.
        #[inline]
        pub fn get_with<R>(
            &self,
            key: &[u8],
            f: impl FnOnce(&[u8]) -> R,
        ) -> Result<Option<R>, Error> {
            let mut scratch = Scratch::default();
            Ok(self.place().find(key, &mut scratch)?.map(&scratch, f))
        }

        /// Returns the value of `key`.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        /// # ponds.put(b"mill", b"deep")?;
        #[doc = $begin]
        /// assert_eq!(tree.get(b"mill")?.as_deref(), Some(&b"deep"[..]));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// The store failed; inside a transaction, a lock was unavailable; a snapshot is lost.
        pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
            self.place().get(key)
        }

        /// Puts the value of `key` into `out`; `false`, and `out` empty, if there is no such key.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        /// # ponds.put(b"mill", b"deep")?;
        #[doc = $begin]
        /// let mut value = Vec::new();
        /// assert!(tree.get_into(b"mill", &mut value)? && value == b"deep");
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `get`.
        pub fn get_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
            out.clear();
            Ok(self.get_with(key, |value| out.extend_from_slice(value))?.is_some())
        }

        /// Returns the values of several keys, in the order of `keys`. Outside transactions and
        /// snapshots, each is what is committed when it is looked up, and they are looked up side
        /// by side: their cache misses overlap, and so do their reads. In transactions they are
        /// locked in the order of the tree.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        /// # ponds.put(b"mill", b"deep")?;
        #[doc = $begin]
        /// let values = tree.get_many([&b"weir"[..], b"mill"])?;
        /// assert_eq!(values, [None, Some(b"deep".to_vec())]);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `get`.
        pub fn get_many<'k>(
            &self,
            keys: impl IntoIterator<Item = &'k [u8]>,
        ) -> Result<Vec<Option<Vec<u8>>>, Error> {
            let keys: Vec<&[u8]> = keys.into_iter().collect();
            self.place().get_many(&keys)
        }

        /// Returns whether there is such a key.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        /// # ponds.put(b"mill", b"deep")?;
        #[doc = $begin]
        /// assert!(tree.contains(b"mill")? && !tree.contains(b"weir")?);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `get`.
        pub fn contains(&self, key: &[u8]) -> Result<bool, Error> {
            self.place().has(key)
        }

        /// Returns the entries of a range of keys, from both ends.
        ///
        /// In a tree: what is committed. Each leaf is seen as it was at some moment; as soon as
        /// others write meanwhile, all the rest is of one moment. In a transaction: what it sees,
        /// its own writes among it; what was given is locked, and no key behind it but those of a
        /// batch that was read ahead, an eighth of what was given at most. In a snapshot: what that
        /// shows.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        /// # ponds.put(b"mill", b"deep")?;
        /// # ponds.put(b"weir", b"wide")?;
        #[doc = $begin]
        /// let rows: Result<Vec<_>, Error> = tree.range(&b"n"[..]..).collect();
        /// assert_eq!(rows?[0].0, b"weir");
        /// # Ok(()) }
        /// ```
        #[track_caller]
        pub fn range(&self, range: impl KeyBounds<Vec<u8>>) -> RawRange<$life> {
            self.place().key_range(&range.to_key_range())
        }

        /// Returns the entries whose keys begin with `prefix`.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        /// # ponds.put(b"mill", b"deep")?;
        /// # ponds.put(b"weir", b"wide")?;
        #[doc = $begin]
        /// assert_eq!(tree.prefix(b"we").count(), 1);
        /// # Ok(()) }
        /// ```
        #[track_caller]
        pub fn prefix(&self, prefix: &[u8]) -> RawRange<$life> {
            self.place().key_range(&KeyRange::of_prefix::<Vec<u8>>(prefix))
        }

        /// Returns all entries.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        /// # ponds.put(b"mill", b"deep")?;
        #[doc = $begin]
        /// assert_eq!(tree.iter().count(), 1);
        /// # Ok(()) }
        /// ```
        #[track_caller]
        pub fn iter(&self) -> RawRange<$life> {
            self.place().key_range(&KeyRange::ALL)
        }

        /// Returns a cursor over all entries, which is moved by seeks and steps.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        /// # ponds.put(b"mill", b"deep")?;
        /// # ponds.put(b"weir", b"wide")?;
        #[doc = $begin]
        /// let mut cursor = tree.cursor();
        /// assert!(cursor.seek(&b"n"[..])?.is_some_and(|(key, _)| key == b"weir"));
        /// assert!(cursor.prev()?.is_some_and(|(key, _)| key == b"mill"));
        /// # Ok(()) }
        /// ```
        pub fn cursor(&self) -> Cursor<$life, Vec<u8>, Vec<u8>> {
            Cursor::new(self.place())
        }

        /// Returns the first entry. Inside a transaction, the keys up to it are locked.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        /// # ponds.put(b"mill", b"deep")?;
        #[doc = $begin]
        /// assert_eq!(tree.first()?, Some((b"mill".to_vec(), b"deep".to_vec())));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `get`.
        #[track_caller]
        pub fn first(&self) -> Result<Option<RawEntry>, Error> {
            self.iter().next().transpose()
        }

        /// Returns the last entry. Inside a transaction, the keys from it on are locked.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        /// # ponds.put(b"mill", b"deep")?;
        #[doc = $begin]
        /// assert_eq!(tree.last()?, Some((b"mill".to_vec(), b"deep".to_vec())));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `get`.
        #[track_caller]
        pub fn last(&self) -> Result<Option<RawEntry>, Error> {
            self.iter().next_back().transpose()
        }

        /// Counts the entries of a range: a walk over its keys.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        /// # ponds.put(b"mill", b"deep")?;
        #[doc = $begin]
        /// assert_eq!((tree.count(&b"a"[..]..&b"n"[..])?, tree.count(&b"n"[..]..)?), (1, 0));
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `get`.
        #[track_caller]
        pub fn count(&self, range: impl KeyBounds<Vec<u8>>) -> Result<u64, Error> {
            self.place().count_range(&range.to_key_range())
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
        /// # let ponds = db.raw_tree("ponds")?;
        /// # ponds.put(b"mill", b"deep")?;
        #[doc = $begin]
        /// assert_eq!(tree.len()?, 1);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `get`.
        #[track_caller]
        pub fn len(&self) -> Result<u64, Error> {
            self.place().count_range(&KeyRange::ALL)
        }

        /// Returns whether there is no entry.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        /// # ponds.put(b"mill", b"deep")?;
        #[doc = $begin]
        /// assert!(!tree.is_empty()?);
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `get`.
        #[track_caller]
        pub fn is_empty(&self) -> Result<bool, Error> {
            Ok(self.iter().keys_only().next_entry()?.is_none())
        }

        /// Returns the value of `key` as a stream; `None` if there is no such key. In a tree, the
        /// stream fails if the value is changed meanwhile; a transaction has it locked, and a
        /// snapshot keeps it.
        ///
        /// ```
        /// # use std::io::Read;
        /// # use millpond::{Db, Options};
        /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// # let ponds = db.raw_tree("ponds")?;
        /// # ponds.put(b"mill", b"deep")?;
        #[doc = $begin]
        /// let mut text = String::new();
        /// tree.reader(b"mill")?.ok_or("no such pond")?.read_to_string(&mut text)?;
        /// assert_eq!(text, "deep");
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As `get`.
        pub fn reader(&self, key: &[u8]) -> Result<Option<RawReader<$life>>, Error> {
            self.place().stream(key)
        }
    };
}
pub(crate) use raw_reads;
