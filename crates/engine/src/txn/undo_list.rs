//! The undo records of a transaction, the newest last.
//!
//! Each change is kept as the undo record of the log ([`Undo`]), in chunks of some ten thousand
//! bytes, so that a reused list allocates nothing. A full chunk is charged to the memory that all
//! transactions share for undo, or is spilled. It is read again when its changes are undone. A
//! replaced large value is an orphan until the end: its handle is kept.
//!
//! # Rules
//! 1. Room for a change's undo record is reserved before the change: a change that could not be
//!    undone is not made.
//! 2. Undo needs memory for one chunk only, and no room in the spill file. So a transaction can be
//!    aborted when both are full.
//! 3. A chunk leaves the spill file after it was read. Until then its extent stays in memory, so
//!    that a failed read can be repeated.
//! 4. A transaction reserves room in the log for its undo before its first change, and more ahead
//!    of each later one. The next change is made only if the log has that room. A list keeps the
//!    first reservation for its thread's next transaction, so that no two threads write one count.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use millpond_base::Lsn;

use crate::btree::{Before, Detached, Undo};
use crate::io::Extent;
use crate::txn::error::TxnError;
use crate::txn::undo_list::room::UndoRoom;

/// Bytes at which a chunk is full. The newest chunk of a transaction is not charged.
const CHUNK: usize = 64 << 10;
/// Bytes of versions of a chunk's changes at which it is full, too.
const VERSIONS: usize = 4 * CHUNK;
/// Bytes of its chunk's memory that a transaction leaves to the next.
const KEPT: usize = CHUNK;
/// Bytes that a change takes besides its undo record: in memory, and in the file.
const CHANGE_BYTES: usize = size_of::<Change>();
const STORED_BYTES: usize = 12;
/// Bytes of memory charged for a chunk in the file.
const SPILLED_BYTES: usize = 96;
/// Bytes of a CLR besides the bytes that it restores.
const CLR_BYTES: usize = 96;
/// Upper bound of the share of a large value's bytes that is logged when its pages are freed: one
/// in this many.
const FREED_PART: usize = 64;
/// Maximum bytes of a version besides its key and its value, in a run of the spill file.
const VERSION_BYTES: usize = 32;

/// One change. A long transaction has millions of these, so rare properties are kept elsewhere.
struct Change {
    /// Offset of its undo record in the chunk.
    start: u32,
    /// LSN of the transaction's record before this change's.
    prev: Lsn,
}

/// Consecutive changes.
#[derive(Default)]
struct Chunk {
    changes: Vec<Change>,
    bytes: Vec<u8>,
    /// Maximum bytes of the versions of its changed entries.
    versions: usize,
    /// Maximum bytes of log for freeing the pages of its large values.
    freeing: usize,
}

impl Chunk {
    /// Returns the bytes that it takes in memory.
    fn weight(&self) -> usize {
        self.bytes.len() + self.changes.len() * CHANGE_BYTES
    }

    /// Returns the bytes of log that undoing it may take: CLRs, and as much again for pages that
    /// split.
    fn owed(&self) -> u64 {
        (2 * self.bytes.len() + self.changes.len() * CLR_BYTES + self.freeing) as u64
    }

    fn undo(&self, change: &Change) -> Option<Undo<'_>> {
        Undo::read(self.bytes.get(change.start as usize..)?)
    }

    fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes.len() + self.changes.len() * STORED_BYTES);
        for change in &self.changes {
            out.extend_from_slice(&change.start.to_le_bytes());
            out.extend_from_slice(&change.prev.0.to_le_bytes());
        }
        out.extend_from_slice(&self.bytes);
        out
    }

    /// Replaces this chunk with a stored one of `count` changes.
    fn read(&mut self, stored: &[u8], count: usize) {
        let (changes, bytes) = stored.split_at(stored.len().min(count * STORED_BYTES));
        self.changes.clear();
        self.changes.extend(changes.chunks_exact(STORED_BYTES).map(|stored| {
            let (mut start, mut prev) = ([0; 4], [0; 8]);
            start.copy_from_slice(&stored[..4]);
            prev.copy_from_slice(&stored[4..]);
            Change { start: u32::from_le_bytes(start), prev: Lsn(u64::from_le_bytes(prev)) }
        }));
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
    }

    fn clear(&mut self) {
        self.changes.clear();
        self.bytes.clear();
        (self.versions, self.freeing) = (0, 0);
    }
}

enum Body {
    Memory(Chunk),
    Spilled(Extent),
}

/// A full chunk.
struct Full {
    /// Number of its first change, and its count of changes.
    first: usize,
    count: usize,
    /// Size of the chunk in bytes, and the bytes that it is charged with.
    weight: usize,
    charged: usize,
    /// Maximum bytes of its changes' versions, and the bytes promised for it.
    versions: usize,
    promised: u64,
    /// Bytes of log that undoing it may take, and the share of them for freeing large values.
    owed: u64,
    freeing: usize,
    body: Body,
}

/// A large value that a change detached.
struct Large {
    /// Number of the change.
    number: usize,
    /// Owner id of the tree.
    owner: u32,
    value: Detached,
}

/// The newest change, with its undo record.
pub(super) struct Newest<'l> {
    /// LSN of the transaction's record before the change's: undo-next of the CLR.
    pub(super) prev: Lsn,
    /// The large value that the entry had.
    pub(super) large: Option<&'l Detached>,
    pub(super) undo: Undo<'l>,
}

/// A tree's owner id, a key, the before image of its entry, and its large value.
///
/// An update that kept the value's length only has the bytes that differ ([`Before::Part`]). The
/// value before the change is the value after it with these bytes restored. The value after it is
/// the one that the next change of this key found, or that the tree holds now.
pub(super) type Entry<'l> = (u32, &'l [u8], Before<'l>, Option<&'l Detached>);

/// Result of [`UndoList::each`] for an entry.
pub(super) type Step = Result<ControlFlow<()>, TxnError>;

/// All changes of a transaction that are not undone.
#[derive(Default)]
pub(super) struct UndoList {
    /// Full chunks, the oldest first.
    full: Vec<Full>,
    /// Number of the newest chunk's first change.
    first: usize,
    newest: Chunk,
    /// Bytes of log that are claimed for undoing the newest chunk.
    claimed: u64,
    /// Detached large values, in the order of their changes.
    large: Vec<Large>,
    /// Bytes of the spill file that are promised to the versions of large values detached by the
    /// newest chunk's changes.
    promised: u64,
    /// The shared room, charged for full chunks and handles.
    room: Option<Arc<UndoRoom>>,
    stored: Vec<u8>,
}

impl UndoList {
    pub(super) fn len(&self) -> usize {
        self.first + self.newest.changes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reserves room for one more change, before it is made (rule 1), or fails with
    /// [`TxnError::UndoTooLarge`].
    #[inline]
    pub(super) fn make_room(&mut self, room: &Arc<UndoRoom>) -> Result<(), TxnError> {
        if self.newest.weight() >= CHUNK || self.newest.versions >= VERSIONS {
            self.fill(room)?;
        }
        self.claim_ahead(room);
        Ok(())
    }

    /// Reserves room in the log for undoing the newest chunk and one more change (rule 4).
    #[inline]
    pub(super) fn claim_ahead(&mut self, room: &Arc<UndoRoom>) {
        while self.newest.owed() + room.claim / 2 > self.claimed {
            self.claim(room);
        }
    }

    /// Ends the reservation of a list without changes.
    pub(super) fn unclaim(&mut self) {
        if self.is_empty() {
            let claimed = std::mem::take(&mut self.claimed);
            self.is_paid(claimed);
        }
    }

    /// Begins a new chunk, since the newest one is full.
    #[cold]
    fn fill(&mut self, room: &Arc<UndoRoom>) -> Result<(), TxnError> {
        let (weight, count) = (self.newest.weight(), self.newest.changes.len());
        let Chunk { versions, freeing, .. } = self.newest;
        let owed = self.newest.owed().max(self.claimed);
        let rest = ((weight + versions) as u64).saturating_sub(self.promised);
        let promised = room.promise(rest, || self.promised_bytes())?;
        self.room.get_or_insert_with(|| room.clone());
        let (charged, body) = if room.take(weight) {
            let mut chunk = std::mem::take(&mut self.newest);
            chunk.bytes.shrink_to_fit();
            chunk.changes.shrink_to_fit();
            (weight, Body::Memory(chunk))
        } else {
            let put = match &room.spill {
                Some(file) => file.put(&self.newest.write()).map_err(Some),
                None => Err(None),
            };
            let extent = put.map_err(|error| {
                self.break_promise(promised);
                room.too_large(self.kept_bytes() + weight as u64, error)
            })?;
            self.newest.clear();
            // Too few bytes to refuse the change for.
            room.used.fetch_add(SPILLED_BYTES, Ordering::Relaxed);
            (SPILLED_BYTES, Body::Spilled(extent))
        };
        room.reserve(owed - std::mem::take(&mut self.claimed));
        let promised = promised + std::mem::take(&mut self.promised);
        let first = self.first;
        self.full.push(Full {
            first,
            count,
            weight,
            charged,
            versions,
            promised,
            owed,
            freeing,
            body,
        });
        self.first += count;
        Ok(())
    }

    /// Reserves more room in the log for undoing the newest chunk.
    #[cold]
    fn claim(&mut self, room: &Arc<UndoRoom>) {
        self.room.get_or_insert_with(|| room.clone());
        room.reserve(room.claim);
        self.claimed += room.claim;
    }

    /// Releases `owed` reserved bytes of the log.
    fn is_paid(&self, owed: u64) {
        if let Some(room) = &self.room {
            room.release(owed);
        }
    }

    /// Returns `bytes` to the shared room.
    fn give(&self, bytes: usize) {
        if let Some(room) = &self.room {
            let before = room.used.fetch_sub(bytes, Ordering::Relaxed);
            debug_assert!(before >= bytes, "undo is charged before it is credited");
        }
    }

    /// Returns the handles of `count` large values to the shared room.
    fn give_handles(&self, count: usize) {
        if let Some(room) = &self.room {
            room.give_handles(count);
        }
    }

    /// Returns the buffer to which a tree appends the undo record of a change; [`UndoList::record`]
    /// follows.
    pub(super) fn room(&mut self) -> &mut Vec<u8> {
        &mut self.newest.bytes
    }

    /// Returns the offset in the buffer at which the next undo record will begin.
    pub(super) fn end(&self) -> usize {
        self.newest.bytes.len()
    }

    /// Adds the change whose undo record was appended from `start` on. A change that was not made
    /// appended no record, and is not added. `value` is the length of the entry's present value. An
    /// update in place had the same length before, and its undo record only has a part of it.
    #[inline]
    pub(super) fn record(&mut self, start: usize, prev: Lsn, value: usize) {
        debug_assert!(start <= self.newest.bytes.len(), "undo records are appended");
        debug_assert!(
            self.newest.changes.last().is_none_or(|last| last.prev <= prev),
            "the undo list is in LSN order"
        );
        let bytes = self.newest.bytes.len().saturating_sub(start);
        if bytes > 0 {
            self.newest.versions += bytes + value + VERSION_BYTES;
            self.newest.freeing += value / FREED_PART;
            // A chunk is full long before its bytes need more than 32 bits.
            self.newest.changes.push(Change { start: start as u32, prev });
        }
    }

    /// Adds the large value that the last recorded change detached from the tree `owner`.
    ///
    /// # Errors
    /// There is no memory for its handle, or no room for its version: the change has to be undone.
    #[cold]
    pub(super) fn record_detached(
        &mut self,
        room: &Arc<UndoRoom>,
        owner: u32,
        value: Detached,
    ) -> Result<(), TxnError> {
        if let Some(number) = self.len().checked_sub(1) {
            assert!(
                self.large.last().is_none_or(|last| last.number < number),
                "a change detaches one large value at most"
            );
            let len = usize::try_from(value.len()).unwrap_or(usize::MAX / 2);
            self.newest.versions += len;
            self.newest.freeing += len / FREED_PART;
            self.large.push(Large { number, owner, value });
            self.room.get_or_insert_with(|| room.clone());
            room.take_handle(self.large.len())?;
            self.promised += room.promise(len as u64, || self.promised_bytes())?;
        }
        Ok(())
    }

    fn large(&self, number: usize) -> Option<&Detached> {
        let at = self.large.binary_search_by_key(&number, |large| large.number).ok()?;
        self.large.get(at).map(|large| &large.value)
    }

    /// Calls `f` with the changes of a chunk from number `from` on.
    fn each_of(
        &self,
        first: usize,
        chunk: &Chunk,
        from: usize,
        forward: bool,
        f: &mut dyn FnMut(Entry<'_>) -> Step,
    ) -> Step {
        let skipped = from.saturating_sub(first).min(chunk.changes.len());
        let mut left = skipped..chunk.changes.len();
        while let Some(at) = if forward { left.next() } else { left.next_back() } {
            if let Some(undo) = chunk.changes.get(at).and_then(|change| chunk.undo(change))
                && f((undo.owner, undo.key, undo.before, self.large(first + at)))?.is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Calls `f` with the changes from number `from` on, the oldest or the newest first, until it
    /// breaks.
    ///
    /// # Errors
    /// `f` failed, or [`TxnError::UndoUnreadable`].
    pub(super) fn each(
        &self,
        from: usize,
        forward: bool,
        mut f: impl FnMut(Entry<'_>) -> Step,
    ) -> Result<(), TxnError> {
        let (mut read, mut stored) = (Chunk::default(), Vec::new());
        let skipped = self.full.partition_point(|full| full.first + full.count <= from);
        let mut left = skipped..self.full.len() + 1;
        while let Some(at) = if forward { left.next() } else { left.next_back() } {
            let (first, chunk) = match self.full.get(at) {
                None => (self.first, &self.newest),
                Some(Full { first, body: Body::Memory(chunk), .. }) => (*first, chunk),
                Some(Full { first, count, body: Body::Spilled(extent), .. }) => {
                    extent.read(&mut stored).map_err(TxnError::UndoUnreadable)?;
                    read.read(&stored, *count);
                    (*first, &read)
                }
            };
            if self.each_of(first, chunk, from, forward, &mut f)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Makes the newest of the full chunks the newest chunk, which must be empty.
    #[cold]
    fn take_full(&mut self) -> Result<(), TxnError> {
        if let Some(Full { body: Body::Spilled(extent), .. }) = self.full.last() {
            extent.read(&mut self.stored).map_err(TxnError::UndoUnreadable)?;
        }
        let Some(full) = self.full.pop() else { return Ok(()) };
        match full.body {
            Body::Memory(chunk) => self.newest = chunk,
            Body::Spilled(_) => self.newest.read(&self.stored, full.count),
        }
        self.newest.versions = full.versions;
        self.first = full.first;
        self.give(full.charged);
        self.break_promise(full.promised);
        self.newest.freeing = full.freeing;
        let paid = std::mem::replace(&mut self.claimed, full.owed);
        self.is_paid(paid);
        Ok(())
    }

    /// Returns the newest change, with its undo record; `None` if there is none.
    ///
    /// # Errors
    /// [`TxnError::UndoUnreadable`]; nothing is lost, and the call may be repeated.
    pub(super) fn newest(&mut self) -> Result<Option<Newest<'_>>, TxnError> {
        if self.newest.changes.is_empty() {
            self.take_full()?;
        }
        let Some(change) = self.newest.changes.last() else { return Ok(None) };
        let (prev, large) = (change.prev, self.large(self.len() - 1));
        Ok(self.newest.undo(change).map(|undo| Newest { prev, large, undo }))
    }

    /// Removes the newest change, which is undone.
    pub(super) fn pop(&mut self) {
        if let Some(change) = self.newest.changes.pop() {
            self.newest.bytes.truncate(change.start as usize);
        }
        if self.newest.changes.is_empty() {
            (self.newest.versions, self.newest.freeing) = (0, 0);
            let promised = std::mem::take(&mut self.promised);
            self.break_promise(promised);
        }
        while self.large.last().is_some_and(|large| large.number >= self.len()) {
            self.large.pop();
            self.give_handles(1);
        }
    }

    /// Takes the replaced and removed large values out of the list.
    pub(super) fn take_large(&mut self) -> impl Iterator<Item = (u32, Detached)> + use<> {
        let large = std::mem::take(&mut self.large);
        self.give_handles(large.len());
        large.into_iter().map(|large| (large.owner, large.value))
    }

    /// Clears the list, and frees memory that only a long transaction needs. The next transaction
    /// inherits the first reservation (rule 4).
    pub(super) fn clear(&mut self) {
        let kept = self.room.as_ref().map_or(0, |room| room.claim).min(self.claimed);
        self.forget();
        self.is_paid(self.claimed - kept);
        self.claimed = kept;
    }

    fn forget(&mut self) {
        drop(self.take_large());
        let promised = std::mem::take(&mut self.promised);
        self.break_promise(promised);
        if !self.full.is_empty() {
            self.give(self.full.iter().map(|full| full.charged).sum());
            self.break_promise(self.full.iter().map(|full| full.promised).sum());
            self.is_paid(self.full.iter().map(|full| full.owed).sum());
            self.full = Vec::new();
            self.stored = Vec::new();
        }
        self.first = 0;
        self.newest.clear();
        self.newest.changes.shrink_to(KEPT / CHANGE_BYTES);
        self.newest.bytes.shrink_to(KEPT);
    }
}

impl Drop for UndoList {
    fn drop(&mut self) {
        self.forget();
        self.is_paid(self.claimed);
    }
}

pub(super) mod room;
#[cfg(test)]
mod tests;
