//! Where a tree is read and written: by itself, in a transaction, in a snapshot; and the byte-level
//! calls of each.
//!
//! They are compiled in this crate, once per combination. The public types over them are thin:
//! `raw::verbs` for byte strings, `typed::verbs` for keys and values with types.

use std::io;
use std::panic::Location;

use crate::api::place::range::{RawEntry, RawRange, bounds};
use crate::api::place::reader::RawReader;
use crate::api::place::snapshot_view::SnapshotView;
use crate::api::place::txn_cell::TxnCell;
use crate::api::strategy::*;
use crate::btree::{Finger, Lookup, WriteCondition, WriteOutcome};
use crate::encoding::key_range::KeyRange;
use crate::lock::is_interrupted;
use crate::page::Scratch;
use crate::pool::PoolError;
use crate::stats::counters::Counter;
use crate::store::counted::{DELETE, GET, PUT};
use crate::store::error::Error;
use crate::store::own_txn::Make;
use crate::store::range::StoreRange;

/// How often an update outside transactions is tried without a lock. On a key that many threads
/// update, the rest would be tried in vain again and again.
const UNLOCKED_TRIES: u32 = 2;

/// A tree, and where it is read and written.
#[derive(Clone, Copy)]
pub(crate) enum Place<'t> {
    /// By itself: each call takes effect as a whole.
    Tree(&'t DbTree),
    /// In a transaction.
    Txn(&'t TxnCell, &'t DbTree),
    /// In a snapshot, which is never written to: no public type leads there.
    Snapshot(&'t SnapshotView, &'t DbTree),
}

impl<'t> Place<'t> {
    fn tree(self) -> &'t DbTree {
        let (Place::Tree(tree) | Place::Txn(_, tree) | Place::Snapshot(_, tree)) = self;
        tree
    }

    /// The name of the tree.
    pub(crate) fn name(self) -> &'t str {
        self.tree().name()
    }

    /// Hands the value of `key` to `f` during the call, for what decodes it; returns whether there
    /// is such a key.
    pub(crate) fn look(self, key: &[u8], f: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        match self {
            Place::Txn(cell, tree) => cell.get(tree, key, f),
            Place::Snapshot(view, tree) => view.get(tree, key, f),
            Place::Tree(_) => {
                let mut scratch = Scratch::default();
                Ok(self.find(key, &mut scratch)?.map(&scratch, f).is_some())
            }
        }
    }

    /// As [`BTree::get_scratch`](crate::btree::BTree::get_scratch).
    pub(crate) fn find(self, key: &[u8], scratch: &mut Scratch) -> Result<Lookup<Vec<u8>>, Error> {
        if let Place::Tree(tree) = self {
            return tree.read_key(GET, key, |tree| tree.get_scratch(key, scratch));
        }
        let mut value = Vec::new();
        let found = self.look(key, &mut |bytes| value.extend_from_slice(bytes))?;
        Ok(if found { Lookup::Overflow(value) } else { Lookup::Missing })
    }

    /// The value of `key`.
    pub(crate) fn get(self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut scratch = Scratch::default();
        Ok(match self.find(key, &mut scratch)? {
            Lookup::Missing => None,
            Lookup::Inline => Some(scratch.bytes().to_vec()),
            Lookup::Overflow(value) => Some(value),
        })
    }

    /// The values of `keys`, in their order; in transactions the keys are locked in the tree's.
    pub(crate) fn get_many(self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mut values = vec![None; keys.len()];
        if let Place::Tree(tree) = self {
            tree.read_keys(keys, &mut values)?;
            return Ok(values);
        }
        let mut sorted: Vec<_> = keys.iter().zip(&mut values).collect();
        sorted.sort_unstable_by_key(|(key, _)| **key);
        for (key, value) in sorted {
            *value = self.get(key)?;
        }
        Ok(values)
    }

    /// Locks `key` to write it, inside a transaction.
    pub(crate) fn lock(self, key: &[u8]) -> Result<(), Error> {
        match self {
            Place::Txn(cell, tree) => cell.lock(tree, key),
            Place::Tree(_) | Place::Snapshot(..) => Ok(()),
        }
    }

    /// Locks the keys of a range to read them, inside a transaction.
    pub(crate) fn lock_range(self, range: &KeyRange) -> Result<(), Error> {
        match self {
            Place::Txn(cell, tree) => cell.lock_range(tree, range),
            Place::Tree(_) | Place::Snapshot(..) => Ok(()),
        }
    }

    /// Whether others may change an entry between two calls.
    pub(crate) fn shares(self) -> bool {
        matches!(self, Place::Tree(_))
    }

    /// The value of `key`, which is to be written next.
    pub(crate) fn get_to_write(self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.lock(key)?;
        self.get(key)
    }

    /// The same where the same call writes it: it is not counted.
    fn peek_to_write(self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.lock(key)?;
        let Place::Txn(cell, tree) = self else { return self.get(key) };
        let mut value = None;
        cell.peek(tree, key, &mut |bytes| value = Some(bytes.to_vec()))?;
        Ok(value)
    }

    pub(crate) fn has(self, key: &[u8]) -> Result<bool, Error> {
        match self {
            Place::Tree(tree) => tree.read_key(GET, key, |tree| tree.contains(key)),
            Place::Txn(..) | Place::Snapshot(..) => self.look(key, &mut |_| ()),
        }
    }

    #[track_caller]
    pub(crate) fn key_range(self, range: &KeyRange) -> RawRange<'t> {
        let caller = Location::caller();
        match self {
            Place::Txn(cell, tree) => RawRange::in_txn(cell, tree, range),
            Place::Snapshot(view, tree) => view.key_range(tree, range),
            Place::Tree(tree) => {
                let entries = StoreRange::committed(tree, bounds(range), caller);
                RawRange::new(tree, entries, range)
            }
        }
    }

    #[track_caller]
    pub(crate) fn count_range(self, range: &KeyRange) -> Result<u64, Error> {
        if *range == KeyRange::ALL
            && let Some(count) = self.count_all()?
        {
            return Ok(count);
        }
        if let Place::Txn(cell, tree) = self {
            cell.lock_range(tree, range)?;
        }
        let (count, end) = self.key_range(range).keys_only().pass(usize::MAX, true);
        end.map(|()| count as u64)
    }

    /// How many entries there are, without a look at them if that can be.
    fn count_all(self) -> Result<Option<u64>, Error> {
        match self {
            Place::Tree(tree) => tree.len(),
            Place::Txn(cell, tree) => cell.len(tree),
            Place::Snapshot(view, tree) => view.len(tree),
        }
    }

    pub(crate) fn stream(self, key: &[u8]) -> Result<Option<RawReader<'t>>, Error> {
        self.tree().store().pool().counters().count(Counter::Gets);
        if let Place::Snapshot(view, tree) = self {
            return Ok(view.stream(tree, key)?.map(RawReader::new));
        }
        if let Place::Txn(cell, tree) = self
            && !cell.peek(tree, key, &mut |_| ())?
        {
            return Ok(None);
        }
        self.tree().store().may_read()?;
        Ok(self.tree().btree().reader(key)?.map(RawReader::new))
    }

    /// As [`Transaction::write`](crate::txn::Transaction::write), inside a transaction.
    fn write(
        self,
        key: &[u8],
        value: Option<&[u8]>,
        condition: WriteCondition<'_>,
    ) -> Result<WriteOutcome, Error> {
        match self {
            Place::Txn(cell, tree) => cell.write(tree, key, value, condition),
            Place::Tree(_) | Place::Snapshot(..) => Err(Error::ReadOnly),
        }
    }

    pub(crate) fn upsert(self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let Place::Tree(tree) = self else {
            return Ok(self.write(key, Some(value), WriteCondition::Always)?.existed);
        };
        tree.write_key(PUT, key, |tree| tree.upsert(key, value))
    }

    pub(crate) fn upsert_returning(
        self,
        key: &[u8],
        value: &[u8],
    ) -> Result<Option<Vec<u8>>, Error> {
        let Place::Tree(tree) = self else {
            let old = self.peek_to_write(key)?;
            self.upsert(key, value)?;
            return Ok(old);
        };
        tree.write_key(PUT, key, |tree| tree.upsert_returning(key, value))
    }

    pub(crate) fn insert_new(self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let Place::Tree(tree) = self else {
            return Ok(self.write(key, Some(value), WriteCondition::Absent)?.applied);
        };
        tree.write_key(PUT, key, |tree| tree.insert(key, value))
    }

    pub(crate) fn replace_old(self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let Place::Tree(tree) = self else {
            return Ok(self.write(key, Some(value), WriteCondition::Present)?.applied);
        };
        tree.write_key(PUT, key, |tree| tree.replace(key, value))
    }

    pub(crate) fn swap(
        self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, Error> {
        let Place::Tree(tree) = self else {
            let is_expected = self.peek_to_write(key)?.as_deref() == expected;
            if is_expected && (expected.is_some() || new.is_some()) {
                self.write(key, new, WriteCondition::Always)?;
            }
            return Ok(is_expected);
        };
        tree.write_key(PUT, key, |tree| tree.compare_and_swap(key, expected, new))
    }

    /// Sets the entry of `key` to what `make` makes of it. In a tree by itself `make` runs again if
    /// others wrote in between; after some tries the key is locked first, where there are locks.
    pub(crate) fn update(self, key: &[u8], make: &mut Make<'_>) -> Result<(), Error> {
        let has_locks = matches!(self, Place::Tree(tree) if tree.has_locks());
        let mut tries = 0..UNLOCKED_TRIES;
        while tries.next().is_some() || !has_locks {
            let old = self.get_to_write(key)?;
            let new = make(old.as_deref())?;
            if self.swap(key, old.as_deref(), new.as_deref())? {
                return Ok(());
            }
        }
        match self {
            Place::Tree(tree) => tree.update_locked(key, make),
            Place::Txn(..) | Place::Snapshot(..) => Err(Error::ReadOnly),
        }
    }

    /// Returns whether there is such a key.
    pub(crate) fn update_bytes(
        self,
        key: &[u8],
        f: &mut dyn FnMut(&mut [u8]),
    ) -> Result<bool, Error> {
        match self {
            Place::Txn(cell, tree) => cell.update_bytes(tree, key, f),
            Place::Snapshot(..) => Err(Error::ReadOnly),
            Place::Tree(tree) => {
                let update = |done: Option<()>| done.is_some();
                tree.write_key(PUT, key, |tree| tree.update_in_place(key, f).map(update))
            }
        }
    }

    pub(crate) fn remove_returning(self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let Place::Tree(tree) = self else {
            let old = self.peek_to_write(key)?;
            if old.is_some() {
                self.remove_key(key)?;
            }
            return Ok(old);
        };
        tree.write_key(DELETE, key, |tree| tree.remove_returning(key))
    }

    pub(crate) fn remove_key(self, key: &[u8]) -> Result<bool, Error> {
        let Place::Tree(tree) = self else {
            return Ok(self.write(key, None, WriteCondition::Present)?.applied);
        };
        tree.write_key(DELETE, key, |tree| tree.remove(key))
    }

    pub(crate) fn remove_all(self, range: &KeyRange) -> Result<u64, Error> {
        match self {
            Place::Txn(cell, tree) => {
                cell.lock_range(tree, range)?;
                self.remove_each(range)
            }
            Place::Snapshot(..) => Err(Error::ReadOnly),
            Place::Tree(tree) => {
                let (start, end) = bounds(range);
                tree.write_all(DELETE, (start, end), |tree| {
                    tree.delete_range_until(start, end, is_interrupted)
                })
            }
        }
    }

    /// Removes the entries of a range key by key: as many as a transaction can undo.
    fn remove_each(self, range: &KeyRange) -> Result<u64, Error> {
        let (mut keys, mut removed) = (self.key_range(range).keys_only(), 0);
        while let Some((key, _)) = keys.next_entry()? {
            if is_interrupted() {
                return Err(PoolError::Interrupted.into());
            }
            let key = key.to_vec();
            removed += u64::from(keys.writing(|| self.remove_key(&key))?);
        }
        Ok(removed)
    }

    pub(crate) fn remove_everything(self) -> Result<u64, Error> {
        self.remove_all(&KeyRange::ALL)
    }

    pub(crate) fn pop(self, first: bool) -> Result<Option<RawEntry>, Error> {
        match self {
            Place::Tree(tree) => tree.pop(first),
            Place::Txn(cell, tree) => cell.pop(tree, first),
            Place::Snapshot(..) => Err(Error::ReadOnly),
        }
    }

    /// Removes an entry that was read from `range` if it is still `value`; returns whether it was.
    /// `finger` is for such removals one after the other.
    pub(crate) fn take(
        self,
        (range, finger): (&mut RawRange<'_>, &mut Finger),
        key: &[u8],
        value: &[u8],
    ) -> Result<bool, Error> {
        match self {
            Place::Tree(tree) => range
                .writing(|| tree.write_key(PUT, key, |tree| tree.remove_if(key, value, finger))),
            Place::Txn(..) => range.writing(|| self.remove_key(key)),
            Place::Snapshot(..) => Err(Error::ReadOnly),
        }
    }

    pub(crate) fn put_stream(
        self,
        key: &[u8],
        len: u64,
        mut source: &mut dyn io::Read,
    ) -> Result<bool, Error> {
        match self {
            Place::Txn(cell, tree) => cell.put_from(tree, key, len, source),
            Place::Snapshot(..) => Err(Error::ReadOnly),
            Place::Tree(tree) => tree.write_key_from(PUT, key, len, &mut source),
        }
    }
}
