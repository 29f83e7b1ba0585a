//! Hash indexes of byte strings.
//!
//! As with [trees](crate::api::raw::tree), what is compiled for each combination is compiled in
//! this crate. All changes of an entry go through one call, so that there is little of it.

use crate::api::any::*;
use crate::api::place::at::{Alone, InTxn, Inside, Where, Writes};
use crate::api::place::counted::{DELETE, GET, PUT};
use crate::api::place::range::RawEntry;
use crate::api::place::scan::{self, Scan};
use crate::api::raw::hash_entries::RawEntries;
use crate::btree::WriteCondition;
use crate::hash_index::{HashStats, Limits};
use crate::page::Scratch;
use crate::pool::Shared;
use crate::pool::borrowed::BorrowedPage;
use crate::store::error::Error;
use crate::store::member::Member;

/// A named hash index: an unordered map of byte strings.
///
/// A handle: clones are cheap, and any thread may use them. Each call takes effect as a whole, at
/// some moment between its beginning and its end. A key and its value together have at most
/// [`Limits::entry_max`] bytes.
#[derive(Clone)]
pub struct RawHashIndex<W = Alone> {
    any: AnyHashIndex,
    at: W,
}

impl<W: Where> std::fmt::Debug for RawHashIndex<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawHashIndex").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// What is to be done to the entry of a key.
#[derive(Clone, Copy)]
enum Change<'a> {
    Put(&'a [u8]),
    InsertIfAbsent(&'a [u8]),
    Replace(&'a [u8]),
    Swap(Option<&'a [u8]>, Option<&'a [u8]>),
    Remove,
}

impl RawHashIndex {
    pub(crate) fn new(any: AnyHashIndex) -> RawHashIndex {
        RawHashIndex { any, at: Alone }
    }

    pub(crate) fn any(&self) -> &AnyHashIndex {
        &self.any
    }

    /// The same index, read and written in another place.
    pub(crate) fn at<W: Where>(&self, at: W) -> RawHashIndex<W> {
        RawHashIndex { any: self.any.clone(), at }
    }

    /// Walks the whole index and says what it is made of.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// println!("{:?}", sessions.stats()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHashIndex::get_with`].
    pub fn stats(&self) -> Result<HashStats, Error> {
        each!(AnyHashIndex, &self.any, index => index.look(|index| index.stats()))
    }
}

impl<W: Where> RawHashIndex<W> {
    fn member(&self) -> &dyn Member {
        each!(AnyHashIndex, &self.any, index => index)
    }

    /// The name of an entry, by which transactions and snapshots know it.
    fn name_of(&self, key: &[u8]) -> Vec<u8> {
        let mut name = Vec::new();
        each!(AnyHashIndex, &self.any, index => index.structure().name_entry(key, &mut name));
        name
    }

    /// Its name.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert_eq!(sessions.name(), "sessions");
    /// # Ok(()) }
    /// ```
    pub fn name(&self) -> &str {
        each!(AnyHashIndex, &self.any, index => index.name())
    }

    /// What fits.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert!(sessions.limits().entry_max > 100);
    /// # Ok(()) }
    /// ```
    pub fn limits(&self) -> Limits {
        each!(AnyHashIndex, &self.any, index => index.structure().limits())
    }

    /// Hands a copy of the value of `key` to `f`, and returns its result; `None` if there
    /// is no such key. Up to 1 KiB the copy is on the stack.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert_eq!(sessions.get_with(b"4f1c", |value| value.len())?, Some(2));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The store failed; the same for all that reads.
    pub fn get_with<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Error> {
        if let Some(inside) = self.at.at().0 {
            let (mut f, mut result) = (Some(f), None);
            inside.look(self.member(), &self.name_of(key), &mut |value| {
                if let Some(f) = f.take() {
                    result = Some(f(value));
                }
            })?;
            return Ok(result);
        }
        let mut scratch = Scratch::default();
        Ok(self.find(key, Some(&mut scratch))?.then(|| f(scratch.bytes())))
    }

    /// Hands the value of `key` itself to `f`, where it lies in its page, and returns what
    /// comes out; `None` if there is no such key. What `f` may do, and when
    /// [`RawHashIndex::get_with`] is faster, is as for [`RawTree::read`](crate::RawTree::read).
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert_eq!(sessions.read(b"4f1c", |value| value.len())?, Some(2));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHashIndex::get_with`].
    pub fn read<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Error> {
        if self.at.at().0.is_some() {
            return self.get_with(key, f);
        }
        Ok(self.hold(key)?.map(|value| f(value.bytes())))
    }

    /// Not generic, so that it is compiled here, once per combination.
    fn hold(&self, key: &[u8]) -> Result<Option<Shared<'_>>, Error> {
        each!(AnyHashIndex, &self.any, index => index.read_key(GET, key, |index| index.hold(key)))
    }

    fn find(&self, key: &[u8], mut scratch: Option<&mut Scratch>) -> Result<bool, Error> {
        each!(AnyHashIndex, &self.any, index => {
            index.read_key(GET, key, |index| index.find(key, scratch.as_deref_mut()))
        })
    }

    /// The value of `key`.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert_eq!(sessions.get(b"4f1c")?, Some(b"17".to_vec()));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHashIndex::get_with`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// Puts the value of `key` into `out`; `false`, and `out` empty, if there is no such key.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// let mut value = Vec::new();
    /// assert!(sessions.get_into(b"4f1c", &mut value)? && value == b"17");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHashIndex::get_with`].
    pub fn get_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        out.clear();
        Ok(self.get_with(key, |value| out.extend_from_slice(value))?.is_some())
    }

    /// Whether there is such a key.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert!(sessions.contains(b"4f1c")?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHashIndex::get_with`].
    pub fn contains(&self, key: &[u8]) -> Result<bool, Error> {
        match self.at.at().0 {
            Some(inside) => inside.look(self.member(), &self.name_of(key), &mut |_| ()),
            None => self.find(key, None),
        }
    }

    /// All entries, in no order that means anything. By itself it shows what is committed; others
    /// may write meanwhile: an entry that is there all the time comes exactly once. In a
    /// transaction, what it has shown is locked.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert_eq!(sessions.iter().count(), 1);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn iter(&self) -> RawEntries<'_> {
        RawEntries::new(Scan::begin(self.member(), self.at.at(), 0))
    }

    /// Counts the entries: a walk over all buckets.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert_eq!(sessions.len()?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHashIndex::get_with`].
    #[track_caller]
    pub fn len(&self) -> Result<u64, Error> {
        if self.at.at().0.is_none() {
            let counted = each!(AnyHashIndex, &self.any, index => {
                let count = &mut || index.look(|index| index.len());
                index.store().transactions().quietly(count)
            });
            if let Some(counted) = counted {
                return counted;
            }
        }
        scan::count(self.member(), self.at.at())
    }

    /// Whether there is no entry.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert!(!sessions.is_empty()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHashIndex::get_with`].
    #[track_caller]
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.iter().next().transpose()?.is_none())
    }
}

impl RawHashIndex<InTxn<'_>> {
    /// The value of `key`, which is locked as if it were written; see
    /// [`HashIndex::get_for_update`](crate::HashIndex::get_for_update).
    #[doc(hidden)]
    #[allow(clippy::missing_errors_doc, reason = "hidden")]
    pub fn get_for_update(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Inside::Txn(self.at.0).get_to_write(self.member(), &self.name_of(key))
    }
}

impl<W: Writes> RawHashIndex<W> {
    /// Makes a change; returns what the call of that name does, and puts the value that was
    /// replaced or removed into `old`.
    fn change(
        &self,
        key: &[u8],
        change: Change<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, Error> {
        if let Some(inside) = self.at.at().0 {
            return self.change_inside(inside, key, change, old);
        }
        let counts = if matches!(change, Change::Remove) { DELETE } else { PUT };
        each!(AnyHashIndex, &self.any, index => index.write_key(counts, key, |index| match change {
            Change::Put(value) => index.upsert_into(key, value, old),
            Change::InsertIfAbsent(value) => index.insert(key, value),
            Change::Replace(value) => index.replace(key, value),
            Change::Swap(expected, new) => index.compare_and_swap(key, expected, new),
            Change::Remove => Ok(index.remove_into(key, old)?),
        }))
    }

    /// As [`RawHashIndex::change`], in a transaction.
    fn change_inside(
        &self,
        inside: Inside<'_>,
        key: &[u8],
        change: Change<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, Error> {
        let (member, name) = (self.member(), self.name_of(key));
        if let Some(old) = old
            && let Some(value) = inside.get_to_write(member, &name)?
        {
            *old = value;
        }
        let write = |value, condition| inside.write(member, &name, value, condition);
        match change {
            Change::Put(value) => Ok(write(Some(value), WriteCondition::Always)?.existed),
            Change::InsertIfAbsent(value) => {
                Ok(write(Some(value), WriteCondition::Absent)?.applied)
            }
            Change::Replace(value) => Ok(write(Some(value), WriteCondition::Present)?.applied),
            Change::Remove => Ok(write(None, WriteCondition::Present)?.applied),
            Change::Swap(None, None) => Ok(inside.get_to_write(member, &name)?.is_none()),
            Change::Swap(None, new) => Ok(write(new, WriteCondition::Absent)?.applied),
            Change::Swap(Some(old), new) => Ok(write(new, WriteCondition::Equals(old))?.applied),
        }
    }

    /// Inserts an entry or replaces the value of one; returns the value that was there.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert_eq!(sessions.insert(b"4f1c", b"18")?, Some(b"17".to_vec()));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::ReadOnly`], an entry that is too long, or the store failed; so for everything that
    /// writes.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut old = Vec::new();
        Ok(self.change(key, Change::Put(value), Some(&mut old))?.then_some(old))
    }

    /// Inserts an entry or replaces the value of one; returns whether there was one.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert!(sessions.put(b"4f1c", b"18")?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHashIndex::insert`].
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        self.change(key, Change::Put(value), None)
    }

    /// Inserts an entry; `false`, and nothing changed, if the key is there already.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert!(!sessions.insert_if_absent(b"4f1c", b"18")?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHashIndex::insert`].
    pub fn insert_if_absent(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        self.change(key, Change::InsertIfAbsent(value), None)
    }

    /// Replaces the value of a key; `false`, and nothing changed, if the key is not there.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert!(sessions.replace(b"4f1c", b"18")?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHashIndex::insert`].
    pub fn replace(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        self.change(key, Change::Replace(value), None)
    }

    /// Sets the entry of `key` to `new` if it is `expected`, where `None` is no entry; returns
    /// whether it was.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert!(sessions.compare_and_swap(b"4f1c", Some(b"17"), None)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHashIndex::insert`].
    pub fn compare_and_swap(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, Error> {
        self.change(key, Change::Swap(expected, new), None)
    }

    /// Removes an entry; returns its value.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert_eq!(sessions.remove(b"4f1c")?, Some(b"17".to_vec()));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHashIndex::insert`].
    pub fn remove(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut old = Vec::new();
        Ok(self.change(key, Change::Remove, Some(&mut old))?.then_some(old))
    }

    /// Removes an entry; returns whether there was one.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert!(sessions.delete(b"4f1c")?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHashIndex::insert`].
    pub fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.change(key, Change::Remove, None)
    }

    /// Lets `f` change the bytes of a value, but not how many they are; `None` if there is no such
    /// key. `f` runs under the bucket's latch: it must be short and not use the store.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// sessions.update_in_place(b"4f1c", |value| value[0] = b'9')?;
    /// assert_eq!(sessions.get(b"4f1c")?, Some(b"97".to_vec()));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHashIndex::insert`].
    pub fn update_in_place<R>(
        &self,
        key: &[u8],
        f: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<Option<R>, Error> {
        let (mut f, mut result) = (Some(f), None);
        let mut once = |value: &mut [u8]| {
            let _lent = BorrowedPage::begin();
            if let Some(f) = f.take() {
                result = Some(f(value));
            }
        };
        self.update_bytes(key, &mut once)?;
        Ok(result)
    }

    fn update_bytes(&self, key: &[u8], f: &mut dyn FnMut(&mut [u8])) -> Result<bool, Error> {
        if let Some(inside) = self.at.at().0 {
            return inside.update(self.member(), &self.name_of(key), f);
        }
        each!(AnyHashIndex, &self.any, index => index.write_key(PUT, key, |index| {
            index.update_in_place(key, f).map(|done| done.is_some())
        }))
    }

    /// Removes all entries, and gives their pages back; returns how many there were.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert_eq!(sessions.clear()?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHashIndex::insert`].
    pub fn clear(&self) -> Result<u64, Error> {
        let Some(inside) = self.at.at().0 else {
            return each!(AnyHashIndex, &self.any, index => {
                index.clear_with(DELETE, |index| index.clear())
            });
        };
        inside.lock_all(self.member())?;
        let (keys, mut removed) = (self.iter().collect::<Result<Vec<_>, _>>()?, 0);
        for (key, _) in keys {
            removed += u64::from(self.delete(&key)?);
        }
        Ok(removed)
    }
}

impl<'t, W: Where> IntoIterator for &'t RawHashIndex<W> {
    type Item = Result<RawEntry, Error>;
    type IntoIter = RawEntries<'t>;

    fn into_iter(self) -> RawEntries<'t> {
        self.iter()
    }
}
