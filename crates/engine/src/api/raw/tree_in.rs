//! Trees of byte strings inside a transaction and in a snapshot.

use std::io;

use crate::api::cursor::Cursor;
use crate::api::place::range::{RawEntry, RawRange};
use crate::api::place::reader::RawReader;
use crate::api::place::{Place, update_once};
use crate::api::raw::extract::{Extract, RawExtractIf};
use crate::api::raw::verbs::raw_reads;
use crate::api::raw::write_verbs::raw_writes;
use crate::encoding::key_range::{KeyBounds, KeyRange};
use crate::page::Scratch;
use crate::store::error::Error;

/// A tree of byte strings inside a transaction, by [`Txn::raw_tree`](crate::Txn::raw_tree): the
/// same methods as a [`RawTree`](crate::RawTree).
///
/// What it reads and writes is locked until the transaction ends; ranges, those of keys that are
/// not there among them, up to what was seen.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let ponds = db.raw_tree("ponds")?;
/// let tx = db.begin()?;
/// let inside = tx.raw_tree(&ponds);
/// inside.put(b"mill", b"deep")?;
/// assert_eq!(inside.len()?, 1);
/// tx.abort()?;
/// assert!(ponds.is_empty()?);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy)]
pub struct RawTxnTree<'t> {
    place: Place<'t>,
}

impl<'t> RawTxnTree<'t> {
    raw_reads! { 't, "let tx = db.begin()?;\nlet tree = tx.raw_tree(&ponds);" }
    raw_writes! { 't, "let tx = db.begin()?;\nlet tree = tx.raw_tree(&ponds);" }

    /// Returns the value of `key`, which is locked as if it were written: for what is read to be
    /// changed. Two transactions that only read at first, and then both write, end in a deadlock.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// # let ponds = db.raw_tree("ponds")?;
    /// let tx = db.begin()?;
    /// assert_eq!(tx.raw_tree(&ponds).get_for_update(b"mill")?, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawTxnTree::get`].
    pub fn get_for_update(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.place.get_to_write(key)
    }
}

/// A tree of byte strings in a snapshot, by [`Snapshot::raw_tree`](crate::Snapshot::raw_tree): the
/// methods of a [`RawTree`](crate::RawTree) that read.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let ponds = db.raw_tree("ponds")?;
/// let snapshot = db.snapshot()?;
/// ponds.put(b"mill", b"deep")?;
/// assert!(snapshot.raw_tree(&ponds).is_empty()?);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy)]
pub struct RawSnapshotTree<'t> {
    place: Place<'t>,
}

impl<'t> RawSnapshotTree<'t> {
    raw_reads! { 't, "let snapshot = db.snapshot()?;\nlet tree = snapshot.raw_tree(&ponds);" }
}

/// What both handles have beside their methods.
macro_rules! handles {
    ($($name:ident)*) => {$(
        impl<'t> $name<'t> {
            pub(crate) fn new(place: Place<'t>) -> $name<'t> {
                $name { place }
            }

            #[inline(always)]
            pub(crate) fn place(&self) -> Place<'t> {
                self.place
            }

            /// As `get_with`, without a copy; `f` must not use the transaction.
            pub(crate) fn look_with<R>(
                &self,
                key: &[u8],
                f: impl FnOnce(&[u8]) -> R,
            ) -> Result<Option<R>, Error> {
                let (mut f, mut result) = (Some(f), None);
                self.place.look(key, &mut |value| {
                    if let Some(f) = f.take() {
                        result = Some(f(value));
                    }
                })?;
                Ok(result)
            }
        }

        impl<'t> IntoIterator for $name<'t> {
            type Item = Result<RawEntry, Error>;
            type IntoIter = RawRange<'t>;

            fn into_iter(self) -> RawRange<'t> {
                self.iter()
            }
        }
    )*};
}
handles! { RawTxnTree RawSnapshotTree }
