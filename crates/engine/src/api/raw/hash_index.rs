//! Hash indexes of byte strings.
//!
//! As with [trees](crate::api::raw::tree), what is compiled for each combination is compiled in
//! this crate. All changes of an entry go through one call, so that there is little of it.

use crate::api::place::counted::{DELETE, GET, PUT, ScanCount};
use crate::api::place::range::RawEntry;
use crate::api::raw::hash_entries::RawEntries;
use crate::api::strategy::*;
use crate::hash_index::{HashStats, Limits};
use crate::page::Scratch;
use crate::pool::Shared;
use crate::pool::borrowed::BorrowedPage;
use crate::store::error::Error;

/// A named hash index: an unordered map of byte strings.
///
/// A handle: clones are cheap, and any thread may use them. Each call takes effect as a whole, at
/// some moment between its beginning and its end. A key and its value together have at most
/// [`Limits::entry_max`] bytes.
#[derive(Clone)]
pub struct RawHashIndex {
    handle: DbHashIndex,
}

impl std::fmt::Debug for RawHashIndex {
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
    pub(crate) fn new(handle: DbHashIndex) -> RawHashIndex {
        RawHashIndex { handle }
    }

    pub(crate) fn handle(&self) -> &DbHashIndex {
        &self.handle
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
        self.handle.name()
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
        self.handle.structure().limits()
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
        Ok(self.hold(key)?.map(|value| f(value.bytes())))
    }

    /// Not generic, so that it is compiled here, once per combination.
    fn hold(&self, key: &[u8]) -> Result<Option<Shared<'_>>, Error> {
        self.handle.read(GET, |index| index.hold(key))
    }

    fn find(&self, key: &[u8], scratch: Option<&mut Scratch>) -> Result<bool, Error> {
        self.handle.read(GET, |index| index.find(key, scratch))
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
        self.find(key, None)
    }

    /// Makes a change; returns what the call of that name does, and puts the value that was
    /// replaced or removed into `old`.
    fn change(
        &self,
        key: &[u8],
        change: Change<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, Error> {
        let counts = if matches!(change, Change::Remove) { DELETE } else { PUT };
        self.handle.write(counts, |index| match change {
            Change::Put(value) => index.upsert_into(key, value, old),
            Change::InsertIfAbsent(value) => index.insert(key, value),
            Change::Replace(value) => index.replace(key, value),
            Change::Swap(expected, new) => index.compare_and_swap(key, expected, new),
            Change::Remove => Ok(index.remove_into(key, old)?),
        })
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
        self.handle.write(PUT, |index| index.update_in_place(key, f).map(|done| done.is_some()))
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
        self.handle.write(DELETE, |index| index.clear())
    }

    /// All entries, in no order that means anything. Others may write meanwhile: an entry that is
    /// there all the time comes exactly once.
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
    pub fn iter(&self) -> RawEntries<'_> {
        let entries = self.handle.structure().entries();
        let count = ScanCount::begin(
            self.handle.store().pool().counters(),
            self.handle.store().pool().latencies(),
        );
        RawEntries::new(&self.handle, entries, count)
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
    pub fn len(&self) -> Result<u64, Error> {
        Ok(self.stats()?.entries)
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
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.iter().next().transpose()?.is_none())
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
        self.handle.look(|index| index.stats())
    }
}

impl<'t> IntoIterator for &'t RawHashIndex {
    type Item = Result<RawEntry, Error>;
    type IntoIter = RawEntries<'t>;

    fn into_iter(self) -> RawEntries<'t> {
        self.iter()
    }
}
