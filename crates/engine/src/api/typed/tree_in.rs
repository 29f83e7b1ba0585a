//! Typed trees inside a transaction and in a snapshot.

use std::io;
use std::marker::PhantomData;

use crate::api::cursor::Cursor;
use crate::api::place::range::RawEntry;
use crate::api::place::reader::RawReader;
use crate::api::raw::extract::Extract;
use crate::api::raw::tree_in::{RawSnapshotTree, RawTxnTree};
use crate::api::typed::range::{BadEntry, ExtractIf, Range, decode_entry, decoded};
use crate::api::typed::verbs::typed_reads;
use crate::api::typed::write_verbs::typed_writes;
use crate::encoding::key::{Key, KeyLike, PrefixOf};
use crate::encoding::key_range::{KeyBounds, KeyRange};
use crate::encoding::value::{DecodeValue, EncodeValue, Value, ValueLike};
use crate::store::error::Error;

/// A typed tree inside a transaction, by [`Txn::tree`](crate::Txn::tree): the same methods as a
/// [`Tree`](crate::Tree).
///
/// What it reads and writes is locked until the transaction ends; ranges, those of keys that are
/// not there among them, up to what was seen.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let (stock, sold) = (db.tree::<String, u32>("stock")?, db.tree::<u64, String>("sold")?);
/// stock.put("bolts", &12)?;
/// let tx = db.begin()?;
/// let (in_stock, in_sold) = (tx.tree(&stock), tx.tree(&sold));
/// in_stock.update("bolts", |count| Some(count? - 1))?;
/// in_sold.put(&1, "bolts")?;
/// tx.commit()?;
/// assert_eq!((stock.get("bolts")?, sold.len()?), (Some(11), 1));
/// # Ok(()) }
/// ```
pub struct TxnTree<'t, K, V> {
    raw: RawTxnTree<'t>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<'t, K: Key, V: Value> TxnTree<'t, K, V> {
    typed_reads! { 't, look_with, "let tx = db.begin()?;\nlet tree = tx.tree(&birds);" }
    typed_writes! { 't, "let tx = db.begin()?;\nlet tree = tx.tree(&birds);" }

    /// Returns the value of `key`, which is locked as if it were written: for what is read to be
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
    /// As `get`.
    pub fn get_for_update<Q: KeyLike<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error> {
        key.with_encoded(|key| self.raw.place().lock(key))?;
        self.get(key)
    }
}

/// A typed tree in a snapshot, by [`Snapshot::tree`](crate::Snapshot::tree): the methods of a
/// [`Tree`](crate::Tree) that read.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let birds = db.tree::<String, u32>("birds")?;
/// birds.put("heron", &3)?;
/// let snapshot = db.snapshot()?;
/// birds.clear()?;
/// assert_eq!(snapshot.tree(&birds).first()?, Some(("heron".to_string(), 3)));
/// # Ok(()) }
/// ```
pub struct SnapshotTree<'t, K, V> {
    raw: RawSnapshotTree<'t>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<'t, K: Key, V: Value> SnapshotTree<'t, K, V> {
    typed_reads! {
        't, look_with, "let snapshot = db.snapshot()?;\nlet tree = snapshot.tree(&birds);"
    }
}

/// What both handles have beside their methods.
macro_rules! handles {
    ($($name:ident: $raw:ident;)*) => {$(
        impl<'t, K, V> $name<'t, K, V> {
            pub(crate) fn new(raw: $raw<'t>) -> $name<'t, K, V> {
                $name { raw, types: PhantomData }
            }
        }

        impl<K, V> Clone for $name<'_, K, V> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<K, V> Copy for $name<'_, K, V> {}

        impl<'t, K: Key, V: Value> IntoIterator for $name<'t, K, V> {
            type Item = Result<(K, V), Error>;
            type IntoIter = Range<'t, K, V>;

            fn into_iter(self) -> Range<'t, K, V> {
                self.iter()
            }
        }
    )*};
}
handles! { TxnTree: RawTxnTree; SnapshotTree: RawSnapshotTree; }
