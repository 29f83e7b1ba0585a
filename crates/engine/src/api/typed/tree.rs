//! Typed trees.

use std::fmt;
use std::io;
use std::marker::PhantomData;

use crate::api::cursor::Cursor;
use crate::api::place::range::RawEntry;
use crate::api::place::reader::RawReader;
use crate::api::raw::extract::Extract;
use crate::api::raw::tree::RawTree;
use crate::api::typed::range::{BadEntry, ExtractIf, Range, decode_entry, decoded};
use crate::api::typed::verbs::typed_reads;
use crate::api::typed::write_verbs::typed_writes;
use crate::btree::{BulkOptions, TreeStats};
use crate::encoding::key::{Key, KeyLike, PrefixOf};
use crate::encoding::key_range::{KeyBounds, KeyRange};
use crate::encoding::value::{DecodeValue, EncodeValue, Value, ValueLike};
use crate::store::error::Error;

/// A named tree: an ordered map from `K` to `V`, like a `BTreeMap` that outgrows memory.
///
/// Keys and values are taken in their borrowed forms, too: `&str` for `String`, `&[u8]` for
/// `Vec<u8>`. A handle: clones are cheap, and any thread may use them. Each call takes effect as a
/// whole. Inside a transaction it is read and written by [`Txn::tree`](crate::Txn::tree), in a
/// snapshot read by [`Snapshot::tree`](crate::Snapshot::tree), with the same methods.
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
pub struct Tree<K, V> {
    raw: RawTree,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Clone for Tree<K, V> {
    fn clone(&self) -> Self {
        Tree { raw: self.raw.clone(), types: PhantomData }
    }
}

impl<K, V> fmt::Debug for Tree<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("name", &self.raw.name()).finish_non_exhaustive()
    }
}

impl RawTree {
    /// Returns the same tree, read and written with these types.
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
    pub fn typed<K: Key, V: Value>(self) -> Tree<K, V> {
        Tree::new(self)
    }
}

impl<K: Key, V: Value> Tree<K, V> {
    pub(crate) fn new(raw: RawTree) -> Tree<K, V> {
        Tree { raw, types: PhantomData }
    }

    /// Returns the tree of byte strings below.
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
    pub fn raw(&self) -> &RawTree {
        &self.raw
    }

    typed_reads! { '_, get_with, "let tree = &birds;" }
    typed_writes! { '_, "let tree = &birds;" }

    /// Hands the bytes of the value itself to `f`, where they lie in their page: for large values.
    /// The page is latched until `f` returns; [`RawTree::read`] says what `f` may do meanwhile, and
    /// when [`Tree::get_with`] is faster.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let poems = db.tree::<u32, String>("poems")?;
    /// poems.insert(&1, &"A frog jumps in.\n".repeat(40))?;
    /// let lines = poems.read(&1, |text| text.iter().filter(|c| **c == b'\n').count())?;
    /// assert_eq!(lines, Some(40));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tree::get`].
    #[inline]
    pub fn read<Q: KeyLike<K> + ?Sized, R>(
        &self,
        key: &Q,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        key.with_encoded(|key| self.raw.read(key, f))
    }

    /// Walks the whole tree and returns what it is made of.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let birds = db.tree::<String, u32>("birds")?;
    /// birds.put("heron", &3)?;
    /// assert_eq!(birds.stats()?.entries(), 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tree::get`].
    pub fn stats(&self) -> Result<TreeStats, Error> {
        self.raw.stats()
    }

    /// Loads entries whose keys ascend into this tree, which must be empty; returns their number.
    /// Much faster than inserting them, and leaves are as full as `options` say.
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
    /// [`Error::Bulk`], or as [`Tree::insert`].
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
        let rows = rows.map(|(key, value)| (key.to_key_bytes(), value.to_value_bytes()));
        self.raw.bulk_load(rows, options)
    }
}

impl<'t, K: Key, V: Value> IntoIterator for &'t Tree<K, V> {
    type Item = Result<(K, V), Error>;
    type IntoIter = Range<'t, K, V>;

    #[track_caller]
    fn into_iter(self) -> Range<'t, K, V> {
        self.iter()
    }
}
