//! Range reads: of a snapshot, or of committed entries, leaf by leaf.
//!
//! Outside snapshots a range copies leaves. It returns their entries if nobody has held a lock to
//! write since it began, which costs a look at one word per leaf. From the first leaf on that fails
//! this check, the range reads its own snapshot, which begins there. The snapshot is lost if the
//! changes made while the range is used fit neither memory nor spill file. The range then returns
//! that error once, and ends: its entries are of one moment, and another snapshot would be of
//! another.

use std::ops::Bound;
use std::panic::Location;
use std::sync::Arc;

use crate::btree::{Entry, Range};
use crate::pool::{Pool, PoolStrategy};
use crate::store::error::Error;
use crate::store::handle::StoreTree;
use crate::txn::{Bounds, Snapshot, SnapshotRange, TxnError};

type Bytes = Bound<Vec<u8>>;

/// The entries of a range, in one combination.
pub(crate) struct StoreRange<'t, M: PoolStrategy> {
    tree: &'t StoreTree<M>,
    source: Source<'t, M>,
    keys_only: bool,
    scan: bool,
}

enum Source<'t, M: PoolStrategy> {
    /// Leaves as they are, without transactions.
    Plain(Range<'t, Pool<M>>),
    Quiet(Quiet<'t, M>),
    /// A snapshot of its own, which may be replaced by another one.
    Own(Own<'t, M>),
    /// The user's snapshot.
    Snapshot(SnapshotRange<'t, Pool<M>>),
    /// The range failed, and is at its end.
    Over,
}

/// Leaves that were copied while nobody wrote.
struct Quiet<'t, M: PoolStrategy> {
    range: Range<'t, Pool<M>>,
    token: u64,
    ends: [End; 2],
    caller: &'static Location<'static>,
}

/// Progress of one end.
struct End {
    /// The cursor's looks at the last check that nobody writes.
    looks: u64,
    /// Bound up to which entries were returned on this side.
    bound: Bytes,
    /// End of the leaf that this end is in.
    fence: Option<Vec<u8>>,
    has_large: bool,
    is_used: bool,
}

struct Own<'t, M: PoolStrategy> {
    range: SnapshotRange<'t, Pool<M>>,
    /// Bounds up to which entries were returned at each end.
    bounds: [Bytes; 2],
    caller: &'static Location<'static>,
}

fn borrowed(bound: &Bytes) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

fn put_key(bound: &mut Bytes, key: &[u8]) {
    if let Bound::Excluded(place) = bound {
        place.clear();
        place.extend_from_slice(key);
    } else {
        *bound = Bound::Excluded(key.to_vec());
    }
}

impl<'t, M: PoolStrategy> StoreRange<'t, M> {
    /// Creates a range of the committed entries between two bounds.
    pub(crate) fn committed(
        tree: &'t StoreTree<M>,
        bounds: Bounds<'_>,
        caller: &'static Location<'static>,
    ) -> StoreRange<'t, M> {
        let Bounds { lower, upper } = bounds;
        let range = tree.btree().range(lower, upper);
        let locks = if M::TREES_ONLY { None } else { tree.store().transactions().locks() };
        let source = match locks {
            None => Source::Plain(range),
            Some(locks) => {
                let end = |bound: Bound<&[u8]>| {
                    let (bound, fence) = (bound.map(<[u8]>::to_vec), None);
                    End { looks: 0, bound, fence, has_large: false, is_used: false }
                };
                // While somebody writes, this is not a valid token, so that no check succeeds.
                let token = locks.quiet().unwrap_or(u64::MAX);
                Source::Quiet(Quiet { range, token, ends: [end(lower), end(upper)], caller })
            }
        };
        StoreRange { tree, source, keys_only: false, scan: false }
    }

    /// Creates a range of a snapshot's entries between two bounds.
    pub(crate) fn of_snapshot(
        snapshot: &Arc<Snapshot>,
        tree: &'t StoreTree<M>,
        bounds: Bounds<'_>,
    ) -> StoreRange<'t, M> {
        let source = Source::Snapshot(snapshot.range(tree.btree(), bounds.lower, bounds.upper));
        StoreRange { tree, source, keys_only: false, scan: false }
    }

    pub(crate) fn keys_only(mut self) -> Self {
        self.keys_only = true;
        self.map(Range::keys_only, SnapshotRange::keys_only)
    }

    pub(crate) fn for_scan(mut self) -> Self {
        self.scan = true;
        self.map(Range::as_scan, SnapshotRange::as_scan)
    }

    fn map(
        self,
        plain: impl FnOnce(Range<'t, Pool<M>>) -> Range<'t, Pool<M>>,
        snapshot: impl FnOnce(SnapshotRange<'t, Pool<M>>) -> SnapshotRange<'t, Pool<M>>,
    ) -> Self {
        let source = match self.source {
            Source::Plain(range) => Source::Plain(plain(range)),
            Source::Quiet(quiet) => Source::Quiet(Quiet { range: plain(quiet.range), ..quiet }),
            Source::Own(own) => Source::Own(Own { range: snapshot(own.range), ..own }),
            Source::Snapshot(range) => Source::Snapshot(snapshot(range)),
            Source::Over => Source::Over,
        };
        StoreRange { source, ..self }
    }

    /// Returns the next entry from the front.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Entry<'_>>, Error> {
        self.take(true)
    }

    /// Returns the next entry from the back.
    #[inline]
    pub(crate) fn next_back(&mut self) -> Result<Option<Entry<'_>>, Error> {
        self.take(false)
    }

    /// Notes that the caller has written one of the returned entries, in a call of its own. If
    /// nobody else has written in the meantime, the range continues as before.
    pub(crate) fn wrote(&mut self) {
        if let Source::Quiet(quiet) = &mut self.source
            && let Some(locks) = self.tree.store().transactions().locks()
            && let Some(token) = locks.quiet_after_own(quiet.token)
        {
            quiet.token = token;
        }
    }

    #[inline]
    fn take(&mut self, forward: bool) -> Result<Option<Entry<'_>>, Error> {
        if let Err(error) = self.step(forward) {
            // The error is returned once, and the range ends.
            self.source = Source::Over;
            return Err(error);
        }
        Ok(match &self.source {
            Source::Plain(range) => range.shown(forward),
            Source::Quiet(quiet) => quiet.range.shown(forward),
            Source::Own(own) => own.range.shown(forward),
            Source::Snapshot(range) => range.shown(forward),
            Source::Over => None,
        })
    }

    /// Skips up to `n` entries that need no look at the tree. Returns the number skipped.
    pub(crate) fn pass(&mut self, n: usize, forward: bool) -> usize {
        match &mut self.source {
            Source::Plain(range) => range.pass(n, forward),
            // Nobody wrote when its leaf was copied.
            Source::Quiet(quiet) => quiet.range.pass(n, forward),
            Source::Snapshot(range) => range.pass(n, forward),
            Source::Own(own) => {
                let passed = own.range.pass(n, forward);
                if passed > 0
                    && let Some((key, _)) = own.range.shown(forward)
                {
                    let [front, back] = &mut own.bounds;
                    put_key(if forward { front } else { back }, key);
                }
                passed
            }
            Source::Over => 0,
        }
    }

    #[inline]
    fn step(&mut self, forward: bool) -> Result<(), Error> {
        if M::TREES_ONLY {
            let Source::Plain(range) = &mut self.source else { return Ok(()) };
            range.step(forward)?;
            return Ok(());
        }
        if let Source::Quiet(quiet) = &mut self.source
            && !quiet.step(self.tree, forward)?
        {
            let (bounds, caller) = (quiet.bounds(forward), quiet.caller);
            self.own(bounds, caller)?;
        }
        match &mut self.source {
            Source::Own(_) => self.step_own(forward)?,
            Source::Plain(range) => {
                range.step(forward)?;
            }
            Source::Snapshot(range) => {
                range.step(forward)?;
            }
            Source::Quiet(_) | Source::Over => {}
        }
        Ok(())
    }

    /// Continues with its own snapshot, between these bounds.
    #[cold]
    fn own(&mut self, bounds: [Bytes; 2], caller: &'static Location<'static>) -> Result<(), Error> {
        // The old source is dropped first. A snapshot that stayed would keep its epoch, with the
        // fault of that epoch, for the next one.
        self.source = Source::Over;
        let snapshot = self.tree.store().begin_snapshot(caller)?;
        let [lower, upper] = &bounds;
        let mut range = snapshot.range(self.tree.btree(), borrowed(lower), borrowed(upper));
        if self.keys_only {
            range = range.keys_only();
        }
        if self.scan {
            range = range.as_scan();
        }
        self.source = Source::Own(Own { range, bounds, caller });
        Ok(())
    }

    fn step_own(&mut self, forward: bool) -> Result<(), Error> {
        loop {
            let Source::Own(own) = &mut self.source else { return Ok(()) };
            let key = match own.range.step(forward) {
                Ok(true) => own.range.shown(forward).map_or(&[][..], |(key, _)| key),
                Ok(false) => return Ok(()),
                Err(TxnError::TreeBulkModified { tree }) => {
                    let (bounds, caller) = (own.bounds.clone(), own.caller);
                    self.tree.store().transactions().wait_for_tree(tree.id)?;
                    self.own(bounds, caller)?;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let [front, back] = &mut own.bounds;
            put_key(if forward { front } else { back }, key);
            return Ok(());
        }
    }
}

impl<M: PoolStrategy> Quiet<'_, M> {
    /// Moves to the next entry, or to the end; `false` if the entry may not be committed.
    #[inline]
    fn step(&mut self, tree: &StoreTree<M>, forward: bool) -> Result<bool, Error> {
        let is_there = self.range.step(forward)?;
        let cursor = self.range.end(forward);
        let [front, back] = &mut self.ends;
        let end = if forward { front } else { back };
        if cursor.looks() != end.looks {
            let locks = tree.store().transactions().locks();
            if !locks.is_some_and(|locks| locks.still_quiet(self.token)) {
                return Ok(false);
            }
            end.looks = cursor.looks();
            end.enter(if is_there { cursor.fence(forward) } else { None }, forward);
            end.has_large = cursor.has_large();
        }
        end.is_used |= is_there;
        if end.has_large && is_there {
            put_key(&mut end.bound, cursor.key());
        }
        Ok(true)
    }

    /// Returns the bounds of the entries not yet returned, after a step in one direction failed its
    /// check.
    fn bounds(&self, forward: bool) -> [Bytes; 2] {
        let bound = |end: &End, is_front: bool| {
            if is_front == forward {
                // All entries of its last leaf were returned, or all up to a large value.
                let cursor = self.range.end(forward);
                let has_left = cursor.fence(forward) != end.fence;
                return match &end.fence {
                    Some(fence) if has_left && forward => Bound::Included(fence.clone()),
                    Some(fence) if has_left => Bound::Excluded(fence.clone()),
                    _ => end.bound.clone(),
                };
            }
            if end.is_used {
                return Bound::Excluded(self.range.end(is_front).key().to_vec());
            }
            end.bound.clone()
        };
        let [front, back] = &self.ends;
        [bound(front, true), bound(back, false)]
    }
}

impl End {
    /// Enters a leaf that ends at `fence`, or checks the present one for a large value.
    fn enter(&mut self, fence: Option<Vec<u8>>, forward: bool) {
        if fence == self.fence {
            return;
        }
        if let Some(left) = std::mem::replace(&mut self.fence, fence) {
            self.bound = if forward { Bound::Included(left) } else { Bound::Excluded(left) };
        }
    }
}
