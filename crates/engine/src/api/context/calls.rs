//! The traits of contexts.

use std::borrow::{Borrow, Cow};
use std::io;

use crate::api::snapshot::Snapshot;
use crate::api::strategy::*;
use crate::api::tree::byte_range::ByteRange;
use crate::api::tree::reader::ValueReader;
use crate::api::txn::Txn;
use crate::btree::{Finger, Lookup, WriteCondition, WriteOutcome};
use crate::encoding::key_range::KeyRange;
use crate::page::Scratch;
use crate::store::error::Error;
use crate::store::own_txn::Make;
use crate::txn::OwnedEntry;

/// The context of a structure that is used by itself: each call commits on its own.
///
/// ```
/// use millpond::{Autocommit, Db, Error, Options, Tree};
/// fn count(stock: &Tree<String, u64, Autocommit>) -> Result<u64, Error> {
///     stock.len()
/// }
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let stock = db.tree::<String, u64>("stock")?;
/// stock.put("bolts", &12)?;
/// assert_eq!(count(&stock)?, 1);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Autocommit;

/// A context in which a structure is read: [`Autocommit`], [`&Txn`](crate::Txn) or
/// [`&Snapshot`](crate::Snapshot).
///
/// ```
/// use millpond::{Db, Error, Options, Reads, Tree};
/// fn total(stock: &Tree<String, u64, impl Reads>) -> Result<u64, Error> {
///     stock.iter().map(|row| Ok(row?.1)).sum()
/// }
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let stock = db.tree::<String, u64>("stock")?;
/// let before = db.snapshot()?;
/// stock.put("bolts", &12)?;
/// assert_eq!((total(&stock)?, total(&before.tree(&stock))?), (12, 0));
/// # Ok(()) }
/// ```
pub trait Reads: ReadCalls {}

/// A context in which a structure is read and written: [`Autocommit`] or [`&Txn`](crate::Txn).
///
/// ```
/// use millpond::{Db, Error, Options, Tree, Writes};
/// fn restock(stock: &Tree<String, u64, impl Writes>) -> Result<bool, Error> {
///     stock.put("bolts", &100)
/// }
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let stock = db.tree::<String, u64>("stock")?;
/// assert!(!restock(&stock)?);
/// assert!(db.transact(|tx| restock(&tx.tree(&stock)))?);
/// # Ok(()) }
/// ```
pub trait Writes: Reads + WriteCalls {}

impl<C: ReadCalls> Reads for C {}
impl<C: WriteCalls> Writes for C {}

/// The reading calls of a context, on byte strings. They are not generic, so they are compiled in
/// this crate.
pub trait ReadCalls: Copy {
    /// Holder of the structure `S` in a handle of this context: owned or borrowed.
    type Holds<S: 'static>: Borrow<S>;

    /// Hands the value of `key` to `f`, which must not use the store.
    fn show(self, tree: &DbTree, key: &[u8], f: &mut dyn FnMut(&[u8])) -> Result<(), Error>;

    /// Looks `key` up and returns a copy of the value, so that the caller's closure may use the
    /// store. A context may copy an inline value to `scratch` instead.
    fn find(
        self,
        tree: &DbTree,
        key: &[u8],
        scratch: &mut Scratch,
    ) -> Result<Lookup<Vec<u8>>, Error> {
        let _ = scratch;
        Ok(self.get(tree, key)?.map_or(Lookup::Missing, Lookup::Overflow))
    }

    /// Applies `decode` to the value of `key` and returns the result; `decode` must not use the
    /// store.
    #[inline]
    fn look<R>(
        self,
        tree: &DbTree,
        key: &[u8],
        decode: impl FnOnce(Cow<'_, [u8]>) -> R,
    ) -> Result<Option<R>, Error> {
        let (mut decode, mut decoded) = (Some(decode), None);
        self.show(tree, key, &mut |value| {
            decoded = decode.take().map(|decode| decode(Cow::Borrowed(value)));
        })?;
        Ok(decoded)
    }

    /// Returns the value of `key`.
    fn get(self, tree: &DbTree, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.look(tree, key, |value| value.into_owned())
    }

    /// Returns the values of `keys`, in their order.
    fn get_many(self, tree: &DbTree, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mut values = vec![None; keys.len()];
        let mut sorted: Vec<_> = keys.iter().zip(&mut values).collect();
        sorted.sort_unstable_by_key(|(key, _)| **key);
        for (key, value) in sorted {
            *value = self.get(tree, key)?;
        }
        Ok(values)
    }

    /// Returns `true` if the key exists.
    fn contains(self, tree: &DbTree, key: &[u8]) -> Result<bool, Error> {
        Ok(self.look(tree, key, |_| ())?.is_some())
    }

    /// Returns the entries of a range.
    #[track_caller]
    fn range<'t>(self, tree: &'t DbTree, range: &KeyRange) -> ByteRange<'t>
    where
        Self: 't;

    /// Locks the keys of a range to read them, in a transaction.
    fn lock_range(self, tree: &DbTree, range: &KeyRange) -> Result<(), Error> {
        let _ = (tree, range);
        Ok(())
    }

    /// Returns the number of entries, or `None` if that needs a walk over all keys.
    fn count_all(self, tree: &DbTree) -> Result<Option<u64>, Error>;

    /// Returns a reader of the value of `key`, which reads piece by piece.
    fn reader<'t>(self, tree: &'t DbTree, key: &[u8]) -> Result<Option<ValueReader<'t>>, Error>
    where
        Self: 't;

    /// Returns the calls on the entries of a hash index or a heap. `None` outside transactions and
    /// snapshots, where the structure itself is called.
    fn inside<'t>(self) -> Option<Inside<'t>>
    where
        Self: 't;
}

/// The writing calls of a context, on byte strings.
pub trait WriteCalls: ReadCalls {
    /// Set if others may change an entry between two calls.
    const SHARES: bool;

    /// Sets the value of `key`, or removes it, if `condition` holds. The previous value goes to
    /// `old`.
    fn write(
        self,
        tree: &DbTree,
        key: &[u8],
        value: Option<&[u8]>,
        condition: WriteCondition<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Result<WriteOutcome, Error>;

    /// Sets the entry of `key` to `new` if it equals `expected`, where `None` means no entry.
    /// Returns `true` if it was equal.
    fn compare_and_swap(
        self,
        tree: &DbTree,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, Error>;

    /// Replaces the entry of `key` by the result of `make`.
    fn update(self, tree: &DbTree, key: &[u8], make: &mut Make<'_>) -> Result<(), Error>;

    /// Lets `f` change the bytes of a value, but not their number; returns `true` if the key
    /// exists. `f` must not use the store.
    fn update_in_place(
        self,
        tree: &DbTree,
        key: &[u8],
        f: &mut dyn FnMut(&mut [u8]),
    ) -> Result<bool, Error>;

    /// Removes all entries of a range; returns their number.
    fn remove_range(self, tree: &DbTree, range: &KeyRange) -> Result<u64, Error>;

    /// Removes the first entry, or the last, and returns it.
    fn pop(self, tree: &DbTree, first: bool) -> Result<Option<OwnedEntry>, Error>;

    /// Removes an entry that a range has just returned, if its value is still `value`. Returns
    /// `true` if it was removed. `finger` remembers the leaf of one removal for the next.
    fn remove_given(
        self,
        tree: &DbTree,
        key: &[u8],
        value: &[u8],
        finger: &mut Finger,
    ) -> Result<bool, Error>;

    /// Sets `key` to `len` bytes read from `source`; returns `true` if the key existed.
    fn put_from(
        self,
        tree: &DbTree,
        key: &[u8],
        len: u64,
        source: &mut dyn io::Read,
    ) -> Result<bool, Error>;
}

/// A transaction or a snapshot, in which the entries of hash indexes and heaps are used by their
/// keys.
#[derive(Clone, Copy)]
pub enum Inside<'t> {
    Txn(&'t Txn),
    Snapshot(&'t Snapshot),
}
