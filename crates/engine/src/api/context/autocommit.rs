//! A structure used by itself: each call is a transaction of its own, without undo.

use std::borrow::Cow;
use std::io;
use std::panic::Location;

use crate::api::context::Autocommit;
use crate::api::context::calls::{Inside, ReadCalls, WriteCalls};
use crate::api::strategy::*;
use crate::api::tree::byte_range::{ByteRange, bounds};
use crate::api::tree::reader::ValueReader;
use crate::btree::{Finger, Lookup, WriteCondition, WriteOutcome};
use crate::encoding::key_range::KeyRange;
use crate::lock::is_interrupted;
use crate::page::Scratch;
use crate::stats::counters::Counter;
use crate::store::counted::{DELETE, GET, PUT, write_of};
use crate::store::error::Error;
use crate::store::own_txn::Make;
use crate::store::range::StoreRange;
use crate::txn::OwnedEntry;

/// Number of times an update is tried without a lock. On a key that many threads update, further
/// tries would fail, too.
const UNLOCKED_TRIES: u32 = 2;

impl ReadCalls for Autocommit {
    type Holds<S: 'static> = S;

    fn show(self, tree: &DbTree, key: &[u8], f: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        self.look(tree, key, |value| f(&value)).map(drop)
    }

    fn find(
        self,
        tree: &DbTree,
        key: &[u8],
        scratch: &mut Scratch,
    ) -> Result<Lookup<Vec<u8>>, Error> {
        tree.read_key(GET, key, |tree| tree.get_scratch(key, scratch))
    }

    #[inline]
    fn look<R>(
        self,
        tree: &DbTree,
        key: &[u8],
        decode: impl FnOnce(Cow<'_, [u8]>) -> R,
    ) -> Result<Option<R>, Error> {
        let mut scratch = Scratch::default();
        Ok(match self.find(tree, key, &mut scratch)? {
            Lookup::Missing => None,
            Lookup::Inline => Some(decode(Cow::Borrowed(scratch.bytes()))),
            Lookup::Overflow(value) => Some(decode(Cow::Owned(value))),
        })
    }

    fn get_many(self, tree: &DbTree, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mut values = vec![None; keys.len()];
        tree.read_keys(keys, &mut values)?;
        Ok(values)
    }

    fn contains(self, tree: &DbTree, key: &[u8]) -> Result<bool, Error> {
        tree.read_key(GET, key, |tree| tree.contains(key))
    }

    #[track_caller]
    fn range<'t>(self, tree: &'t DbTree, range: &KeyRange) -> ByteRange<'t>
    where
        Self: 't,
    {
        let entries = StoreRange::committed(tree, bounds(range), Location::caller());
        ByteRange::outside(tree, entries, range)
    }

    fn count_all(self, tree: &DbTree) -> Result<Option<u64>, Error> {
        tree.len()
    }

    fn reader<'t>(self, tree: &'t DbTree, key: &[u8]) -> Result<Option<ValueReader<'t>>, Error>
    where
        Self: 't,
    {
        tree.store().pool().counters().count(Counter::Gets);
        tree.store().may_read()?;
        Ok(tree.btree().reader(key)?.map(ValueReader::new))
    }

    fn inside<'t>(self) -> Option<Inside<'t>>
    where
        Self: 't,
    {
        None
    }
}

impl WriteCalls for Autocommit {
    const SHARES: bool = true;

    fn write(
        self,
        tree: &DbTree,
        key: &[u8],
        value: Option<&[u8]>,
        condition: WriteCondition<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Result<WriteOutcome, Error> {
        tree.write_key(write_of(value), key, |tree| tree.set(key, value, condition, old))
    }

    fn compare_and_swap(
        self,
        tree: &DbTree,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, Error> {
        tree.write_key(PUT, key, |tree| tree.compare_and_swap(key, expected, new))
    }

    /// Runs `make` again if others write in between. After some tries the key is locked first, if
    /// the store has locks.
    fn update(self, tree: &DbTree, key: &[u8], make: &mut Make<'_>) -> Result<(), Error> {
        let mut tries = 0..UNLOCKED_TRIES;
        while tries.next().is_some() || !tree.has_locks() {
            let old = self.get(tree, key)?;
            let new = make(old.as_deref())?;
            if self.compare_and_swap(tree, key, old.as_deref(), new.as_deref())? {
                return Ok(());
            }
        }
        tree.update_locked(key, make)
    }

    fn update_in_place(
        self,
        tree: &DbTree,
        key: &[u8],
        f: &mut dyn FnMut(&mut [u8]),
    ) -> Result<bool, Error> {
        let update = |done: Option<()>| done.is_some();
        tree.write_key(PUT, key, |tree| tree.update_in_place(key, f).map(update))
    }

    fn remove_range(self, tree: &DbTree, range: &KeyRange) -> Result<u64, Error> {
        let bounds = bounds(range);
        tree.write_all(DELETE, bounds, |tree| {
            tree.delete_range_until(bounds.lower, bounds.upper, is_interrupted)
        })
    }

    fn pop(self, tree: &DbTree, first: bool) -> Result<Option<OwnedEntry>, Error> {
        tree.pop(first)
    }

    fn remove_given(
        self,
        tree: &DbTree,
        key: &[u8],
        value: &[u8],
        finger: &mut Finger,
    ) -> Result<bool, Error> {
        tree.write_key(PUT, key, |tree| tree.remove_if(key, value, finger))
    }

    fn put_from(
        self,
        tree: &DbTree,
        key: &[u8],
        len: u64,
        mut source: &mut dyn io::Read,
    ) -> Result<bool, Error> {
        tree.write_key_from(PUT, key, len, &mut source)
    }
}
