//! The methods of hash indexes of byte strings that write. All changes of an entry go through one
//! call, so that little is compiled for each combination.

use crate::api::place::at::{Inside, Writes};
use crate::api::place::update_once;
use crate::api::raw::hash_index::RawHashIndex;
use crate::btree::WriteCondition;
use crate::store::counted::{DELETE, PUT};
use crate::store::error::Error;

/// What is to be done to the entry of a key.
#[derive(Clone, Copy)]
enum Change<'a> {
    Put(&'a [u8]),
    InsertIfAbsent(&'a [u8]),
    Replace(&'a [u8]),
    Swap(Option<&'a [u8]>, Option<&'a [u8]>),
    Remove,
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
        self.handle.write_key(counts, key, |index| match change {
            Change::Put(value) => index.upsert_into(key, value, old),
            Change::InsertIfAbsent(value) => index.insert(key, value),
            Change::Replace(value) => index.replace(key, value),
            Change::Swap(expected, new) => index.compare_and_swap(key, expected, new),
            Change::Remove => Ok(index.remove_into(key, old)?),
        })
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
            && let Some(value) = inside.peek_to_write(member, &name)?
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
            Change::Swap(None, None) => Ok(inside.peek_to_write(member, &name)?.is_none()),
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
        update_once(f, |once| self.update_bytes(key, once))
    }

    fn update_bytes(&self, key: &[u8], f: &mut dyn FnMut(&mut [u8])) -> Result<bool, Error> {
        if let Some(inside) = self.at.at().0 {
            return inside.update(self.member(), &self.name_of(key), f);
        }
        self.handle
            .write_key(PUT, key, |index| index.update_in_place(key, f).map(|done| done.is_some()))
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
            return self.handle.clear_with(DELETE, |index| index.clear());
        };
        inside.lock_all(self.member())?;
        let (keys, mut removed) = (self.iter().collect::<Result<Vec<_>, _>>()?, 0);
        for (key, _) in keys {
            removed += u64::from(self.delete(&key)?);
        }
        Ok(removed)
    }
}
