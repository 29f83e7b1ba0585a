//! A structure in a transaction: every entry read or written is locked until the transaction ends.

use std::io;

use crate::api::context::calls::{Inside, ReadCalls, WriteCalls};
use crate::api::strategy::*;
use crate::api::tree::byte_range::{ByteRange, bounds};
use crate::api::tree::reader::ValueReader;
use crate::api::txn::Txn;
use crate::btree::{Finger, Streamed, WriteCondition, WriteOutcome};
use crate::encoding::key_range::KeyRange;
use crate::lock::is_interrupted;
use crate::pool::PoolError;
use crate::stats::counters::Counter;
use crate::store::error::Error;
use crate::store::own_txn::Make;
use crate::txn::OwnedEntry;

impl Txn {
    /// Applies `decode` to the value of `key` as part of another call, so the read is not counted.
    fn peek<R>(
        &self,
        tree: &DbTree,
        key: &[u8],
        decode: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        self.call(|txn| txn.peek(tree, key, decode))
    }

    /// Locks `key` in X.
    pub(crate) fn lock_key(&self, tree: &DbTree, key: &[u8]) -> Result<(), Error> {
        self.call(|txn| txn.lock(tree, key))
    }

    fn peek_to_write(&self, tree: &DbTree, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.lock_key(tree, key)?;
        self.peek(tree, key, <[u8]>::to_vec)
    }
}

impl<'x> ReadCalls for &'x Txn {
    type Holds<S: 'static> = &'x S;

    fn show(self, tree: &DbTree, key: &[u8], f: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        self.call(|txn| txn.get(tree, key, f)).map(drop)
    }

    #[track_caller]
    fn range<'t>(self, tree: &'t DbTree, range: &KeyRange) -> ByteRange<'t>
    where
        Self: 't,
    {
        ByteRange::in_txn(self, tree, range)
    }

    fn lock_range(self, tree: &DbTree, range: &KeyRange) -> Result<(), Error> {
        self.call(|txn| txn.lock_range(tree, bounds(range)))
    }

    fn count_all(self, tree: &DbTree) -> Result<Option<u64>, Error> {
        self.call(|txn| txn.len(tree))
    }

    fn reader<'t>(self, tree: &'t DbTree, key: &[u8]) -> Result<Option<ValueReader<'t>>, Error>
    where
        Self: 't,
    {
        tree.store().pool().counters().count(Counter::Gets);
        if self.peek(tree, key, |_| ())?.is_none() {
            return Ok(None);
        }
        tree.store().may_read()?;
        Ok(tree.btree().reader(key)?.map(ValueReader::new))
    }

    fn inside<'t>(self) -> Option<Inside<'t>>
    where
        Self: 't,
    {
        Some(Inside::Txn(self))
    }
}

impl WriteCalls for &Txn {
    const SHARES: bool = false;

    fn write(
        self,
        tree: &DbTree,
        key: &[u8],
        value: Option<&[u8]>,
        condition: WriteCondition<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Result<WriteOutcome, Error> {
        if let Some(old) = old {
            match self.peek_to_write(tree, key)? {
                Some(found) => *old = found,
                None if value.is_none() => return Ok(WriteOutcome::default()),
                None => {}
            }
        }
        self.writing(|txn| txn.write(tree, key, value, condition))
    }

    fn compare_and_swap(
        self,
        tree: &DbTree,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, Error> {
        let is_expected = self.peek_to_write(tree, key)?.as_deref() == expected;
        if is_expected && (expected.is_some() || new.is_some()) {
            self.write(tree, key, new, WriteCondition::Always, None)?;
        }
        Ok(is_expected)
    }

    /// The key is locked first, so `make` runs once.
    fn update(self, tree: &DbTree, key: &[u8], make: &mut Make<'_>) -> Result<(), Error> {
        self.lock_key(tree, key)?;
        let old = self.get(tree, key)?;
        let new = make(old.as_deref())?;
        if old.is_some() || new.is_some() {
            self.write(tree, key, new.as_deref(), WriteCondition::Always, None)?;
        }
        Ok(())
    }

    fn update_in_place(
        self,
        tree: &DbTree,
        key: &[u8],
        f: &mut dyn FnMut(&mut [u8]),
    ) -> Result<bool, Error> {
        self.writing(|txn| Ok(txn.update(tree, key, f)?.is_some()))
    }

    /// Entries are removed key by key, and only as many as a transaction can undo.
    fn remove_range(self, tree: &DbTree, range: &KeyRange) -> Result<u64, Error> {
        self.lock_range(tree, range)?;
        let (mut keys, mut removed) = (self.range(tree, range).keys_only(), 0);
        while let Some((key, _)) = keys.next_entry()? {
            if is_interrupted() {
                return Err(PoolError::Interrupted.into());
            }
            let key = key.to_vec();
            let remove = || self.write(tree, &key, None, WriteCondition::Present, None);
            removed += u64::from(keys.writing(remove)?.applied);
        }
        Ok(removed)
    }

    fn pop(self, tree: &DbTree, first: bool) -> Result<Option<OwnedEntry>, Error> {
        self.writing(|txn| txn.pop(tree, first))
    }

    fn remove_given(
        self,
        tree: &DbTree,
        key: &[u8],
        _value: &[u8],
        _finger: &mut Finger,
    ) -> Result<bool, Error> {
        Ok(self.write(tree, key, None, WriteCondition::Present, None)?.applied)
    }

    /// The key is locked first. The source is read before the entry is changed, so it may use the
    /// transaction.
    fn put_from(
        self,
        tree: &DbTree,
        key: &[u8],
        len: u64,
        mut source: &mut dyn io::Read,
    ) -> Result<bool, Error> {
        self.lock_key(tree, key)?;
        match tree.btree().read_streamed(key, len, &mut source)? {
            Streamed::Inline(value) => {
                let written = self.write(tree, key, Some(&value), WriteCondition::Always, None);
                Ok(written?.existed)
            }
            Streamed::Detached(built) => self.writing(|txn| txn.put_built(tree, key, built)),
        }
    }
}
