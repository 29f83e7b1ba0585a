//! The handle of a hash index, and its reading verbs.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;

use crate::api::context::{Autocommit, Inside, Reads};
use crate::api::hash_index::calls;
use crate::api::hash_index::entries::Entries;
use crate::api::scan::{self, Scan};
use crate::api::strategy::*;
use crate::api::tree::range::{BadEntry, decoded};
use crate::api::txn::Txn;
use crate::encoding::key::{Key, KeyLike};
use crate::encoding::value::{DecodeValue, Value};
use crate::hash_index::{HashStats, Limits};
use crate::page::Scratch;
use crate::store::error::Error;

/// A named hash index: an unordered map from `K` to `V`, like a `HashMap` that outgrows memory.
///
/// Keys and values are accepted in their borrowed forms, too: `&str` for `String`, `&[u8]` for
/// `Vec<u8>`. A handle: clones are cheap, and any thread may use them. Each call is atomic.
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
pub struct HashIndex<K, V, At: Reads = Autocommit> {
    handle: At::Holds<DbHashIndex>,
    pub(super) context: At,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V, At: Reads> Clone for HashIndex<K, V, At>
where
    At::Holds<DbHashIndex>: Clone,
{
    fn clone(&self) -> Self {
        HashIndex { handle: self.handle.clone(), context: self.context, types: PhantomData }
    }
}

impl<K, V, At: Reads> Copy for HashIndex<K, V, At> where At::Holds<DbHashIndex>: Copy {}

impl<K, V, At: Reads> fmt::Debug for HashIndex<K, V, At> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HashIndex").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl<K: Key, V: Value> HashIndex<K, V> {
    /// Walks the whole index and returns statistics of its structure.
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
    /// Same as [`HashIndex::get`].
    pub fn stats(&self) -> Result<HashStats, Error> {
        self.handle().look(|index| index.stats())
    }
}

impl<K, V, At: Reads> HashIndex<K, V, At> {
    pub(crate) fn new(handle: At::Holds<DbHashIndex>, context: At) -> HashIndex<K, V, At> {
        HashIndex { handle, context, types: PhantomData }
    }

    /// Returns the store's handle.
    #[inline(always)]
    pub(crate) fn handle(&self) -> &DbHashIndex {
        self.handle.borrow()
    }

    /// Returns the name of the index.
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
        self.handle().name()
    }

    /// Returns the size limit of a key and its value together.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<String, u64>("sessions")?;
    /// sessions.put("4f1c", &17)?;
    /// assert!(sessions.limits().entry_max > 100);
    /// # Ok(()) }
    /// ```
    pub fn limits(&self) -> Limits {
        self.handle().structure().limits()
    }

    /// Returns the same index, read and written with other types, which must have the same
    /// encoding.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<String, u64>("sessions")?;
    /// sessions.put("4f1c", &17)?;
    /// assert!(sessions.raw().typed::<String, u64>().contains("4f1c")?);
    /// # Ok(()) }
    /// ```
    pub fn typed<L: Key, W: Value>(self) -> HashIndex<L, W, At> {
        HashIndex::new(self.handle, self.context)
    }

    /// Returns the same index with keys and values in encoded form.
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
    pub fn raw(&self) -> HashIndex<Vec<u8>, Vec<u8>, At>
    where
        At::Holds<DbHashIndex>: Clone,
    {
        HashIndex::new(self.handle.clone(), self.context)
    }
}

impl<K: Key, V: Value, At: Reads> HashIndex<K, V, At> {
    /// Decodes a value; `key` goes into the error.
    fn decode_value(&self, key: Option<&[u8]>, bytes: &[u8]) -> Result<V, Error> {
        let value = <V as DecodeValue<'_>>::decode(bytes);
        decoded(self.name(), value.map_err(|error| BadEntry::new(key, error)))
    }

    pub(super) fn decode_optional(&self, bytes: Option<Vec<u8>>) -> Result<Option<V>, Error> {
        bytes.map(|bytes| self.decode_value(None, &bytes)).transpose()
    }

    /// Returns the value of `key`.
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
    /// [`Error::Decode`] if the value is not a `V`, or the store failed. All reading methods return
    /// these errors.
    #[inline]
    pub fn get<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error> {
        self.get_with(key, |bytes| self.decode_value(None, bytes))?.transpose()
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
    /// Same as [`HashIndex::get`].
    #[inline]
    pub fn get_with<Q: KeyLike<K> + ?Sized, R>(
        &self,
        key: &Q,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        let (inside, mut scratch) = (self.context.inside(), Scratch::default());
        let find = |key: &[u8]| calls::find(inside, self.handle(), key, &mut scratch);
        let found = key.with_encoded(find)?;
        Ok(found.map(&scratch, f))
    }

    /// Hands the bytes of the value to `f` in place, without a copy; see
    /// [`Tree::read`](crate::Tree::read).
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
    /// Same as [`HashIndex::get`].
    #[inline]
    pub fn read<Q: KeyLike<K> + ?Sized, R>(
        &self,
        key: &Q,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        if self.context.inside().is_some() {
            return self.get_with(key, f);
        }
        let held = key.with_encoded(|key| calls::hold(self.handle(), key))?;
        Ok(held.map(|value| f(value.bytes())))
    }

    /// Returns `true` if the key exists.
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
    /// Same as [`HashIndex::get`].
    #[inline]
    pub fn contains<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<bool, Error> {
        key.with_encoded(|key| calls::contains(self.context.inside(), self.handle(), key))
    }

    /// Returns an iterator over all entries, in no particular order.
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
        Entries::new(Scan::begin(self.handle(), self.context.inside(), 0))
    }

    /// Counts the entries, by a walk over all buckets if the store has not counted them.
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
    /// Same as [`HashIndex::get`].
    #[track_caller]
    pub fn len(&self) -> Result<u64, Error> {
        let inside = self.context.inside();
        if inside.is_none()
            && let Some(count) = calls::count(self.handle())?
        {
            return Ok(count);
        }
        scan::count(self.handle(), inside)
    }

    /// Returns `true` if the index has no entry.
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
    /// Same as [`HashIndex::get`].
    #[track_caller]
    pub fn is_empty(&self) -> Result<bool, Error> {
        let mut entries = Scan::begin(self.handle(), self.context.inside(), 0);
        Ok(entries.next(true).transpose()?.is_none())
    }

    /// Copies the encoded value of `key` into `out`. Returns `false`, with `out` empty, if there is
    /// no such key.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<Vec<u8>, Vec<u8>>("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// let mut value = Vec::new();
    /// assert!(sessions.get_into(b"4f1c", &mut value)? && value == b"17");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`HashIndex::get`].
    pub fn get_into<Q: KeyLike<K> + ?Sized>(
        &self,
        key: &Q,
        out: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        out.clear();
        Ok(self.get_with(key, |value| out.extend_from_slice(value))?.is_some())
    }
}

impl<K: Key, V: Value> HashIndex<K, V, &Txn> {
    /// Returns the value of `key` and locks the key as a write does: for a value that is read to be
    /// changed. Two transactions that only read at first, and then both write, end in a deadlock.
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
    /// Same as [`HashIndex::get`].
    pub fn get_for_update<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error> {
        let lock = |key: &[u8]| {
            let name = calls::name_of(self.handle(), key);
            Inside::Txn(self.context).get_to_write(self.handle(), &name)
        };
        self.decode_optional(key.with_encoded(lock)?)
    }
}

impl<'t, K: Key, V: Value, At: Reads> IntoIterator for &'t HashIndex<K, V, At> {
    type Item = Result<(K, V), Error>;
    type IntoIter = Entries<'t, K, V>;

    #[track_caller]
    fn into_iter(self) -> Entries<'t, K, V> {
        self.iter()
    }
}
