//! The reading verbs of a tree.

use std::borrow::Cow;

use crate::api::context::{ReadCalls, Reads};
use crate::api::strategy::*;
use crate::api::tree::Tree;
use crate::api::tree::cursor::Cursor;
use crate::api::tree::range::Range;
use crate::api::tree::reader::ValueReader;
use crate::encoding::key::{Key, KeyLike, PrefixOf};
use crate::encoding::key_range::{KeyBounds, KeyRange};
use crate::encoding::value::Value;
use crate::page::Scratch;
use crate::store::error::Error;

impl<K: Key, V: Value, At: Reads> Tree<K, V, At> {
    /// Returns the value of `key`.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// assert_eq!((birds.get("heron")?, birds.get("stoat")?), (Some(3), None));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Decode`] if the value is not a `V`, or the store failed. Inside a transaction: a
    /// lock was unavailable ([`Error::is_retriable`]). In a snapshot: the snapshot is lost. All
    /// reading methods return these errors.
    #[inline]
    pub fn get<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error> {
        key.with_encoded(|key| {
            let decode = |bytes: Cow<'_, [u8]>| match bytes {
                Cow::Borrowed(bytes) => self.decode_value(Some(key), bytes),
                Cow::Owned(bytes) => self.decode_owned(Some(key), bytes),
            };
            self.context.look(self.handle(), key, decode)?.transpose()
        })
    }

    /// Hands the bytes of the value to `f`, and returns its result; `None` if there is no such key.
    /// The bytes are a copy, because the page may change until the read is validated. Strings and
    /// byte strings are their own encoding; decode other types with
    /// [`DecodeValue`](crate::codec::DecodeValue).
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// assert_eq!(birds.get_with("heron", |value| value[0])?, Some(3));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `get`.
    #[inline]
    pub fn get_with<Q: KeyLike<K> + ?Sized, R>(
        &self,
        key: &Q,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        let mut scratch = Scratch::default();
        let found = key.with_encoded(|key| self.context.find(self.handle(), key, &mut scratch))?;
        Ok(found.map(&scratch, f))
    }

    /// Returns the values of several keys, in the order of `keys`. The tree is searched in key
    /// order. Outside transactions and snapshots, each value is the one committed when it is looked
    /// up.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// assert_eq!(birds.get_many(["otter", "stoat", "heron"])?, [Some(1), None, Some(3)]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `get`.
    pub fn get_many<Q: KeyLike<K>>(
        &self,
        keys: impl IntoIterator<Item = Q>,
    ) -> Result<Vec<Option<V>>, Error> {
        let (mut bytes, mut ends) = (Vec::new(), vec![0]);
        for key in keys {
            key.encode(&mut bytes);
            ends.push(bytes.len());
        }
        let keys: Vec<&[u8]> = ends.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect();
        let values = self.context.get_many(self.handle(), &keys)?;
        values.into_iter().map(|value| self.decode_optional(value)).collect()
    }

    /// Returns `true` if the key exists.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// assert!(birds.contains("heron")? && !birds.contains("stoat")?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `get`.
    #[inline]
    pub fn contains<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<bool, Error> {
        key.with_encoded(|key| self.context.contains(self.handle(), key))
    }

    /// Returns the entries of a range of keys, from both ends, whose bounds may be borrowed
    /// forms: `"a".."c"` for `String`.
    ///
    /// In a tree, the range shows committed entries; once others write, the rest of it is of one
    /// moment. In a transaction, the range shows the transaction's view, including its own writes.
    /// It locks the entries returned, and of later keys only a batch read ahead, at most an eighth
    /// as many. In a snapshot, the range shows the snapshot's view.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// let birds: Result<Vec<_>, Error> = birds.range("h"..="otter").rev().collect();
    /// assert_eq!(birds?, [("otter".to_string(), 1), ("heron".to_string(), 3)]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn range(&self, range: impl KeyBounds<K>) -> Range<'_, K, V> {
        self.key_range(&range.to_key_range())
    }

    /// Returns the entries of a range of keys, like [`Tree::range`], for a tree in a transaction or
    /// a snapshot. The range may outlive this handle.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// let tx = db.begin()?;
    /// let rows = tx.tree(&birds).into_range("h"..);
    /// assert_eq!(rows.count(), 2);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn into_range<'t>(self, range: impl KeyBounds<K>) -> Range<'t, K, V>
    where
        At: ReadCalls<Holds<DbTree> = &'t DbTree> + 't,
    {
        Range::new(self.context.range(self.into_handle(), &range.to_key_range()))
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
    /// assert_eq!(birds.prefix("he").count(), 1);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn prefix(&self, prefix: &(impl PrefixOf<K> + ?Sized)) -> Range<'_, K, V> {
        self.key_range(&KeyRange::of_prefix::<K>(prefix))
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
    /// assert_eq!(birds.iter().count(), 2);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn iter(&self) -> Range<'_, K, V> {
        self.key_range(&KeyRange::ALL)
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
    /// let mut cursor = birds.cursor();
    /// assert_eq!(cursor.seek("k")?, Some(("otter".to_string(), 1)));
    /// assert_eq!(cursor.prev()?, Some(("heron".to_string(), 3)));
    /// # Ok(()) }
    /// ```
    pub fn cursor(&self) -> Cursor<'_, K, V, At> {
        Cursor::new(self.context, self.handle())
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
    /// assert_eq!(birds.first()?, Some(("heron".to_string(), 3)));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `get`.
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
    /// assert_eq!(birds.last()?, Some(("otter".to_string(), 1)));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `get`.
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
    /// assert_eq!((birds.count(.."k")?, birds.count("p"..)?), (1, 0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `get`.
    #[track_caller]
    pub fn count(&self, range: impl KeyBounds<K>) -> Result<u64, Error> {
        let range = range.to_key_range();
        if range == KeyRange::ALL {
            return self.len();
        }
        self.context.lock_range(self.handle(), &range)?;
        self.walk(&range)
    }

    /// Returns the number of entries, which the store counts as they come and go. In a transaction,
    /// the call locks the whole tree as a range does. In a snapshot, it looks up the keys that
    /// changed since.
    ///
    /// The call walks all keys in two cases: in a snapshot of a tree that others are writing to,
    /// and once for a tree that was written while the store had no log.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// assert_eq!(birds.len()?, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `get`.
    #[track_caller]
    pub fn len(&self) -> Result<u64, Error> {
        match self.context.count_all(self.handle())? {
            Some(count) => Ok(count),
            None => self.walk(&KeyRange::ALL),
        }
    }

    /// Returns `true` if there is no entry.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// assert!(!birds.is_empty()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `get`.
    #[track_caller]
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.iter().keys_only().next_entry()?.is_none())
    }

    /// Returns the encoded value as a stream, for values too large for memory. A `Vec<u8>` or a
    /// `String` is encoded as its bytes. In a tree, the stream fails if the value is changed in the
    /// meantime; a transaction has it locked, and a snapshot keeps it.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// # birds.put("heron", &3)?;
    /// # birds.put("otter", &1)?;
    /// assert_eq!(birds.reader("heron")?.map(|value| value.len()), Some(4));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `get`.
    pub fn reader<Q: KeyLike<K> + ?Sized>(
        &self,
        key: &Q,
    ) -> Result<Option<ValueReader<'_>>, Error> {
        key.with_encoded(|key| self.context.reader(self.handle(), key))
    }

    /// Copies the encoded value of `key` into `out`. Returns `false`, with `out` empty, if there is
    /// no such key.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let ponds = db.raw_tree("ponds")?;
    /// # ponds.put(b"mill", b"deep")?;
    /// let mut value = Vec::new();
    /// assert!(ponds.get_into(b"mill", &mut value)? && value == b"deep");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `get`.
    pub fn get_into<Q: KeyLike<K> + ?Sized>(
        &self,
        key: &Q,
        out: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        out.clear();
        Ok(self.get_with(key, |value| out.extend_from_slice(value))?.is_some())
    }

    /// Returns the entries of a range of encoded keys.
    #[track_caller]
    fn key_range(&self, range: &KeyRange) -> Range<'_, K, V> {
        Range::new(self.context.range(self.handle(), range))
    }

    /// Counts the entries of a range one by one.
    #[track_caller]
    fn walk(&self, range: &KeyRange) -> Result<u64, Error> {
        let mut keys = self.context.range(self.handle(), range).keys_only();
        let (count, end) = keys.pass(usize::MAX, true);
        end.map(|()| count as u64)
    }
}
