//! What a transaction works with, and leaves to the next one of its thread.
//!
//! A transaction of a few operations takes some microseconds, and making its lists and its locks'
//! owner anew would be a good part of that. So the threads' slots keep one kit each.

use std::sync::Arc;

use crate::lock::LockOwner;
use crate::txn::active::Active;

/// Bytes of a value's room that are kept.
const ROOM_KEPT: usize = 64 << 10;

/// Lists and owner of one transaction after another.
#[derive(Default)]
pub(super) struct TxnScratch {
    /// Its locks.
    pub(super) owner: Option<LockOwner>,
    /// Its entry in the table of those under way, or that of one that is over.
    pub(super) active: Option<Arc<Active>>,
    /// Lengths of the undo list that it was rolled back to.
    pub(super) rollbacks: Vec<usize>,
    /// Room for a value that is being changed.
    pub(super) room: Vec<u8>,
}

impl TxnScratch {
    /// As the next transaction wants it. Its locks are given back already.
    pub(super) fn clear(&mut self) {
        self.rollbacks.clear();
        self.rollbacks.shrink_to(ROOM_KEPT / size_of::<usize>());
        self.room.clear();
        self.room.shrink_to(ROOM_KEPT);
    }
}
