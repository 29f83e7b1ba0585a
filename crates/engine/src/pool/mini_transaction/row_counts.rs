//! The number of entries of each tree, counted as they come and go.
//!
//! Every mini-transaction that adds entries to a tree, or removes some, states their number
//! ([`MiniTransaction::rows_changed`](crate::pool::MiniTransaction::rows_changed)). The number is
//! added here, together with the record if there is a log. Recovery therefore needs only the counts
//! as of one position of the log, which checkpoints have, and the records behind it. Moving entries
//! between pages changes no count.
//!
//! # Rules
//! 1. Threads add in slots of their own. One slot's count of a tree may be negative, as another
//!    slot may have added the entries that it removed: only the sum over all slots has a meaning.
//! 2. A record that changes a count is appended under the mutex of its thread's slot. A thread that
//!    holds all of them sees the counts as of the end of the log ([`RowCounts::at_rest`]).
//! 3. A count is changed before the latch of the page is released: a thread that has read a page
//!    finds the page's changes in the counts.
//! 4. Changes that transactions have not committed are *pending*, and so are those of a call that
//!    locks a tree as a whole. They become committed at once, before a lock is released
//!    ([`RowCounts::commit`]), so that a sum over all slots is the committed count at one moment.
//! 5. A count is not known if the store had no log when the tree was last changed. Readers then
//!    walk the tree, and the count is learned from them ([`RowCounts::learn`]).
//! 6. Mutexes are taken in the order of the slots, and that of `known` last. Under them, records
//!    are appended to the log, and the mutex of the page space is taken.

use std::array::from_fn;

use hashbrown::HashMap;
use millpond_base::sync::atomic::{AtomicU64, Ordering};
use millpond_base::sync::{Mutex, MutexGuard};

use crate::pool::sync::locked::locked;
use crate::stats::thread_slot::{SLOTS, thread_slot};

/// Changes of a tree by the threads of a slot.
#[derive(Clone, Copy, Default)]
struct Changed {
    /// Entries added less entries removed.
    rows: i64,
    /// The part of it that is not committed.
    pending: i64,
    /// Number of changes.
    changes: u64,
    /// `true` if the tree is locked as a whole: all changes are pending.
    is_whole: bool,
}

type Slot = HashMap<u32, Changed>;

#[repr(align(128))]
#[derive(Default)]
struct AlignedSlot(Mutex<Slot>);

/// A slot that is held: see rule 2.
pub struct HeldSlot<'c>(MutexGuard<'c, Slot>);

/// The number of entries of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowCount {
    /// Number of entries with uncommitted changes.
    pub all: u64,
    /// Number of entries without uncommitted changes.
    pub committed: u64,
}

/// The counts of all trees, by their owner ids.
pub struct RowCounts {
    slots: Box<[AlignedSlot]>,
    /// The slots that were ever used, a bit each.
    used: AtomicU64,
    /// Entries of each tree besides those in the slots.
    known: Mutex<HashMap<u32, i64>>,
}

impl Default for RowCounts {
    fn default() -> RowCounts {
        let slots = (0..SLOTS).map(|_| AlignedSlot::default()).collect();
        RowCounts { slots, used: AtomicU64::new(0), known: Mutex::default() }
    }
}

impl std::fmt::Debug for RowCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowCounts").finish_non_exhaustive()
    }
}

type Held<'c> = [Option<MutexGuard<'c, Slot>>; SLOTS];

/// Returns the sum of a tree's changes over the slots.
fn sum(held: &Held<'_>, owner: u32) -> Changed {
    let mut sum = Changed::default();
    for changed in held.iter().flatten().filter_map(|slot| slot.get(&owner)) {
        sum.rows += changed.rows;
        sum.pending += changed.pending;
        sum.changes += changed.changes;
    }
    sum
}

impl HeldSlot<'_> {
    /// Adds `rows` entries to the tree `owner`; they are pending if they `may_go` again, by the
    /// undo of a transaction.
    pub fn add(&mut self, owner: u32, rows: i64, may_go: bool) {
        let changed = self.0.entry(owner).or_default();
        changed.rows += rows;
        changed.changes += 1;
        if may_go || changed.is_whole {
            changed.pending += rows;
        }
    }
}

impl RowCounts {
    /// Holds the calling thread's slot.
    #[inline]
    pub fn hold(&self) -> HeldSlot<'_> {
        let at = thread_slot() % SLOTS;
        let slot = locked(&self.slots[at].0);
        let bit = 1 << at;
        if self.used.load(Ordering::Relaxed) & bit == 0 {
            self.used.fetch_or(bit, Ordering::SeqCst);
        }
        HeldSlot(slot)
    }

    /// Adds `rows` entries to the tree `owner`, for a change that is not logged.
    #[inline]
    pub(in crate::pool) fn add(&self, owner: u32, rows: i64, may_go: bool) {
        self.hold().add(owner, rows, may_go);
    }

    /// Holds all slots.
    fn hold_all(&self) -> Held<'_> {
        from_fn(|at| Some(locked(&self.slots[at].0)))
    }

    /// Holds the slots that were used. A thread that commits after another thread has committed
    /// finds the other thread's slot in use.
    fn hold_used(&self) -> Held<'_> {
        loop {
            let used = self.used.load(Ordering::SeqCst);
            let held = from_fn(|at| (used >> at & 1 == 1).then(|| locked(&self.slots[at].0)));
            if self.used.load(Ordering::SeqCst) == used {
                return held;
            }
        }
    }

    /// Records that the tree `owner` is new, and empty.
    pub fn begin(&self, owner: u32) {
        locked(&self.known).insert(owner, 0);
    }

    /// Forgets the tree `owner`, which is gone.
    pub(crate) fn forget(&self, owner: u32) {
        for slot in self.hold_all().iter_mut().flatten() {
            slot.remove(&owner);
        }
        locked(&self.known).remove(&owner);
    }

    /// Returns the number of entries of the tree `owner`, and a number that no other state of it
    /// has had; `None` if the count is not known.
    pub fn of(&self, owner: u32) -> Option<(RowCount, u64)> {
        let held = self.hold_used();
        let Changed { rows, pending, changes, .. } = sum(&held, owner);
        let all = locked(&self.known).get(&owner)? + rows;
        let count = |rows: i64| u64::try_from(rows).unwrap_or(0);
        Some((RowCount { all: count(all), committed: count(all - pending) }, changes))
    }

    /// Returns the number of the tree's present state.
    pub fn state(&self, owner: u32) -> u64 {
        sum(&self.hold_used(), owner).changes
    }

    /// Records that the tree `owner` has `rows` entries, if it is still in the state with the
    /// number `state`.
    pub fn learn(&self, owner: u32, rows: u64, state: u64) {
        let held = self.hold_used();
        let changed = sum(&held, owner);
        if changed.changes == state
            && let Ok(rows) = i64::try_from(rows)
        {
            locked(&self.known).insert(owner, rows - changed.rows);
        }
    }

    /// Commits the entries that a transaction added to trees, or removed.
    pub fn commit(&self, changed: &[(u32, i64)]) {
        if changed.iter().all(|(_, rows)| *rows == 0) {
            return;
        }
        let mut slot = self.hold();
        for (owner, rows) in changed {
            slot.0.entry(*owner).or_default().pending -= rows;
        }
    }

    /// Begins a change of the tree `owner` that commits as one, under a lock on the whole tree.
    pub(crate) fn begin_whole(&self, owner: u32) -> WholeChange<'_> {
        self.used.fetch_or(u64::MAX >> (u64::BITS as usize - SLOTS), Ordering::SeqCst);
        for slot in self.hold_all().iter_mut().flatten() {
            slot.entry(owner).or_default().is_whole = true;
        }
        WholeChange(self, owner)
    }

    /// Commits all changes: recovery has undone the others.
    pub(crate) fn settle(&self) {
        for slot in self.hold_all().iter_mut().flatten() {
            slot.values_mut().for_each(|changed| changed.pending = 0);
        }
    }

    /// Sets all counts, before anything is changed.
    pub(crate) fn set(&self, rows: impl IntoIterator<Item = (u32, u64)>) {
        let rows = rows.into_iter().filter_map(|(owner, n)| Some((owner, i64::try_from(n).ok()?)));
        locked(&self.known).extend(rows);
    }

    /// Forgets the counts of owners for which `is_tree` returns `false`.
    pub(crate) fn retain(&self, is_tree: impl Fn(u32) -> bool) {
        locked(&self.known).retain(|owner, _| is_tree(*owner));
    }

    /// Calls `look` while no count changes; returns its result, and the counts that are known.
    pub fn at_rest<R>(&self, look: impl FnOnce() -> R) -> (R, Vec<(u32, u64)>) {
        let held = self.hold_all();
        let looked = look();
        let known = locked(&self.known);
        let counts = known.iter().map(|(&owner, rows)| (owner, rows + sum(&held, owner).rows));
        let counts = counts.filter_map(|(owner, rows)| Some((owner, u64::try_from(rows).ok()?)));
        let mut counts: Vec<_> = counts.collect();
        counts.sort_unstable();
        (looked, counts)
    }
}

/// A change of a tree that is locked as a whole. Dropping it commits the entries that were added
/// and removed.
pub(crate) struct WholeChange<'c>(&'c RowCounts, u32);

impl Drop for WholeChange<'_> {
    fn drop(&mut self) {
        let WholeChange(counts, owner) = *self;
        for slot in counts.hold_all().iter_mut().flatten() {
            if let Some(changed) = slot.get_mut(&owner) {
                (changed.pending, changed.is_whole) = (0, false);
            }
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn of(counts: &RowCounts, owner: u32) -> Option<(u64, u64)> {
        counts.of(owner).map(|(count, _)| (count.all, count.committed))
    }

    #[test]
    fn what_is_pending_is_counted_when_it_has_committed() {
        let counts = RowCounts::default();
        counts.begin(3);
        counts.add(3, 5, false);
        counts.add(3, 2, true);
        counts.add(3, -1, true);
        assert_eq!(of(&counts, 3), Some((6, 5)));
        // By another thread, and so in another slot.
        std::thread::scope(|scope| scope.spawn(|| counts.commit(&[(3, 1)])).join().unwrap());
        assert_eq!(of(&counts, 3), Some((6, 6)));
        assert_eq!(counts.at_rest(|| 7), (7, vec![(3, 6)]));
        counts.forget(3);
        assert_eq!((of(&counts, 3), of(&counts, 4)), (None, None));
    }

    #[test]
    fn a_whole_change_is_committed_at_once() {
        let counts = RowCounts::default();
        counts.begin(3);
        counts.add(3, 5, false);
        let whole = counts.begin_whole(3);
        counts.add(3, -2, false);
        assert_eq!(of(&counts, 3), Some((3, 5)));
        drop(whole);
        assert_eq!(of(&counts, 3), Some((3, 3)));
        counts.add(3, -1, false);
        assert_eq!(of(&counts, 3), Some((2, 2)));
    }

    #[test]
    fn a_count_is_learned_only_of_the_state_that_was_counted() {
        let counts = RowCounts::default();
        counts.add(3, 1, false);
        let state = counts.state(3);
        counts.add(3, 1, false);
        counts.learn(3, 11, state);
        assert_eq!(of(&counts, 3), None);
        counts.learn(3, 12, counts.state(3));
        counts.add(3, -2, false);
        assert_eq!(of(&counts, 3), Some((10, 10)));
    }

    #[test]
    fn sums_are_those_of_one_moment() {
        const TURNS: u32 = 2_000;
        let counts = RowCounts::default();
        counts.begin(1);
        std::thread::scope(|scope| {
            let (there, taken) = std::sync::mpsc::sync_channel(4);
            let counts = &counts;
            scope.spawn(move || taken.iter().for_each(|()| counts.add(1, -1, false)));
            for _ in 0..TURNS {
                counts.add(1, 1, false);
                there.send(()).unwrap();
                // Whatever was taken had been added before.
                assert!(counts.at_rest(|| ()).1[0].1 <= 6);
                let held = counts.hold_used();
                assert!(sum(&held, 1).rows >= 0);
            }
            drop(there);
        });
        assert_eq!(of(&counts, 1), Some((0, 0)));
    }
}
