//! The room for the undo records of all transactions: memory, the spill file, and the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::io::{SpillError, SpillFile};
use crate::log::Log;
use crate::txn::error::TxnError;
use crate::txn::undo_list::UndoList;

/// Minimum bytes of log reserved at once for undoing a transaction.
const CLAIM: u64 = 16 << 10;
/// Pages of log reserved at once, since undo may split one.
const CLAIM_PAGES: u64 = 2;

/// Bytes charged for the handle of a large value.
const LARGE_BYTES: usize = 128;
/// Memory for handles, as a multiple of that for undo records: a quarter of a store's memory.
const HANDLES: usize = 32;
/// Minimum memory for handles. A store without locks has no memory for undo records.
const HANDLES_LEAST: usize = 1 << 20;

/// Memory for the undo records of all transactions, and the file for those that do not fit.
pub(in crate::txn) struct UndoRoom {
    limit: usize,
    pub(in crate::txn) used: AtomicUsize,
    pub(in crate::txn) spill: Option<Arc<SpillFile>>,
    /// Bytes of the spill file that are promised to undo records and to the versions of entries
    /// changed by active transactions, where that is bounded.
    pub(in crate::txn) promised: AtomicU64,
    /// Bytes of the handles of large values, which are in memory.
    handles: AtomicUsize,
    /// Log that keeps room for undo, if there is one.
    log: Option<Arc<Log>>,
    /// Bytes of log reserved at once.
    pub(in crate::txn) claim: u64,
}

impl UndoRoom {
    /// Returns a room of `limit` bytes of memory, and a file for the rest, if there is one.
    pub(in crate::txn) fn new(limit: usize, spill: Option<Arc<SpillFile>>) -> UndoRoom {
        let (used, promised) = (AtomicUsize::new(0), AtomicU64::new(0));
        let handles = AtomicUsize::new(0);
        UndoRoom { limit, used, spill, promised, handles, log: None, claim: CLAIM }
    }

    /// Returns the room with a `log` that keeps space for the undo of changes of pages of
    /// `page_bytes` bytes.
    pub(in crate::txn) fn logged(self, log: Option<Arc<Log>>, page_bytes: u64) -> UndoRoom {
        UndoRoom { log, claim: CLAIM.max(CLAIM_PAGES * page_bytes), ..self }
    }

    /// Reserves `bytes` of the log.
    pub(in crate::txn) fn reserve(&self, bytes: u64) {
        if let Some(log) = &self.log {
            log.reserve(bytes);
        }
    }

    /// Ends a reservation of `bytes` of the log.
    pub(in crate::txn) fn release(&self, bytes: u64) {
        if let Some(log) = self.log.as_ref().filter(|_| bytes > 0) {
            log.release(bytes);
        }
    }

    /// Returns the charged bytes.
    pub(in crate::txn) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed) + self.handles.load(Ordering::Relaxed)
    }

    /// Returns the bytes in the spill file, including those of versions.
    pub(in crate::txn) fn spilled(&self) -> u64 {
        self.spill.as_ref().map_or(0, |file| file.bytes())
    }

    /// Charges `bytes` if they fit, and returns whether they do.
    pub(in crate::txn) fn take(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    /// Charges the handle of a large value to a transaction that already has `own` of them.
    ///
    /// # Errors
    /// [`TxnError::TooManyLarge`]; it is charged all the same.
    pub(in crate::txn) fn take_handle(&self, own: usize) -> Result<(), TxnError> {
        let limit = (HANDLES * self.limit).max(HANDLES_LEAST);
        let bytes = self.handles.fetch_add(LARGE_BYTES, Ordering::Relaxed) + LARGE_BYTES;
        let own = own * LARGE_BYTES;
        if bytes > limit { Err(TxnError::TooManyLarge { limit, own }) } else { Ok(()) }
    }

    /// Returns the handles of `count` large values.
    pub(in crate::txn) fn give_handles(&self, count: usize) {
        let bytes = count * LARGE_BYTES;
        let before = self.handles.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "a handle is charged before it is credited");
    }

    /// Promises `bytes` of the spill file, if that much is left, to a transaction that already has
    /// `own` bytes.
    pub(in crate::txn) fn promise(
        &self,
        bytes: u64,
        own: impl FnOnce() -> u64,
    ) -> Result<u64, TxnError> {
        let Some(max) = self.spill.as_ref().and_then(|file| file.max_of_active()) else {
            return Ok(0);
        };
        // Versions have more memory than undo.
        let max = max.saturating_add(self.limit as u64);
        let fits = |promised: u64| promised.checked_add(bytes).filter(|sum| *sum <= max);
        match self.promised.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(bytes),
            Err(_) => {
                let (limit, own) = (self.limit, own().saturating_add(bytes));
                Err(TxnError::UndoTooLarge { limit, room: max, own, error: None })
            }
        }
    }

    /// Returns the error of a transaction that would have `own` bytes, and cannot be spilled.
    pub(in crate::txn) fn too_large(&self, own: u64, error: Option<SpillError>) -> TxnError {
        let spilled = match error {
            Some(SpillError::Full { max, .. }) => max,
            _ => 0,
        };
        let room = (self.limit as u64).saturating_add(spilled);
        TxnError::UndoTooLarge { limit: self.limit, room, own, error }
    }
}

impl UndoList {
    /// Returns the bytes of the spill file that are promised to it.
    pub(super) fn promised_bytes(&self) -> u64 {
        self.promised + self.full.iter().map(|full| full.promised).sum::<u64>()
    }

    /// Returns the bytes of its full chunks, in memory and spilled.
    pub(super) fn kept_bytes(&self) -> u64 {
        self.full.iter().map(|full| full.weight as u64).sum()
    }

    /// Gives back promised bytes.
    pub(super) fn break_promise(&self, promised: u64) {
        if let Some(room) = self.room.as_ref().filter(|_| promised > 0) {
            let before = room.promised.fetch_sub(promised, Ordering::Relaxed);
            debug_assert!(before >= promised, "it was promised before");
        }
    }
}
