//! The entries of a range inside a transaction, from both ends; the entries seen are locked.
//!
//! Entries are read ahead in batches. A batch begins with one entry and grows to an eighth of the
//! entries returned, 256 at most, so a scan that is stopped early has locked little more than it
//! returned. A write of the same transaction discards the entries read ahead, so a scan shows all
//! writes made before the step.
//!
//! If the transaction has locked the whole rest of the range, as it has the whole tree after
//! thousands of entries, nothing needs locking ahead. A cursor then lends entries from its copies
//! of the leaves.

use std::collections::VecDeque;
use std::ops::Bound;

use crate::api::strategy::{DbCursor, DbTree};
use crate::api::tree::byte_range::bounds;
use crate::api::txn::Txn;
use crate::btree::Entry;
use crate::encoding::key_range::KeyRange;
use crate::store::error::Error;
use crate::txn::{Bounds, OwnedEntry, ScanSome};

/// Maximum number of entries in a batch.
const BATCH_MAX: usize = 256;
/// A batch is this fraction of the entries returned before.
const AHEAD: usize = 8;

pub(crate) struct TxnRange<'t> {
    txn: &'t Txn,
    tree: &'t DbTree,
    /// The part that neither end has returned.
    rest: KeyRange,
    front: VecDeque<OwnedEntry>,
    back: VecDeque<OwnedEntry>,
    /// Position of the front in a range that is locked as a whole; `rest` is as it was when the
    /// cursor began.
    cursor: Option<DbCursor<'t>>,
    is_back_used: bool,
    shown: OwnedEntry,
    /// The transaction's writes when the batches were read.
    writes: u64,
    given: usize,
    keys_only: bool,
    as_scan: bool,
}

impl<'t> TxnRange<'t> {
    pub(crate) fn new(txn: &'t Txn, tree: &'t DbTree, range: &KeyRange) -> TxnRange<'t> {
        TxnRange {
            txn,
            tree,
            rest: range.clone(),
            front: VecDeque::new(),
            back: VecDeque::new(),
            cursor: None,
            is_back_used: false,
            shown: OwnedEntry::default(),
            writes: txn.writes(),
            given: 0,
            keys_only: false,
            as_scan: false,
        }
    }

    pub(crate) fn keys_only(mut self) -> Self {
        self.keys_only = true;
        self
    }

    pub(crate) fn for_scan(mut self) -> Self {
        self.as_scan = true;
        self
    }

    /// Returns `true` if the transaction has not written since the batches were read.
    pub(crate) fn is_fresh(&self) -> bool {
        self.writes == self.txn.writes()
    }

    /// Keeps the entries read ahead: the writes since then did not change them.
    pub(crate) fn keep(&mut self) {
        self.writes = self.txn.writes();
    }

    /// Returns the next entry from the front or the back, borrowed until the next call.
    pub(crate) fn next(&mut self, forward: bool) -> Result<Option<Entry<'_>>, Error> {
        self.is_back_used |= !forward;
        if !self.is_fresh() {
            self.front.clear();
            self.back.clear();
            self.leave_cursor();
            self.keep();
        } else if self.is_back_used {
            self.leave_cursor();
        }
        if self.move_cursor()? {
            self.given += 1;
            return Ok(self.cursor.as_ref().map(|cursor| (cursor.key(), cursor.value())));
        }
        self.next_of_batch(forward)
    }

    /// Skips up to `n` entries at the front that are read already; returns the number skipped.
    pub(crate) fn pass(&mut self, n: usize, forward: bool) -> usize {
        let may = forward && !self.is_back_used && self.is_fresh();
        let passed = self.cursor.as_mut().filter(|_| may).map_or(0, |cursor| cursor.pass(n, true));
        self.given += passed;
        passed
    }

    /// Returns `true` if no other transaction can change the rest of the range before this one
    /// ends.
    fn has_locked(&self) -> Result<bool, Error> {
        self.txn.call(|txn| txn.has_locked(self.tree, bounds(&self.rest)))
    }

    /// Moves to the next entry of a range that is locked as a whole; returns `false` if there is
    /// none, or the range is not locked.
    fn move_cursor(&mut self) -> Result<bool, Error> {
        if let Some(cursor) = &mut self.cursor {
            let more = cursor.next()?;
            if !more {
                self.end_cursor();
            }
            return Ok(more);
        }
        let may = !self.is_back_used && self.front.is_empty() && !self.rest.is_empty();
        if !may || !self.has_locked()? {
            return Ok(false);
        }
        let Bounds { lower, upper } = bounds(&self.rest);
        let mut cursor = self.tree.btree().cursor_in(lower, upper);
        if self.keys_only {
            cursor = cursor.keys_only();
        }
        if self.as_scan {
            cursor = cursor.as_scan();
        }
        let more = cursor.first()?;
        if more {
            self.cursor = Some(cursor)
        } else {
            self.end_cursor()
        }
        Ok(more)
    }

    /// Ends the cursor at the end of the range.
    fn end_cursor(&mut self) {
        self.cursor = None;
        // No key is between these.
        (self.rest.start, self.rest.end) =
            (Bound::Excluded(Vec::new()), Bound::Included(Vec::new()));
    }

    /// Continues without the cursor, after its entry.
    fn leave_cursor(&mut self) {
        if let Some(cursor) = self.cursor.take() {
            self.rest.start = Bound::Excluded(cursor.key().to_vec());
        }
    }

    fn next_of_batch(&mut self, forward: bool) -> Result<Option<Entry<'_>>, Error> {
        let batch = if forward { &mut self.front } else { &mut self.back };
        if batch.is_empty() && !self.rest.is_empty() {
            let max = (self.given / AHEAD).clamp(1, BATCH_MAX);
            let (keys_only, as_scan) = (self.keys_only, self.as_scan);
            let how = ScanSome { forward, max, keys_only, as_scan };
            self.txn.call(|txn| txn.scan_some(self.tree, bounds(&self.rest), how, batch))?;
        }
        // The other end may have returned it already.
        let Some(entry) = batch.pop_front().filter(|(key, _)| self.rest.contains(key)) else {
            return Ok(None);
        };
        self.given += 1;
        let bound = if forward { &mut self.rest.start } else { &mut self.rest.end };
        match bound {
            Bound::Excluded(place) => place.clone_from(&entry.0),
            bound => *bound = Bound::Excluded(entry.0.clone()),
        }
        self.shown = entry;
        Ok(Some((&self.shown.0, &self.shown.1)))
    }
}
