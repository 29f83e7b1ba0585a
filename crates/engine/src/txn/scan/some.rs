//! Scans that lock the entries they have read, one batch at a time.
//!
//! A batch is first read without locks, to find its last key, and the range up to that key is
//! locked. Then the batch is read again, and its present contents are the result (README of `lock`,
//! "For callers"). A scan that ends early has locked exactly the keys from its bound to the end of
//! its batch. Nobody can insert, change or remove an entry in that range; behind it, everybody can.

use std::collections::VecDeque;
use std::ops::Bound;

use crate::btree::{BTree, Cursor};
use crate::pool::{Pages, PoolError};
use crate::txn::bounds::Bounds;
use crate::txn::error::TxnError;
use crate::txn::transaction::Transaction;

/// Bytes of entries per batch: it ends with the entry that exceeds them.
const BYTES: usize = 256 << 10;

/// An owned entry.
pub type OwnedEntry = (Vec<u8>, Vec<u8>);

/// Options of reading a batch.
#[derive(Clone, Copy, Debug)]
pub struct ScanSome {
    /// Set to read from the first key; otherwise from the last.
    pub forward: bool,
    /// Maximum number of entries locked ahead.
    pub max: usize,
    /// Set if large values are not read, and returned empty.
    pub keys_only: bool,
    /// Set if the pool need not keep the leaves.
    pub as_scan: bool,
}

impl ScanSome {
    fn cursor<'t, P: Pages>(
        self,
        tree: &'t BTree<P>,
        bounds: Bounds<'_>,
        keys_only: bool,
    ) -> Cursor<'t, P> {
        let mut cursor = tree.cursor_in(bounds.lower, bounds.upper);
        if keys_only {
            cursor = cursor.keys_only();
        }
        if self.as_scan { cursor.as_scan() } else { cursor }
    }

    fn begin<P: Pages>(self, cursor: &mut Cursor<'_, P>) -> Result<bool, PoolError> {
        if self.forward { cursor.first() } else { cursor.last() }
    }

    fn step<P: Pages>(self, cursor: &mut Cursor<'_, P>) -> Result<bool, PoolError> {
        if self.forward { cursor.next() } else { cursor.prev() }
    }
}

impl Transaction {
    /// Locks the entries next to one of the bounds, up to `how.max` of them or the other bound, and
    /// appends them to `out`. Nothing is appended only if there are none between the bounds.
    ///
    /// # Errors
    /// [`TxnError`].
    pub fn scan_some<P: Pages>(
        &mut self,
        tree: &BTree<P>,
        bounds: Bounds<'_>,
        how: ScanSome,
        out: &mut VecDeque<OwnedEntry>,
    ) -> Result<(), TxnError> {
        loop {
            let last = last_of(tree, bounds, how)?;
            let last_key = last.as_deref().map(Bound::Included);
            let range = match (last_key, how.forward) {
                (Some(upper), true) => Bounds { upper, ..bounds },
                (Some(lower), false) => Bounds { lower, ..bounds },
                (None, _) => bounds,
            };
            self.lock_range(tree, range.lower, range.upper)?;
            let read = read(tree, range, how, out);
            self.end_statement();
            read?;
            // The entries seen first may be gone: then the ones behind them are read.
            if !out.is_empty() || last.is_none() {
                return Ok(());
            }
        }
    }
}

/// Returns the last key of the batch; `None` if it ends at the bound.
fn last_of<P: Pages>(
    tree: &BTree<P>,
    bounds: Bounds<'_>,
    how: ScanSome,
) -> Result<Option<Vec<u8>>, PoolError> {
    let mut cursor = how.cursor(tree, bounds, true);
    let mut more = how.begin(&mut cursor)?;
    for _ in 1..how.max {
        if !more {
            return Ok(None);
        }
        more = how.step(&mut cursor)?;
    }
    Ok(more.then(|| cursor.key().to_vec()))
}

fn read<P: Pages>(
    tree: &BTree<P>,
    range: Bounds<'_>,
    how: ScanSome,
    out: &mut VecDeque<OwnedEntry>,
) -> Result<(), PoolError> {
    let mut cursor = how.cursor(tree, range, how.keys_only);
    let mut more = how.begin(&mut cursor)?;
    let mut bytes = 0;
    while more && bytes <= BYTES {
        let entry = (cursor.key().to_vec(), cursor.value().to_vec());
        bytes += entry.0.len() + entry.1.len();
        out.push_back(entry);
        more = how.step(&mut cursor)?;
    }
    Ok(())
}
