//! Hash indexes of byte strings.
//!
//! As with [trees](crate::api::raw_tree), what is compiled for each combination is compiled in this
//! crate. All changes of an entry go through one call, so that there is little of it.

use crate::api::any::*;
use crate::api::hash_index::HashIndex;
use crate::api::raw_tree::{DELETE, GET, PUT, RawEntry};
use crate::api::scan_count::ScanCount;
use crate::encoding::key::Key;
use crate::encoding::value::Value;
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
    any: AnyHashIndex,
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
    pub(crate) fn new(any: AnyHashIndex) -> RawHashIndex {
        RawHashIndex { any }
    }

    /// The same index, read and written with these types.
    pub fn typed<K: Key, V: Value>(self) -> HashIndex<K, V> {
        HashIndex::new(self)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        each!(AnyHashIndex, &self.any, index => index.name())
    }

    /// What fits.
    pub fn limits(&self) -> Limits {
        each!(AnyHashIndex, &self.any, index => index.structure().limits())
    }

    /// Hands a copy of the value of `key` to `f`, and answers with what comes out; `None` if there
    /// is no such key. Up to 1 KiB the copy is on the stack.
    ///
    /// # Errors
    /// The store failed; so for everything that reads.
    pub fn get_with<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Error> {
        let mut scratch = Scratch::default();
        Ok(self.find(key, Some(&mut scratch))?.then(|| f(scratch.bytes())))
    }

    /// Hands the value of `key` itself to `f`, where it lies in its page, and answers with what
    /// comes out; `None` if there is no such key. What `f` may do, and when
    /// [`RawHashIndex::get_with`] is faster, is as for [`RawTree::read`](crate::RawTree::read).
    ///
    /// # Errors
    /// As [`RawHashIndex::get_with`].
    pub fn read<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Error> {
        Ok(self.hold(key)?.map(|value| f(value.bytes())))
    }

    /// Not generic, so that it is compiled here, once per combination.
    fn hold(&self, key: &[u8]) -> Result<Option<Shared<'_>>, Error> {
        each!(AnyHashIndex, &self.any, index => index.read(GET, |index| index.hold(key)))
    }

    fn find(&self, key: &[u8], scratch: Option<&mut Scratch>) -> Result<bool, Error> {
        each!(AnyHashIndex, &self.any, index => {
            index.read(GET, |index| index.find(key, scratch))
        })
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// As [`RawHashIndex::get_with`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// Puts the value of `key` into `out`; `false`, and `out` empty, if there is no such key.
    ///
    /// # Errors
    /// As [`RawHashIndex::get_with`].
    pub fn get_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        out.clear();
        Ok(self.get_with(key, |value| out.extend_from_slice(value))?.is_some())
    }

    /// Whether there is such a key.
    ///
    /// # Errors
    /// As [`RawHashIndex::get_with`].
    pub fn contains(&self, key: &[u8]) -> Result<bool, Error> {
        self.find(key, None)
    }

    /// Makes a change; answers what the call of that name does, and puts the value that was
    /// replaced or removed into `old`.
    fn change(
        &self,
        key: &[u8],
        change: Change<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, Error> {
        let counts = if matches!(change, Change::Remove) { DELETE } else { PUT };
        each!(AnyHashIndex, &self.any, index => index.write(counts, |index| match change {
            Change::Put(value) => index.upsert_into(key, value, old),
            Change::InsertIfAbsent(value) => index.insert(key, value),
            Change::Replace(value) => index.replace(key, value),
            Change::Swap(expected, new) => index.compare_and_swap(key, expected, new),
            Change::Remove => Ok(index.remove_into(key, old)?),
        }))
    }

    /// Inserts an entry or replaces the value of one; answers with the value that was there.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], an entry that is too long, or the store failed; so for everything that
    /// writes.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut old = Vec::new();
        Ok(self.change(key, Change::Put(value), Some(&mut old))?.then_some(old))
    }

    /// Inserts an entry or replaces the value of one; answers whether there was one.
    ///
    /// # Errors
    /// As [`RawHashIndex::insert`].
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        self.change(key, Change::Put(value), None)
    }

    /// Inserts an entry; `false`, and nothing changed, if the key is there already.
    ///
    /// # Errors
    /// As [`RawHashIndex::insert`].
    pub fn insert_if_absent(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        self.change(key, Change::InsertIfAbsent(value), None)
    }

    /// Replaces the value of a key; `false`, and nothing changed, if the key is not there.
    ///
    /// # Errors
    /// As [`RawHashIndex::insert`].
    pub fn replace(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        self.change(key, Change::Replace(value), None)
    }

    /// Sets the entry of `key` to `new` if it is `expected`, where `None` is no entry; answers
    /// whether it was.
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

    /// Removes an entry; answers with its value.
    ///
    /// # Errors
    /// As [`RawHashIndex::insert`].
    pub fn remove(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut old = Vec::new();
        Ok(self.change(key, Change::Remove, Some(&mut old))?.then_some(old))
    }

    /// Removes an entry; answers whether there was one.
    ///
    /// # Errors
    /// As [`RawHashIndex::insert`].
    pub fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.change(key, Change::Remove, None)
    }

    /// Lets `f` change the bytes of a value, but not how many they are; `None` if there is no such
    /// key. `f` runs under the bucket's latch: it must be short and not use the store.
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
        each!(AnyHashIndex, &self.any, index => {
            index.write(PUT, |index| index.update_in_place(key, f).map(|done| done.is_some()))
        })
    }

    /// Removes all entries, and gives their pages back; answers how many there were.
    ///
    /// # Errors
    /// As [`RawHashIndex::insert`].
    pub fn clear(&self) -> Result<u64, Error> {
        each!(AnyHashIndex, &self.any, index => index.write(DELETE, |index| index.clear()))
    }

    /// All entries, in no order that means anything. Others may write meanwhile: an entry that is
    /// there all the time comes exactly once.
    pub fn iter(&self) -> RawEntries<'_> {
        let any =
            turn!(AnyHashIndex => AnyEntries, &self.any, index => index.structure().entries());
        let count = each!(AnyHashIndex, &self.any, index => {
            ScanCount::begin(index.store().pool().counters(), index.store().pool().latencies())
        });
        RawEntries { index: self, any, count, is_over: false }
    }

    /// Counts the entries: a walk over all buckets.
    ///
    /// # Errors
    /// As [`RawHashIndex::get_with`].
    pub fn len(&self) -> Result<u64, Error> {
        Ok(self.stats()?.entries)
    }

    /// Whether there is no entry.
    ///
    /// # Errors
    /// As [`RawHashIndex::get_with`].
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.iter().next().transpose()?.is_none())
    }

    /// Walks the whole index and says what it is made of.
    ///
    /// # Errors
    /// As [`RawHashIndex::get_with`].
    pub fn stats(&self) -> Result<HashStats, Error> {
        each!(AnyHashIndex, &self.any, index => index.look(|index| index.stats()))
    }

    fn may_read(&self) -> Result<(), Error> {
        each!(AnyHashIndex, &self.any, index => index.store().may_read())
    }
}

/// The entries of a hash index. After an error it ends.
pub struct RawEntries<'t> {
    index: &'t RawHashIndex,
    any: AnyEntries<'t>,
    count: ScanCount<'t>,
    is_over: bool,
}

impl RawEntries<'_> {
    /// The name of the index.
    pub(crate) fn name(&self) -> &str {
        self.index.name()
    }

    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }

    fn step(&mut self) -> Result<Option<RawEntry>, Error> {
        self.index.may_read()?;
        Ok(each!(AnyEntries, &mut self.any, entries => entries.next()).transpose()?)
    }
}

impl Iterator for RawEntries<'_> {
    type Item = Result<RawEntry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.step();
        match &next {
            Ok(Some(_)) => self.count.rows += 1,
            Ok(None) | Err(_) => self.is_over = true,
        }
        next.transpose()
    }
}

impl<'t> IntoIterator for &'t RawHashIndex {
    type Item = Result<RawEntry, Error>;
    type IntoIter = RawEntries<'t>;

    fn into_iter(self) -> RawEntries<'t> {
        self.iter()
    }
}
