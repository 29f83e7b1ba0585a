//! Transaction scratch: the lists and the lock owner that a transaction leaves to its thread's next
//! one.
//!
//! A transaction of a few operations takes some microseconds. Allocating its lists and its lock
//! owner would be a good part of that. So each thread's slot keeps one scratch.

use std::sync::Arc;

use crate::btree::Finger;
use crate::lock::{LockOwner, Spinlock, SpinlockGuard};
use crate::txn::active::Active;

/// Bytes of a value's room that are kept for the next transaction.
const ROOM_KEPT: usize = 64 << 10;

/// A sequence of writes that probably stay together; each has its own finger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sequence {
    /// Writes at the first entry.
    First,
    /// Writes at the last entry.
    Last,
    /// All other writes.
    Any,
}

impl Sequence {
    /// Number of sequences.
    pub(super) const ALL: usize = 3;

    /// Returns the sequence of one of the two ends.
    pub(super) fn of_end(first: bool) -> Sequence {
        if first { Sequence::First } else { Sequence::Last }
    }
}

/// The rollbacks of a transaction to savepoints.
#[derive(Default)]
pub(super) struct Rollbacks {
    /// Number of rollbacks.
    count: u64,
    /// Number of a rollback, and the number of changes that it left. A rollback that left no more
    /// than an earlier one replaces it, so both numbers grow.
    lowest: Vec<(u64, usize)>,
}

impl Rollbacks {
    /// Returns the number of rollbacks.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Adds a rollback that left `changes`.
    pub(super) fn push(&mut self, changes: usize) {
        while self.lowest.pop_if(|(_, left)| *left >= changes).is_some() {}
        self.lowest.push((self.count, changes));
        self.count += 1;
    }

    /// Returns the fewest changes that a rollback since number `from` left.
    pub(super) fn lowest_since(&self, from: u64) -> Option<usize> {
        let first = self.lowest.partition_point(|(number, _)| *number < from);
        self.lowest.get(first).map(|(_, changes)| *changes)
    }

    /// Clears the list, and frees memory beyond `most` elements.
    fn clear(&mut self, most: usize) {
        self.count = 0;
        self.lowest.clear();
        self.lowest.shrink_to(most);
    }
}

/// Lists and owner of successive transactions.
#[derive(Default)]
pub(super) struct TxnScratch {
    /// Locks of the transaction.
    pub(super) owner: Option<LockOwner>,
    /// Entry in the transaction table, of this transaction or of an earlier one.
    pub(super) active: Option<Arc<Active>>,
    /// Rollbacks of the transaction to savepoints.
    pub(super) rollbacks: Rollbacks,
    /// Room for a value that is being changed.
    pub(super) room: Vec<u8>,
    /// Last leaf of each sequence of writes.
    pub(super) fingers: [Finger; Sequence::ALL],
}

impl TxnScratch {
    /// Prepares it for the next transaction. Its locks must be released already.
    pub(super) fn clear(&mut self) {
        self.rollbacks.clear(ROOM_KEPT / size_of::<usize>());
        self.fingers = Default::default();
        self.room.clear();
        self.room.shrink_to(ROOM_KEPT);
    }
}

/// The scratch of a thread, in its own cache lines.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct ScratchSlot(Spinlock<Option<TxnScratch>>);

impl ScratchSlot {
    /// Locks the slot; `None` if it is in use. After a panic of a closure the scratch is still
    /// sound: its locks were released on the way out, and nothing else in it belongs to the call.
    #[inline]
    pub(super) fn try_lock(&self) -> Option<SpinlockGuard<'_, Option<TxnScratch>>> {
        self.0.try_lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each rollback went through all earlier ones.
    #[test]
    fn rollbacks_to_one_savepoint_are_remembered_as_one() {
        let mut rollbacks = Rollbacks::default();
        for _ in 0..100_000 {
            rollbacks.push(3);
        }
        assert_eq!((rollbacks.count, rollbacks.lowest.len()), (100_000, 1));
        assert_eq!(rollbacks.lowest_since(99_999), Some(3));
        assert_eq!(rollbacks.lowest_since(100_000), None);
    }

    #[test]
    fn the_fewest_changes_that_rollbacks_left_are_those_of_a_list_of_all_of_them() {
        let mut random = fastrand::Rng::with_seed(11);
        let (mut rollbacks, mut all) = (Rollbacks::default(), Vec::new());
        for _ in 0..300 {
            let changes = random.usize(..40);
            rollbacks.push(changes);
            all.push(changes);
            for from in 0..=all.len() {
                let lowest = all[from..].iter().min().copied();
                assert_eq!(rollbacks.lowest_since(from as u64), lowest);
            }
        }
    }
}
