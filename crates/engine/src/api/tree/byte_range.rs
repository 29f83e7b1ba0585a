//! The encoded entries of a range: one type for every context.

use crate::api::strategy::*;
use crate::api::tree::txn_range::TxnRange;
use crate::api::txn::Txn;
use crate::btree::Entry as BytesEntry;
use crate::encoding::key_range::KeyRange;
use crate::lock::is_interrupted;
use crate::pool::PoolError;
use crate::store::counted::ScanCount;
use crate::store::error::Error;
use crate::txn::Bounds;

pub(crate) fn bounds(range: &KeyRange) -> Bounds<'_> {
    let lower = range.start.as_ref().map(Vec::as_slice);
    let upper = range.end.as_ref().map(Vec::as_slice);
    Bounds { lower, upper }
}

#[expect(clippy::large_enum_variant, reason = "there is one in each range, which is not moved")]
enum Source<'t> {
    /// A range of committed entries, or of a snapshot.
    Outside(DbRange<'t>),
    Txn(TxnRange<'t>),
    /// A range that could not begin; the first step returns the error.
    Failed(Option<Error>),
}

/// A range, a transaction and the handles of both may go to another thread.
const _: fn() = || {
    fn is_send<T: Send>() {}
    fn is_sync<T: Sync>() {}
    is_send::<ByteRange<'static>>();
    is_send::<Txn>();
    is_sync::<Txn>();
    is_sync::<DbTree>();
};

/// The encoded entries of a range, from both ends. It ends after an error.
pub struct ByteRange<'t> {
    tree: &'t DbTree,
    source: Source<'t>,
    count: ScanCount<'t>,
    is_over: bool,
}

impl<'t> ByteRange<'t> {
    fn from(tree: &'t DbTree, source: Source<'t>, is_over: bool) -> ByteRange<'t> {
        let count = ScanCount::begin(tree.store().pool().statistics());
        ByteRange { tree, source, count, is_over }
    }

    /// Creates a range of committed entries, or of a snapshot.
    pub(crate) fn outside(
        tree: &'t DbTree,
        outside: DbRange<'t>,
        range: &KeyRange,
    ) -> ByteRange<'t> {
        ByteRange::from(tree, Source::Outside(outside), range.is_empty())
    }

    /// Creates a range of `tree` inside a transaction.
    pub(crate) fn in_txn(txn: &'t Txn, tree: &'t DbTree, range: &KeyRange) -> ByteRange<'t> {
        let scan = TxnRange::new(txn, tree, range);
        ByteRange::from(tree, Source::Txn(scan), range.is_empty())
    }

    /// Creates a range that only returns `error`.
    pub(crate) fn failed(tree: &'t DbTree, error: Error) -> ByteRange<'t> {
        ByteRange::from(tree, Source::Failed(Some(error)), false)
    }

    fn map(
        mut self,
        outside: impl FnOnce(DbRange<'t>) -> DbRange<'t>,
        scan: impl FnOnce(TxnRange<'t>) -> TxnRange<'t>,
    ) -> Self {
        self.source = match self.source {
            Source::Outside(range) => Source::Outside(outside(range)),
            Source::Txn(range) => Source::Txn(scan(range)),
            failed @ Source::Failed(_) => failed,
        };
        self
    }

    /// Leaves values unread: they are returned empty.
    pub(crate) fn keys_only(self) -> Self {
        let outside = |range: DbRange<'t>| range.keys_only();
        self.map(outside, TxnRange::keys_only)
    }

    /// Marks a large scan: the pool need not keep the leaves that it has to load for it.
    pub(crate) fn for_scan(self) -> Self {
        let outside = |range: DbRange<'t>| range.for_scan();
        self.map(outside, TxnRange::for_scan)
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

    /// Returns the next entry from the front, borrowed until the next call.
    pub(crate) fn next_entry(&mut self) -> Result<Option<BytesEntry<'_>>, Error> {
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

    /// Returns the next entry from the back, borrowed until the next call.
    pub(crate) fn next_entry_back(&mut self) -> Result<Option<BytesEntry<'_>>, Error> {
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

    /// Skips up to `n` entries from an end, a leaf at a time where possible. Returns the number
    /// skipped, and the error that ended it.
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

    /// Skips up to `n` entries; returns the error, if there was one, as an item.
    pub(crate) fn pass_items<T>(&mut self, n: usize, forward: bool) -> Option<Result<T, Error>> {
        self.pass(n, forward).1.err().map(Err)
    }

    /// Runs `write`, which changes the last returned entry and no other, so entries read ahead stay
    /// valid.
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

    /// Returns the name of the tree.
    pub(crate) fn tree_name(&self) -> &str {
        self.tree.name()
    }

    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }
}
