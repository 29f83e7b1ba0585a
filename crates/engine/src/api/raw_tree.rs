//! Trees of byte strings.
//!
//! Nothing here is inlined into the user's crate, and what is generic is so only at its rim: a
//! call's code exists once per combination, in this crate, or every user would compile it ten
//! times.

use std::io;
use std::ops::{Bound, RangeBounds};
use std::panic::Location;

use crate::api::any::*;
use crate::api::scan_count::ScanCount;
use crate::api::tree::Tree;
use crate::btree::{BulkOptions, Entry as BytesEntry, Limits, Lookup, Report, TreeStats, ValueRef};
use crate::encoding::key::Key;
use crate::encoding::key_range::KeyRange;
use crate::encoding::value::Value;
use crate::page::Scratch;
use crate::pool::borrowed::BorrowedPage;
use crate::pool::stats::counters::{Counter, Timing};
use crate::store::error::Error;
use crate::store::range::StoreRange;

pub(crate) const GET: (Counter, Timing) = (Counter::Gets, Timing::GetTime);
pub(crate) const PUT: (Counter, Timing) = (Counter::Puts, Timing::PutTime);
pub(crate) const DELETE: (Counter, Timing) = (Counter::Deletes, Timing::DeleteTime);

/// An owned entry.
pub type RawEntry = (Vec<u8>, Vec<u8>);

/// A named tree: an ordered map of byte strings.
///
/// A handle: clones are cheap, and any thread may use them. Each call takes effect as a whole, at
/// some moment between its beginning and its end. Keys have at most [`Limits::key_max`] bytes,
/// values up to 1 GiB; large values lie in pages of their own.
#[derive(Clone)]
pub struct RawTree {
    any: AnyTree,
}

impl std::fmt::Debug for RawTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawTree").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl RawTree {
    pub(crate) fn new(any: AnyTree) -> RawTree {
        RawTree { any }
    }

    pub(crate) fn any(&self) -> &AnyTree {
        &self.any
    }

    /// The same tree, read and written with these types.
    pub fn typed<K: Key, V: Value>(self) -> Tree<K, V> {
        Tree::new(self)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        each!(AnyTree, &self.any, tree => tree.name())
    }

    /// What fits.
    pub fn limits(&self) -> Limits {
        each!(AnyTree, &self.any, tree => tree.btree().limits())
    }

    /// Hands a copy of the value of `key` to `f`, and answers with what comes out; `None` if there
    /// is no such key. Up to 1 KiB the copy is on the stack.
    ///
    /// A look-up of this kind writes nothing that other threads read: it is the one to take, unless
    /// values are large ([`RawTree::read`]).
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let tree = db.raw_tree("counts")?;
    /// tree.put(b"pond", &7u32.to_le_bytes())?;
    /// let count = tree.get_with(b"pond", |value| value.first().copied())?;
    /// assert_eq!(count, Some(Some(7)));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The store failed; so for everything that reads.
    pub fn get_with<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Error> {
        let mut scratch = Scratch::default();
        Ok(self.find(key, &mut scratch)?.map(&scratch, f))
    }

    /// Hands the value of `key` itself to `f`, where it lies in its page, and answers with what
    /// comes out; `None` if there is no such key. Nothing is copied or allocated; only a value in
    /// pages of its own is put together first ([`RawTree::reader`] gives it piece by piece).
    ///
    /// The page is latched for as long as `f` runs, which writes one word that all threads share:
    /// for keys that many threads look up at once, [`RawTree::get_with`] is the one to take. On one
    /// thread this pays where `f` looks at a part of a large value (1 KiB and more); a copy of a
    /// small one costs no more than the latch, and whoever reads every byte gains nothing.
    ///
    /// `f` keeps writers of the page waiting, though no readers: it must be short, and must not
    /// wait for another thread that writes to this tree. It may read the store and write to other
    /// trees. What needs the page for itself fails with [`PoolError::Held`] after a moment, instead
    /// of waiting for ever: a write to the same page or one beside it, and a large value below it
    /// that is not in memory.
    ///
    /// [`PoolError::Held`]: crate::pool::PoolError::Held
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let tree = db.raw_tree("pictures")?;
    /// tree.put(b"heron", &[7; 900])?;
    /// let bright = tree.read(b"heron", |pixels| pixels.iter().filter(|p| **p > 5).count())?;
    /// assert_eq!(bright, Some(900));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawTree::get_with`].
    pub fn read<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Error> {
        Ok(self.hold(key)?.map(|value| f(value.bytes())))
    }

    /// Not generic, so that it is compiled here, once per combination.
    fn hold(&self, key: &[u8]) -> Result<Option<ValueRef<'_>>, Error> {
        each!(AnyTree, &self.any, tree => tree.read_key(GET, key, |tree| tree.hold(key)))
    }

    /// As [`BTree::get_scratch`](crate::btree::BTree::get_scratch).
    fn find(&self, key: &[u8], scratch: &mut Scratch) -> Result<Lookup<Vec<u8>>, Error> {
        each!(AnyTree, &self.any, tree => {
            tree.read_key(GET, key, |tree| tree.get_scratch(key, scratch))
        })
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// As [`RawTree::get_with`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut scratch = Scratch::default();
        Ok(match self.find(key, &mut scratch)? {
            Lookup::Missing => None,
            Lookup::Inline => Some(scratch.bytes().to_vec()),
            Lookup::Overflow(value) => Some(value),
        })
    }

    /// Puts the value of `key` into `out`; `false`, and `out` empty, if there is no such key.
    ///
    /// # Errors
    /// As [`RawTree::get_with`].
    pub fn get_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        out.clear();
        Ok(self.get_with(key, |value| out.extend_from_slice(value))?.is_some())
    }

    /// Whether there is such a key.
    ///
    /// # Errors
    /// As [`RawTree::get_with`].
    pub fn contains(&self, key: &[u8]) -> Result<bool, Error> {
        each!(AnyTree, &self.any, tree => tree.read_key(GET, key, |tree| tree.contains(key)))
    }

    /// Inserts an entry or replaces the value of one; answers with the value that was there.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], a key or value that is too long, or the store failed; so for
    /// everything that writes.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        each!(AnyTree, &self.any, tree => {
            tree.write_key(PUT, key, |tree| tree.upsert_returning(key, value))
        })
    }

    /// Inserts an entry or replaces the value of one; answers whether there was one.
    ///
    /// # Errors
    /// As [`RawTree::insert`].
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        each!(AnyTree, &self.any, tree => tree.write_key(PUT, key, |tree| tree.upsert(key, value)))
    }

    /// Inserts an entry; `false`, and nothing changed, if the key is there already.
    ///
    /// # Errors
    /// As [`RawTree::insert`].
    pub fn insert_if_absent(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        each!(AnyTree, &self.any, tree => tree.write_key(PUT, key, |tree| tree.insert(key, value)))
    }

    /// Replaces the value of a key; `false`, and nothing changed, if the key is not there.
    ///
    /// # Errors
    /// As [`RawTree::insert`].
    pub fn replace(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        each!(AnyTree, &self.any, tree => tree.write_key(PUT, key, |tree| tree.replace(key, value)))
    }

    /// Sets the entry of `key` to `new` if it is `expected`, where `None` is no entry; answers
    /// whether it was.
    ///
    /// # Errors
    /// As [`RawTree::insert`].
    pub fn compare_and_swap(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, Error> {
        each!(AnyTree, &self.any, tree => {
            tree.write_key(PUT, key, |tree| tree.compare_and_swap(key, expected, new))
        })
    }

    /// Lets `f` change the bytes of a value, but not how many they are; `None` if there is no such
    /// key. `f` runs under the leaf's latch: it must be short and not use the store.
    ///
    /// # Errors
    /// As [`RawTree::insert`].
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

    /// Not generic, so that it is compiled here, once per combination.
    fn update_bytes(&self, key: &[u8], f: &mut dyn FnMut(&mut [u8])) -> Result<bool, Error> {
        each!(AnyTree, &self.any, tree => {
            tree.write_key(PUT, key, |tree| tree.update_in_place(key, f).map(|done| done.is_some()))
        })
    }

    /// Removes an entry; answers with its value.
    ///
    /// # Errors
    /// As [`RawTree::insert`].
    pub fn remove(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        each!(AnyTree, &self.any, tree => {
            tree.write_key(DELETE, key, |tree| tree.remove_returning(key))
        })
    }

    /// Removes an entry; answers whether there was one.
    ///
    /// # Errors
    /// As [`RawTree::insert`].
    pub fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        each!(AnyTree, &self.any, tree => tree.write_key(DELETE, key, |tree| tree.remove(key)))
    }

    /// Removes all entries of a range; answers how many. Whole leaves go without being read one
    /// entry at a time.
    ///
    /// # Errors
    /// As [`RawTree::insert`].
    pub fn remove_range(&self, range: &KeyRange) -> Result<u64, Error> {
        let (start, end) = bounds(range);
        each!(AnyTree, &self.any, tree => {
            tree.write_all(DELETE, (start, end), |tree| tree.delete_range(start, end))
        })
    }

    /// Removes all entries, and gives their pages back; answers how many there were.
    ///
    /// # Errors
    /// As [`RawTree::insert`].
    pub fn clear(&self) -> Result<u64, Error> {
        let all = (Bound::Unbounded, Bound::Unbounded);
        each!(AnyTree, &self.any, tree => tree.write_all(DELETE, all, |tree| tree.clear()))
    }

    /// The entries of a range of keys, from both ends: what is committed. Each leaf is seen as it
    /// was at some moment; as soon as others write meanwhile, all the rest is of one moment.
    /// [`Db::snapshot`](crate::Db::snapshot) is for reads that have to agree with one
    /// another.
    #[track_caller]
    pub fn range<'k>(&self, range: impl RangeBounds<&'k [u8]>) -> RawRange<'_> {
        self.key_range(&KeyRange::of_bytes(range))
    }

    /// The entries whose keys begin with `prefix`.
    #[track_caller]
    pub fn prefix(&self, prefix: &[u8]) -> RawRange<'_> {
        self.key_range(&KeyRange::of_prefix::<Vec<u8>>(prefix))
    }

    /// All entries.
    #[track_caller]
    pub fn iter(&self) -> RawRange<'_> {
        self.key_range(&KeyRange::ALL)
    }

    /// The entries of a range of encoded keys.
    #[track_caller]
    pub fn key_range(&self, range: &KeyRange) -> RawRange<'_> {
        let caller = Location::caller();
        let any = turn!(AnyTree => AnyRange, &self.any, tree => {
            StoreRange::committed(tree, bounds(range), caller)
        });
        RawRange::new(self, any, range)
    }

    /// The first entry.
    ///
    /// # Errors
    /// As [`RawTree::get_with`].
    #[track_caller]
    pub fn first(&self) -> Result<Option<RawEntry>, Error> {
        self.iter().next().transpose()
    }

    /// The last entry.
    ///
    /// # Errors
    /// As [`RawTree::get_with`].
    #[track_caller]
    pub fn last(&self) -> Result<Option<RawEntry>, Error> {
        self.iter().next_back().transpose()
    }

    /// Counts the entries that are committed: a walk over all leaves, and over all keys where
    /// somebody writes meanwhile.
    ///
    /// # Errors
    /// As [`RawTree::iter`].
    #[track_caller]
    pub fn len(&self) -> Result<u64, Error> {
        if let Some(count) = each!(AnyTree, &self.any, tree => tree.count_quietly())? {
            return Ok(count);
        }
        let (mut keys, mut count) = (self.iter().keys_only(), 0);
        while keys.next_entry()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// Whether there is no entry.
    ///
    /// # Errors
    /// As [`RawTree::get_with`].
    #[track_caller]
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.iter().keys_only().next_entry()?.is_none())
    }

    /// Estimates the number of entries from so many ways down the tree.
    ///
    /// # Errors
    /// As [`RawTree::get_with`].
    pub fn len_estimate(&self, ways: u32) -> Result<u64, Error> {
        each!(AnyTree, &self.any, tree => tree.look(|tree| tree.count_estimate(ways)))
    }

    /// Walks the whole tree and says what it is made of.
    ///
    /// # Errors
    /// As [`RawTree::get_with`].
    pub fn stats(&self) -> Result<TreeStats, Error> {
        each!(AnyTree, &self.any, tree => tree.look(|tree| tree.stats()))
    }

    /// Walks the whole tree and says what is wrong with it. The background merge waits meanwhile;
    /// what others change during the walk may be reported as faults that are none.
    ///
    /// # Errors
    /// As [`RawTree::get_with`].
    pub fn check(&self) -> Result<Report, Error> {
        each!(AnyTree, &self.any, tree => tree.look_at_rest(|tree| tree.check()))
    }

    /// Packs badly filled leaves among the next `leaves` ones; answers whether the end of the tree
    /// was reached.
    ///
    /// # Errors
    /// As [`RawTree::insert`].
    pub fn compact(&self, leaves: u32) -> Result<bool, Error> {
        each!(AnyTree, &self.any, tree => tree.alter(|tree| tree.compact(leaves)))
    }

    /// Loads entries whose keys ascend into this tree, which must be empty; answers how many.
    ///
    /// # Errors
    /// [`Error::Bulk`], or as [`RawTree::insert`].
    pub fn bulk_load(
        &self,
        rows: impl IntoIterator<Item = RawEntry>,
        options: BulkOptions,
    ) -> Result<u64, Error> {
        self.bulk_load_rows(&mut rows.into_iter(), options)
    }

    fn bulk_load_rows(
        &self,
        rows: &mut dyn Iterator<Item = RawEntry>,
        options: BulkOptions,
    ) -> Result<u64, Error> {
        each!(AnyTree, &self.any, tree => {
            tree.fill(|tree| tree.bulk_load(rows, options))
        })
    }

    /// The value of `key` as a stream; `None` if there is no such key.
    ///
    /// # Errors
    /// As [`RawTree::get_with`].
    pub fn reader(&self, key: &[u8]) -> Result<Option<RawReader<'_>>, Error> {
        let any = turn_some!(AnyTree => AnyReader, &self.any, tree => {
            tree.store().may_read()?;
            tree.btree().reader(key)?
        });
        Ok(any.map(|any| RawReader { any }))
    }

    /// Inserts or replaces a value of `len` bytes that comes out of `source`, page by page;
    /// answers whether there was one. Nobody sees it before it is complete.
    ///
    /// # Errors
    /// [`Error::Stream`], or as [`RawTree::insert`].
    pub fn put_from(&self, key: &[u8], len: u64, mut source: impl io::Read) -> Result<bool, Error> {
        let source: &mut dyn io::Read = &mut source;
        self.put_from_dyn(key, len, source)
    }

    fn put_from_dyn(
        &self,
        key: &[u8],
        len: u64,
        mut source: &mut dyn io::Read,
    ) -> Result<bool, Error> {
        each!(AnyTree, &self.any, tree => {
            tree.write_key_from(PUT, key, len, &mut source)
        })
    }
}

pub(crate) fn bounds(range: &KeyRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (range.start.as_ref().map(Vec::as_slice), range.end.as_ref().map(Vec::as_slice))
}

/// The entries of a range, from both ends.
///
/// As an iterator it gives owned entries; [`RawRange::next_entry`] lends them. It looks at copies
/// of leaves, so it holds nobody up and sees each leaf as it was at some moment. After an error it
/// ends.
pub struct RawRange<'t> {
    tree: &'t RawTree,
    any: AnyRange<'t>,
    count: ScanCount<'t>,
    is_over: bool,
}

impl<'t> RawRange<'t> {
    pub(crate) fn new(tree: &'t RawTree, any: AnyRange<'t>, range: &KeyRange) -> RawRange<'t> {
        let count = each!(AnyTree, &tree.any, tree => {
            ScanCount::begin(tree.store().pool().counters(), tree.store().pool().latencies())
        });
        RawRange { tree, any, count, is_over: range.is_empty() }
    }

    /// Large values are not read, and come out empty.
    #[must_use]
    pub fn keys_only(mut self) -> Self {
        self.any = turn!(AnyRange => AnyRange, self.any, range => range.keys_only());
        self
    }

    /// A large scan: the pool need not keep the leaves that it has to load for it.
    #[must_use]
    pub fn as_scan(mut self) -> Self {
        self.any = turn!(AnyRange => AnyRange, self.any, range => range.for_scan());
        self
    }

    fn step<E>(
        count: &mut ScanCount<'_>,
        is_over: &mut bool,
        next: Result<Option<E>, Error>,
    ) -> Result<Option<E>, Error> {
        match &next {
            Ok(Some(_)) => count.rows += 1,
            Ok(None) | Err(_) => *is_over = true,
        }
        next
    }

    fn may_step(&self) -> Result<bool, Error> {
        if self.is_over {
            return Ok(false);
        }
        each!(AnyTree, &self.tree.any, tree => tree.store().may_read())?;
        Ok(true)
    }

    /// The next entry from the front, borrowed until the next call.
    ///
    /// # Errors
    /// The store failed.
    pub fn next_entry(&mut self) -> Result<Option<BytesEntry<'_>>, Error> {
        if !self.may_step()? {
            return Ok(None);
        }
        let next = each!(AnyRange, &mut self.any, range => range.next());
        Self::step(&mut self.count, &mut self.is_over, next)
    }

    /// The next entry from the back, borrowed until the next call.
    ///
    /// # Errors
    /// The store failed.
    pub fn next_entry_back(&mut self) -> Result<Option<BytesEntry<'_>>, Error> {
        if !self.may_step()? {
            return Ok(None);
        }
        let next = each!(AnyRange, &mut self.any, range => range.next_back());
        Self::step(&mut self.count, &mut self.is_over, next)
    }

    /// The name of the tree.
    pub(crate) fn tree_name(&self) -> &str {
        self.tree.name()
    }

    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }
}

impl Iterator for RawRange<'_> {
    type Item = Result<RawEntry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.next_entry().transpose()?;
        Some(entry.map(|(key, value)| (key.to_vec(), value.to_vec())))
    }
}

impl DoubleEndedIterator for RawRange<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let entry = self.next_entry_back().transpose()?;
        Some(entry.map(|(key, value)| (key.to_vec(), value.to_vec())))
    }
}

impl<'t> IntoIterator for &'t RawTree {
    type Item = Result<RawEntry, Error>;
    type IntoIter = RawRange<'t>;

    #[track_caller]
    fn into_iter(self) -> RawRange<'t> {
        self.iter()
    }
}

/// A value, read piece by piece: [`io::Read`] and [`io::Seek`]. If the value is changed or removed
/// meanwhile, reading fails.
pub struct RawReader<'t> {
    any: AnyReader<'t>,
}

impl RawReader<'_> {
    /// Bytes of the value.
    pub fn len(&self) -> u64 {
        each!(AnyReader, &self.any, reader => reader.len())
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl io::Read for RawReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        each!(AnyReader, &mut self.any, reader => reader.read(out))
    }
}

impl io::Seek for RawReader<'_> {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        each!(AnyReader, &mut self.any, reader => reader.seek(to))
    }
}
