//! Scans of hash indexes and heaps, batch by batch: a bucket or a data page at a time.
//!
//! Both order their entries by the first eight bytes of the keys, their *position*. So the entries
//! of a batch are a range of keys, which a transaction locks as one. A snapshot looks up the
//! versions of all its keys at once, after its page was copied (rule 1 of versions).

use std::collections::HashMap;
use std::ops::Bound;

use crate::page::{Batch, BatchEntry};
use crate::txn::bounds::Bounds;
use crate::txn::error::TxnError;
use crate::txn::snapshot::Snapshot;
use crate::txn::structure::Structure;
use crate::txn::transaction::Transaction;
use crate::txn::versions::Window;

/// Maximum versions per look-up.
const WINDOW: usize = 256;

/// The positions that a batch covers: from the first to before the second.
#[derive(Clone, Copy)]
struct Covered {
    from: u64,
    to: Option<u64>,
}

impl Covered {
    /// Returns the positions that a batch from `from` to `end` covers.
    fn of(from: u64, end: Option<u64>, forward: bool) -> Covered {
        if forward {
            return Covered { from, to: end };
        }
        Covered { from: end.unwrap_or(0), to: (from != u64::MAX).then_some(from) }
    }

    fn keys(self) -> ([u8; 8], Option<[u8; 8]>) {
        (self.from.to_be_bytes(), self.to.map(u64::to_be_bytes))
    }
}

fn bounds(keys: &([u8; 8], Option<[u8; 8]>)) -> Bounds<'_> {
    let lower = if keys.0 == [0; 8] { Bound::Unbounded } else { Bound::Included(&keys.0[..]) };
    let upper = keys.1.as_ref().map_or(Bound::Unbounded, |to| Bound::Excluded(&to[..]));
    Bounds { lower, upper }
}

impl Transaction {
    /// Like [`Structure::batch`]; locks the positions that the batch covers in S.
    ///
    /// # Errors
    /// [`TxnError`].
    pub fn batch(
        &mut self,
        structure: &dyn Structure,
        from: u64,
        forward: bool,
        batch: &mut Batch,
    ) -> Result<Option<u64>, TxnError> {
        // The first look only finds the extent of the batch.
        let end = structure.batch(from, forward, batch)?;
        let keys = Covered::of(from, end, forward).keys();
        self.lock_keys(structure.owner(), bounds(&keys))?;
        let again = structure.batch(from, forward, batch);
        self.end_statement();
        let again = again?;
        // After a split it covers less. After a merge it covers more, and the rest is not locked.
        let end = match (end, again) {
            (Some(end), Some(again)) if forward => Some(end.min(again)),
            (Some(end), Some(again)) => Some(end.max(again)),
            (end, again) => end.or(again),
        };
        if let Some(end) = end {
            batch.entries.retain(|entry| (entry.position < end) == forward);
        }
        Ok(end)
    }

    /// Locks all entries of a structure in S.
    ///
    /// # Errors
    /// [`TxnError`].
    pub fn lock_all(&mut self, structure: &dyn Structure) -> Result<(), TxnError> {
        self.lock_keys(structure.owner(), Bounds::ALL)
    }
}

impl Snapshot {
    /// Calls `f` with the value of `key` in a hash index or a heap; `None` if the snapshot has no
    /// such key.
    ///
    /// # Errors
    /// The memory behind the structure failed, or the snapshot is lost.
    pub fn look<R>(
        &self,
        structure: &dyn Structure,
        key: &[u8],
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, TxnError> {
        // The page first, the versions afterwards (rule 1 of versions).
        let found = structure.value(key)?;
        if let Some(seen) = self.seen(structure.owner(), key)? {
            let value = seen.before(0).map(|before| self.whole(before)).transpose()?;
            return Ok(value.map(|value| f(&value)));
        }
        Ok(found.map(|value| f(&value)))
    }

    /// Like [`Structure::batch`], for the snapshot's view, in the order of positions.
    ///
    /// # Errors
    /// Same as [`Snapshot::look`].
    pub fn batch(
        &self,
        structure: &dyn Structure,
        from: u64,
        forward: bool,
        batch: &mut Batch,
    ) -> Result<Option<u64>, TxnError> {
        let mut end = structure.batch(from, forward, batch)?;
        let keys = Covered::of(from, end, forward).keys();
        let mut found = Window::default();
        let (more, use_pages) =
            self.window(structure.owner(), bounds(&keys), forward, WINDOW, &mut found)?;
        if more && let Some(last) = found.last() {
            // The batch ends before the last of them: a cleared heap has nothing but versions.
            let last = position_of(last);
            end = Some(if forward { last.max(from + 1) } else { (last + 1).min(from - 1) });
        }
        if let Some(end) = end {
            batch.entries.retain(|entry| (entry.position < end) == forward);
            let is_within = |(key, _): &(&[u8], _)| (position_of(key) < end) == forward;
            let rows = found.iter().take_while(is_within).count();
            found.truncate(rows);
        }
        if !use_pages {
            batch.entries.clear();
        }
        if found.len() == 0 {
            return Ok(end);
        }
        let mut versions: HashMap<_, _> = found
            .iter()
            .map(|(key, before)| ((position_of(key), key.get(8..).unwrap_or(&[])), before))
            .collect();
        for entry in std::mem::take(&mut batch.entries) {
            if !versions.contains_key(&(entry.position, &entry.key[..])) {
                batch.entries.push(entry);
            }
        }
        for ((position, key), before) in versions.drain() {
            if let Some(before) = before {
                let (key, value) = (key.to_vec(), self.whole(before)?.to_vec());
                batch.entries.push(BatchEntry { position, key, value });
            }
        }
        batch.entries.sort_unstable();
        Ok(end)
    }
}

/// Returns the position of a key.
fn position_of(key: &[u8]) -> u64 {
    key.first_chunk().map_or(0, |position| u64::from_be_bytes(*position))
}
