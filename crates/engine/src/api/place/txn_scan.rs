//! The entries of a range inside a transaction, from both ends: what it has seen is locked.
//!
//! Entries are read ahead in batches, which begin with one entry and grow to an eighth of what the
//! scan has given, 256 at most: a scan that is stopped early has locked little more than it saw.
//! A write of the same transaction discards what was read ahead, so a scan shows what the
//! transaction has written before the step.

use std::collections::VecDeque;
use std::ops::Bound;

use crate::api::place::txn_cell::TxnCell;
use crate::api::strategy::DbTree;
use crate::btree::Entry;
use crate::encoding::key_range::KeyRange;
use crate::store::error::Error;
use crate::txn::{OwnedEntry, ScanSome};

/// Most entries of a batch.
const BATCH_MAX: usize = 256;
/// A batch is this part of what was given before.
const AHEAD: usize = 8;

pub(crate) struct TxnScan<'t> {
    cell: &'t TxnCell,
    tree: &'t DbTree,
    /// What was given by neither end.
    rest: KeyRange,
    front: VecDeque<OwnedEntry>,
    back: VecDeque<OwnedEntry>,
    shown: OwnedEntry,
    /// The transaction's writes when the batches were read.
    writes: u64,
    given: usize,
    keys_only: bool,
    as_scan: bool,
}

impl<'t> TxnScan<'t> {
    pub(crate) fn new(cell: &'t TxnCell, tree: &'t DbTree, range: &KeyRange) -> TxnScan<'t> {
        TxnScan {
            cell,
            tree,
            rest: range.clone(),
            front: VecDeque::new(),
            back: VecDeque::new(),
            shown: OwnedEntry::default(),
            writes: cell.writes(),
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

    /// Whether the transaction wrote nothing since the batches were read.
    pub(crate) fn is_fresh(&self) -> bool {
        self.writes == self.cell.writes()
    }

    /// Keeps what was read ahead: what was written meanwhile is none of it.
    pub(crate) fn keep(&mut self) {
        self.writes = self.cell.writes();
    }

    /// The next entry from the front or the back, borrowed until the next call.
    pub(crate) fn next(&mut self, forward: bool) -> Result<Option<Entry<'_>>, Error> {
        if !self.is_fresh() {
            self.front.clear();
            self.back.clear();
            self.keep();
        }
        let batch = if forward { &mut self.front } else { &mut self.back };
        if batch.is_empty() && !self.rest.is_empty() {
            let max = (self.given / AHEAD).clamp(1, BATCH_MAX);
            let (keys_only, as_scan) = (self.keys_only, self.as_scan);
            let how = ScanSome { forward, max, keys_only, as_scan };
            self.cell.scan_some(self.tree, &self.rest, how, batch)?;
        }
        // The other end may have given it.
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
