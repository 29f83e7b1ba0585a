//! The handle of a tree.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;

use crate::api::context::{Autocommit, ReadCalls, Reads};
use crate::api::strategy::*;
use crate::api::tree::range::{BadEntry, Range, decoded};
use crate::api::txn::Txn;
use crate::btree::{BulkOptions, Limits, Report, TreeStats, ValueRef};
use crate::encoding::key::{Key, KeyLike};
use crate::encoding::value::{DecodeValue, Value, ValueLike};
use crate::store::counted::GET;
use crate::store::error::Error;
use crate::txn::OwnedEntry;

/// A named tree: an ordered map from `K` to `V`, like a `BTreeMap` that outgrows memory.
///
/// Keys and values are accepted in their borrowed forms, too: `&str` for `String`, `&[u8]` for
/// `Vec<u8>`. A handle: clones are cheap, and any thread may use them. Each call is atomic.
/// [`Txn::tree`](crate::Txn::tree) gives the tree inside a transaction, and
/// [`Snapshot::tree`](crate::Snapshot::tree) in a snapshot (reads only), with the same methods.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let tree = db.tree::<(String, u32), f64>("readings")?;
/// tree.insert(&("oslo", 2), &-3.5)?;
/// tree.insert(&("oslo", 1), &-4.0)?;
/// tree.insert(&("rome", 1), &11.0)?;
/// let oslo: Result<Vec<_>, _> = tree.prefix(&("oslo",)).rev().collect();
/// assert_eq!(oslo?, [(("oslo".to_string(), 2), -3.5), (("oslo".to_string(), 1), -4.0)]);
/// # Ok(()) }
/// ```
pub struct Tree<K, V, At: Reads = Autocommit> {
    handle: At::Holds<DbTree>,
    pub(super) context: At,
    types: PhantomData<fn() -> (K, V)>,
}

/// A tree of byte strings, which are their own encoding and sort as they are.
///
/// Keys have at most [`key_max`](Tree::limits) bytes, values up to 1 GiB; large values have pages
/// of their own.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let ponds = db.raw_tree("ponds")?;
/// ponds.put(b"mill", b"deep")?;
/// ponds.put(b"weir", b"wide")?;
/// assert_eq!(ponds.get(b"mill")?.as_deref(), Some(&b"deep"[..]));
/// assert_eq!(ponds.range(&b"n"[..]..).count(), 1);
/// # Ok(()) }
/// ```
pub type RawTree<At = Autocommit> = Tree<Vec<u8>, Vec<u8>, At>;

impl<K, V, At: Reads> Clone for Tree<K, V, At>
where
    At::Holds<DbTree>: Clone,
{
    fn clone(&self) -> Self {
        Tree { handle: self.handle.clone(), context: self.context, types: PhantomData }
    }
}

impl<K, V, At: Reads> Copy for Tree<K, V, At> where At::Holds<DbTree>: Copy {}

impl<K, V, At: Reads> fmt::Debug for Tree<K, V, At> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl<K, V, At: Reads> Tree<K, V, At> {
    pub(crate) fn new(handle: At::Holds<DbTree>, context: At) -> Tree<K, V, At> {
        Tree { handle, context, types: PhantomData }
    }

    /// Returns the store's handle.
    #[inline(always)]
    pub(crate) fn handle(&self) -> &DbTree {
        self.handle.borrow()
    }

    pub(super) fn into_handle(self) -> At::Holds<DbTree> {
        self.handle
    }

    /// Returns the name of the tree.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// assert_eq!(birds.name(), "birds");
    /// # Ok(()) }
    /// ```
    pub fn name(&self) -> &str {
        self.handle().name()
    }

    /// Returns the limits of keys and values.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// assert!(db.raw_tree("ponds")?.limits().key_max > 100);
    /// # Ok(()) }
    /// ```
    pub fn limits(&self) -> Limits {
        self.handle().btree().limits()
    }

    /// Returns the same tree, read and written with other types, which must have the same
    /// encoding.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.raw_tree("ponds")?.typed::<String, String>();
    /// ponds.put("mill", "deep")?;
    /// assert_eq!(ponds.raw().get(b"mill")?.as_deref(), Some(&b"deep"[..]));
    /// # Ok(()) }
    /// ```
    pub fn typed<L: Key, W: Value>(self) -> Tree<L, W, At> {
        Tree::new(self.handle, self.context)
    }

    /// Returns the same tree with keys and values in encoded form.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let birds = db.tree::<String, u32>("birds")?;
    /// birds.put("heron", &3)?;
    /// assert_eq!(birds.raw().get(b"heron")?, Some(vec![3, 0, 0, 0]));
    /// # Ok(()) }
    /// ```
    pub fn raw(&self) -> RawTree<At>
    where
        At::Holds<DbTree>: Clone,
    {
        Tree::new(self.handle.clone(), self.context)
    }
}

impl<K: Key, V: Value, At: Reads> Tree<K, V, At> {
    /// Decodes a value; `key` goes into the error.
    pub(super) fn decode_value(&self, key: Option<&[u8]>, bytes: &[u8]) -> Result<V, Error> {
        let value = <V as DecodeValue<'_>>::decode(bytes);
        let value = value.map_err(|error| BadEntry::new(key, error));
        decoded(self.name(), value)
    }

    /// Decodes a value that is in memory of its own; `key` goes into the error.
    pub(super) fn decode_owned(&self, key: Option<&[u8]>, bytes: Vec<u8>) -> Result<V, Error> {
        V::adopt(bytes).or_else(|bytes| self.decode_value(key, &bytes))
    }

    pub(super) fn decode_optional(&self, bytes: Option<Vec<u8>>) -> Result<Option<V>, Error> {
        bytes.map(|bytes| self.decode_owned(None, bytes)).transpose()
    }
}

impl<K: Key, V: Value> Tree<K, V, &Txn> {
    /// Returns the value of `key` and locks the key as a write does: for a value that is read to be
    /// changed. Two transactions that only read at first, and then both write, end in a deadlock.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let birds = db.tree::<String, u32>("birds")?;
    /// let tx = db.begin()?;
    /// let tree = tx.tree(&birds);
    /// let eggs = tree.get_for_update("heron")?.unwrap_or(0);
    /// tree.put("heron", &(eggs + 1))?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as `get`.
    pub fn get_for_update<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error> {
        key.with_encoded(|key| self.context.lock_key(self.handle(), key))?;
        self.get(key)
    }
}

impl<K: Key, V: Value> Tree<K, V> {
    /// Hands the value of `key` to `f` in place, in its page, and returns the result; `None` if
    /// there is no such key. Nothing is copied or allocated, except that a value in pages of its
    /// own is first assembled ([`Tree::reader`] returns it piece by piece).
    ///
    /// The page is latched while `f` runs, which writes one word that all threads share. For keys
    /// that many threads look up at once, use [`Tree::get_with`]. On one thread, `read` pays if `f`
    /// looks at a part of a large value (1 KiB and more). A copy of a small value costs no more
    /// than the latch, and a closure that reads every byte gains nothing.
    ///
    /// `f` keeps writers of the page waiting, but no readers: it must be short, and must not wait
    /// for another thread that writes to this tree. It may read the store and write to other trees.
    /// Calls that need the page exclusively fail with [`PoolError::Held`] after a moment, instead
    /// of waiting forever: a write to the same page or a neighbour, and a read of a large value
    /// below it that is not in memory.
    ///
    /// [`PoolError::Held`]: crate::error::PoolError::Held
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
    /// Same as [`Tree::get`].
    #[inline]
    pub fn read<Q: KeyLike<K> + ?Sized, R>(
        &self,
        key: &Q,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        let held = key.with_encoded(|key| hold(self.handle(), key))?;
        Ok(held.map(|value| f(value.bytes())))
    }

    /// Estimates the number of entries from the fan-out along `ways` random paths from the root.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let tree = db.raw_tree("ponds")?;
    /// tree.put(b"mill", b"deep")?;
    /// assert_eq!(tree.len_estimate(3)?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Tree::get`].
    pub fn len_estimate(&self, ways: u32) -> Result<u64, Error> {
        self.handle().look(|tree| tree.count_estimate(ways))
    }

    /// Walks the whole tree and returns statistics of its structure.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let tree = db.raw_tree("ponds")?;
    /// tree.put(b"mill", b"deep")?;
    /// assert_eq!((tree.stats()?.height(), tree.stats()?.entries()), (1, 1));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Tree::get`].
    pub fn stats(&self) -> Result<TreeStats, Error> {
        self.handle().look(|tree| tree.stats())
    }

    /// Walks the whole tree and returns its faults. The background merge waits during the walk.
    /// Concurrent changes may be reported as faults; [`Db::check`](crate::Db::check) reports none
    /// of these.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let tree = db.raw_tree("ponds")?;
    /// tree.put(b"mill", b"deep")?;
    /// assert!(tree.check()?.violations.is_empty());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Tree::get`].
    pub fn check(&self) -> Result<Report, Error> {
        self.handle().look_at_rest(|tree| tree.check())
    }

    /// Packs badly filled leaves among the next `leaves` ones; returns `true` at the end of the
    /// tree.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let tree = db.raw_tree("ponds")?;
    /// while !tree.compact(64)? {}
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Tree::insert`].
    pub fn compact(&self, leaves: u32) -> Result<bool, Error> {
        self.handle().alter(|tree| tree.compact(leaves))
    }

    /// Loads entries in ascending key order into this tree, which must be empty; returns their
    /// number. Much faster than inserting them, with leaves as full as `options` ask for.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let squares = db.tree::<u32, u64>("squares")?;
    /// let rows = (0..1000u32).map(|i| (i, u64::from(i) * u64::from(i)));
    /// assert_eq!(squares.bulk_load(rows, Default::default())?, 1000);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Bulk`], or any error of [`Tree::insert`].
    pub fn bulk_load<Q, W>(
        &self,
        rows: impl IntoIterator<Item = (Q, W)>,
        options: BulkOptions,
    ) -> Result<u64, Error>
    where
        Q: KeyLike<K>,
        W: ValueLike<V>,
    {
        let rows = rows.into_iter();
        let rows = rows.map(|(key, value)| (key.into_key_bytes(), value.into_value_bytes()));
        fill(self.handle(), &mut { rows }, options)
    }
}

/// Returns the value of `key` in place. Not generic, so it is compiled in this crate.
fn hold<'t>(tree: &'t DbTree, key: &[u8]) -> Result<Option<ValueRef<'t>>, Error> {
    tree.read_key(GET, key, |tree| tree.hold(key))
}

/// Fills an empty tree. Not generic, so it is compiled in this crate.
fn fill(
    tree: &DbTree,
    rows: &mut dyn Iterator<Item = OwnedEntry>,
    options: BulkOptions,
) -> Result<u64, Error> {
    tree.fill(|tree| tree.bulk_load(rows, options))
}

impl<'t, K: Key, V: Value, At: Reads> IntoIterator for &'t Tree<K, V, At> {
    type Item = Result<(K, V), Error>;
    type IntoIter = Range<'t, K, V>;

    #[track_caller]
    fn into_iter(self) -> Range<'t, K, V> {
        self.iter()
    }
}

impl<'t, K, V, At> IntoIterator for Tree<K, V, At>
where
    K: Key,
    V: Value,
    At: Reads + ReadCalls<Holds<DbTree> = &'t DbTree> + 't,
{
    type Item = Result<(K, V), Error>;
    type IntoIter = Range<'t, K, V>;

    #[track_caller]
    fn into_iter(self) -> Range<'t, K, V> {
        self.into_range(..)
    }
}
