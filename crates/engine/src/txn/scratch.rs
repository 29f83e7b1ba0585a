//! Transaction scratch: the lists and the lock owner that a transaction leaves to the next one of
//! its thread.
//!
//! A transaction of a few operations takes some microseconds, and allocating its lists and its lock
//! owner would be a good part of that. So each thread's slot keeps one scratch.

use std::sync::Arc;

use crate::btree::Finger;
use crate::lock::{LockOwner, Spinlock, SpinlockGuard};
use crate::txn::active::Active;
use crate::txn::savepoint::Rollbacks;

/// Bytes of a value's room that are kept.
const ROOM_KEPT: usize = 64 << 10;

/// Writes that are likely to stay together, each with a finger of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sequence {
    /// Those at the first entry.
    First,
    /// Those at the last one.
    Last,
    /// All others.
    Any,
}

impl Sequence {
    /// How many there are.
    pub(super) const ALL: usize = 3;

    /// That of one of the two ends.
    pub(super) fn of_end(first: bool) -> Sequence {
        if first { Sequence::First } else { Sequence::Last }
    }
}

/// Lists and owner of one transaction after another.
#[derive(Default)]
pub(super) struct TxnScratch {
    /// Its locks.
    pub(super) owner: Option<LockOwner>,
    /// Its entry in the transaction table, or that of one that is over.
    pub(super) active: Option<Arc<Active>>,
    /// Its rollbacks to savepoints.
    pub(super) rollbacks: Rollbacks,
    /// Room for a value that is being changed.
    pub(super) room: Vec<u8>,
    /// Where its sequences of writes were last.
    pub(super) fingers: [Finger; Sequence::ALL],
}

impl TxnScratch {
    /// Prepares it for the next transaction. Its locks are released already.
    pub(super) fn clear(&mut self) {
        self.rollbacks.clear(ROOM_KEPT / size_of::<usize>());
        self.fingers = Default::default();
        self.room.clear();
        self.room.shrink_to(ROOM_KEPT);
    }
}

/// The scratch of a thread, in cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct ScratchSlot(Spinlock<Option<TxnScratch>>);

impl ScratchSlot {
    /// Locks the slot; `None` if it is in use. A closure that panicked has left a scratch that is
    /// whole: its locks are released on the way out, and nothing else in it is of the call.
    #[inline]
    pub(super) fn try_lock(&self) -> Option<SpinlockGuard<'_, Option<TxnScratch>>> {
        self.0.try_lock()
    }
}
