//! The entries of a range of byte strings, wherever they are read: one type for a tree by itself, a
//! transaction and a snapshot.

use std::ops::Bound;

use crate::api::place::txn_cell::TxnCell;
use crate::api::place::txn_scan::TxnScan;
use crate::api::strategy::*;
use crate::btree::Entry as BytesEntry;
use crate::encoding::key_range::KeyRange;
use crate::lock::is_interrupted;
use crate::pool::PoolError;
use crate::store::counted::ScanCount;
use crate::store::error::Error;

/// An owned entry.
pub type RawEntry = (Vec<u8>, Vec<u8>);

pub(crate) fn bounds(range: &KeyRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (range.start.as_ref().map(Vec::as_slice), range.end.as_ref().map(Vec::as_slice))
}

#[expect(clippy::large_enum_variant, reason = "there is one in each range, which is not moved")]
enum Source<'t> {
    /// What is committed, or a snapshot.
    Outside(DbRange<'t>),
    Txn(TxnScan<'t>),
    /// It could not begin: the first step reports why.
    Failed(Option<Error>),
}

/// What a range has may go to another thread, but for the reference to its transaction, which is
/// for one thread at a time. Handles for other languages, which keep that promise by a mutex,
/// rely on it (`crates/handles`).
const _: fn() = || {
    fn is_send<T: Send>() {}
    fn is_sync<T: Sync>() {}
    is_send::<DbRange<'static>>();
    is_send::<DbCursor<'static>>();
    is_send::<DbTxn>();
    is_send::<TxnCell>();
    is_send::<Option<Error>>();
    is_send::<ScanCount<'static>>();
    is_sync::<DbTree>();
};

/// The entries of a range, from both ends.
///
/// As an iterator it gives owned entries; [`RawRange::next_entry`] lends them. After an error it
/// ends. What it shows depends on where it reads: in a tree, what is committed, each leaf as it was
/// at some moment; in a transaction, what the transaction sees, which it locks; in a snapshot, what
/// that shows.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let tree = db.raw_tree("ponds")?;
/// tree.put(b"mill", b"deep")?;
/// tree.put(b"weir", b"wide")?;
/// let mut bytes = 0;
/// let mut range = tree.range(&b"m"[..]..);
/// while let Some((key, value)) = range.next_entry()? {
///     bytes += key.len() + value.len();
/// }
/// assert_eq!(bytes, 16);
/// # Ok(()) }
/// ```
pub struct RawRange<'t> {
    tree: &'t DbTree,
    source: Source<'t>,
    count: ScanCount<'t>,
    is_over: bool,
}

impl<'t> RawRange<'t> {
    fn from(tree: &'t DbTree, source: Source<'t>, is_over: bool) -> RawRange<'t> {
        let count = ScanCount::begin(tree.store().pool().statistics());
        RawRange { tree, source, count, is_over }
    }

    pub(crate) fn new(tree: &'t DbTree, outside: DbRange<'t>, range: &KeyRange) -> RawRange<'t> {
        RawRange::from(tree, Source::Outside(outside), range.is_empty())
    }

    /// A range of `tree` inside a transaction.
    pub(crate) fn in_txn(cell: &'t TxnCell, tree: &'t DbTree, range: &KeyRange) -> RawRange<'t> {
        let scan = TxnScan::new(cell, tree, range);
        RawRange::from(tree, Source::Txn(scan), range.is_empty())
    }

    /// A range that only gives `error`.
    pub(crate) fn failed(tree: &'t DbTree, error: Error) -> RawRange<'t> {
        RawRange::from(tree, Source::Failed(Some(error)), false)
    }

    fn map(
        mut self,
        outside: impl FnOnce(DbRange<'t>) -> DbRange<'t>,
        scan: impl FnOnce(TxnScan<'t>) -> TxnScan<'t>,
    ) -> Self {
        self.source = match self.source {
            Source::Outside(range) => Source::Outside(outside(range)),
            Source::Txn(range) => Source::Txn(scan(range)),
            failed @ Source::Failed(_) => failed,
        };
        self
    }

    /// Leaves values unread: they come out empty.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.raw_tree("ponds")?;
    /// ponds.put(b"mill", b"deep")?;
    /// ponds.put(b"weir", b"wide")?;
    /// let keys: Result<Vec<_>, Error> = ponds.iter().keys_only().map(|row| Ok(row?.0)).collect();
    /// assert_eq!(keys?, [b"mill", b"weir"]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn keys_only(self) -> Self {
        let outside = |range: DbRange<'t>| range.keys_only();
        self.map(outside, TxnScan::keys_only)
    }

    /// Marks a large scan: the pool need not keep the leaves that it has to load for it.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.raw_tree("ponds")?;
    /// ponds.put(b"mill", b"deep")?;
    /// ponds.put(b"weir", b"wide")?;
    /// assert_eq!(ponds.iter().as_scan().count(), 2);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn as_scan(self) -> Self {
        let outside = |range: DbRange<'t>| range.for_scan();
        self.map(outside, TxnScan::for_scan)
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
        self.tree.store().may_read()?;
        Ok(true)
    }

    /// The next entry from the front, borrowed until the next call.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.raw_tree("ponds")?;
    /// ponds.put(b"mill", b"deep")?;
    /// ponds.put(b"weir", b"wide")?;
    /// let (mut rows, mut bytes) = (ponds.iter(), 0);
    /// while let Some((_, value)) = rows.next_entry()? {
    ///     bytes += value.len();
    /// }
    /// assert_eq!(bytes, 8);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The store failed, or what the range reads from: the transaction, or the snapshot.
    pub fn next_entry(&mut self) -> Result<Option<BytesEntry<'_>>, Error> {
        if !self.may_step()? {
            return Ok(None);
        }
        let next = match &mut self.source {
            Source::Outside(range) => range.next(),
            Source::Txn(scan) => scan.next(true),
            Source::Failed(error) => error.take().map_or(Ok(None), Err),
        };
        Self::step(&mut self.count, &mut self.is_over, next)
    }

    /// The next entry from the back, borrowed until the next call.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.raw_tree("ponds")?;
    /// ponds.put(b"mill", b"deep")?;
    /// ponds.put(b"weir", b"wide")?;
    /// let mut rows = ponds.iter();
    /// assert_eq!(rows.next_entry_back()?, Some((&b"weir"[..], &b"wide"[..])));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawRange::next_entry`].
    pub fn next_entry_back(&mut self) -> Result<Option<BytesEntry<'_>>, Error> {
        if !self.may_step()? {
            return Ok(None);
        }
        let next = match &mut self.source {
            Source::Outside(range) => range.next_back(),
            Source::Txn(scan) => scan.next(false),
            Source::Failed(error) => error.take().map_or(Ok(None), Err),
        };
        Self::step(&mut self.count, &mut self.is_over, next)
    }

    /// Passes over up to `n` entries from an end, a leaf at a time where nothing forbids it, and
    /// returns how many there were, and the error that ended it.
    pub(crate) fn pass(&mut self, n: usize, forward: bool) -> (usize, Result<(), Error>) {
        let mut passed = 0;
        while passed < n {
            if is_interrupted() {
                return (passed, Err(PoolError::Interrupted.into()));
            }
            let next = if forward { self.next_entry() } else { self.next_entry_back() };
            match next {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => return (passed, Err(error)),
            }
            let more = match &mut self.source {
                Source::Outside(range) => range.pass(n - passed - 1, forward),
                Source::Txn(scan) => scan.pass(n - passed - 1, forward),
                Source::Failed(_) => 0,
            };
            self.count.rows += more as u64;
            passed += 1 + more;
        }
        (passed, Ok(()))
    }

    /// As [`RawRange::pass`]; returns the error as an item.
    pub(crate) fn pass_items<T>(&mut self, n: usize, forward: bool) -> Option<Result<T, Error>> {
        self.pass(n, forward).1.err().map(Err)
    }

    /// Runs `write`, which changes the entry that was given last and no other: what was read ahead
    /// stays.
    pub(crate) fn writing<R>(&mut self, write: impl FnOnce() -> R) -> R {
        match &mut self.source {
            Source::Failed(_) => write(),
            Source::Outside(range) => {
                let done = write();
                range.wrote();
                done
            }
            Source::Txn(scan) => {
                let is_fresh = scan.is_fresh();
                let done = write();
                if is_fresh {
                    scan.keep();
                }
                done
            }
        }
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

    /// The entry behind `n` others, which are passed over without copies of them.
    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        self.pass_items(n, true).or_else(|| self.next())
    }

    /// How many entries are left; an error counts as one.
    fn count(mut self) -> usize {
        let (passed, end) = self.pass(usize::MAX, true);
        passed + usize::from(end.is_err())
    }
}

impl DoubleEndedIterator for RawRange<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let entry = self.next_entry_back().transpose()?;
        Some(entry.map(|(key, value)| (key.to_vec(), value.to_vec())))
    }

    fn nth_back(&mut self, n: usize) -> Option<Self::Item> {
        self.pass_items(n, false).or_else(|| self.next_back())
    }
}
