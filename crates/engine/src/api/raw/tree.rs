//! Trees of byte strings.
//!
//! Nothing here is inlined into the user's crate, and what is generic is so only at its rim: a
//! call's code exists once per combination, in this crate, or every user would compile it four
//! times.

use std::io;

use crate::api::cursor::Cursor;
use crate::api::place::range::{RawEntry, RawRange};
use crate::api::place::reader::RawReader;
use crate::api::place::{Place, update_once};
use crate::api::raw::extract::{Extract, RawExtractIf};
use crate::api::raw::verbs::raw_reads;
use crate::api::raw::write_verbs::raw_writes;
use crate::api::strategy::*;
use crate::btree::{BulkOptions, Limits, Report, TreeStats, ValueRef};
use crate::encoding::key_range::{KeyBounds, KeyRange};
use crate::page::Scratch;
use crate::store::counted::GET;
use crate::store::error::Error;

/// A named tree: an ordered map of byte strings.
///
/// A handle: clones are cheap, and any thread may use them. Each call takes effect as a whole, at
/// some moment between its beginning and its end. Keys have at most
/// [`key_max`](RawTree::limits) bytes,
/// values up to 1 GiB; large values lie in pages of their own. Inside a transaction it is read and
/// written by [`Txn::raw_tree`](crate::Txn::raw_tree), in a snapshot read by
/// [`Snapshot::raw_tree`](crate::Snapshot::raw_tree).
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
#[derive(Clone)]
pub struct RawTree {
    handle: DbTree,
}

impl std::fmt::Debug for RawTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawTree").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl RawTree {
    pub(crate) fn new(handle: DbTree) -> RawTree {
        RawTree { handle }
    }

    pub(crate) fn handle(&self) -> &DbTree {
        &self.handle
    }

    #[inline(always)]
    pub(crate) fn place(&self) -> Place<'_> {
        Place::Tree(&self.handle)
    }

    raw_reads! { '_, "let tree = &ponds;" }
    raw_writes! { '_, "let tree = &ponds;" }

    /// Returns its name.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// assert_eq!(db.raw_tree("ponds")?.name(), "ponds");
    /// # Ok(()) }
    /// ```
    pub fn name(&self) -> &str {
        self.place().name()
    }

    /// Returns the most bytes that keys and values may have.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// assert!(db.raw_tree("ponds")?.limits().key_max > 100);
    /// # Ok(()) }
    /// ```
    pub fn limits(&self) -> Limits {
        self.handle.btree().limits()
    }

    /// Hands the value of `key` itself to `f`, where it lies in its page, and returns the result;
    /// `None` if there is no such key. Nothing is copied or allocated; only a value in pages of its
    /// own is put together first ([`RawTree::reader`] gives it piece by piece).
    ///
    /// The page is latched for as long as `f` runs, which writes one word that all threads share:
    /// for keys that many threads look up at once, [`RawTree::get_with`] is the one to take. On one
    /// thread this pays where `f` looks at a part of a large value (1 KiB and more); a copy of a
    /// small one costs no more than the latch, and a closure that reads every byte gains nothing.
    ///
    /// `f` keeps writers of the page waiting, though no readers: it must be short, and must not
    /// wait for another thread that writes to this tree. It may read the store and write to other
    /// trees. What needs the page for itself fails with [`PoolError::Held`] after a moment, instead
    /// of waiting for ever: a write to the same page or one beside it, and a large value below it
    /// that is not in memory.
    ///
    /// [`PoolError::Held`]: crate::PoolError::Held
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
    /// As [`RawTree::get`].
    pub fn read<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Error> {
        Ok(self.hold(key)?.map(|value| f(value.bytes())))
    }

    /// Not generic, so that it is compiled here, once per combination.
    fn hold(&self, key: &[u8]) -> Result<Option<ValueRef<'_>>, Error> {
        self.handle.read_key(GET, key, |tree| tree.hold(key))
    }

    /// The entries of a range of encoded keys.
    #[doc(hidden)]
    #[track_caller]
    pub fn key_range(&self, range: &KeyRange) -> RawRange<'_> {
        self.place().key_range(range)
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
    /// As [`RawTree::get`].
    pub fn len_estimate(&self, ways: u32) -> Result<u64, Error> {
        self.handle.look(|tree| tree.count_estimate(ways))
    }

    /// Walks the whole tree and returns what it is made of.
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
    /// As [`RawTree::get`].
    pub fn stats(&self) -> Result<TreeStats, Error> {
        self.handle.look(|tree| tree.stats())
    }

    /// Walks the whole tree and returns what is wrong with it. The background merge waits
    /// meanwhile; what others change during the walk may be reported as faults that are none
    /// ([`Db::check`](crate::Db::check) reports none of these).
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
    /// As [`RawTree::get`].
    pub fn check(&self) -> Result<Report, Error> {
        self.handle.look_at_rest(|tree| tree.check())
    }

    /// Packs badly filled leaves among the next `leaves` ones; returns whether the end of the tree
    /// was reached.
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
    /// As [`RawTree::insert`].
    pub fn compact(&self, leaves: u32) -> Result<bool, Error> {
        self.handle.alter(|tree| tree.compact(leaves))
    }

    /// Loads entries whose keys ascend into this tree, which must be empty; returns their number.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let tree = db.raw_tree("squares")?;
    /// let rows = (0..1000u32).map(|i| (i.to_be_bytes().to_vec(), (i * i).to_le_bytes().to_vec()));
    /// assert_eq!(tree.bulk_load(rows, Default::default())?, 1000);
    /// # Ok(()) }
    /// ```
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
        self.handle.fill(|tree| tree.bulk_load(rows, options))
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
