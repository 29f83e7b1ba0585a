//! The transaction table: transactions that have written something and are not over yet.
//!
//! A checkpoint records, for each of them, its last LSN before the checkpoint's own LSN, `begin`. A
//! transaction appends its record first and stores the LSN here afterwards. So a reader of the
//! table waits for steps that were in progress at `begin`:
//!
//! 1. A transaction enters the table before its first record.
//! 2. Its step counter is odd while it may append a record whose LSN is not stored yet.
//! 3. It is marked as over after the record that ends it, and within a step.
//!
//! A step that began after `begin` appends behind `begin`, where recovery reads the record itself.
//!
//! The table has parts, each with a mutex, since every transaction that writes enters and leaves
//! it. Successive transactions of a thread use the same part, as long as the thread has ids of one
//! draw. A reader of the table goes through one part after the other. It sees every transaction
//! that is in the table throughout. The first record of a transaction that enters in the meantime,
//! seen or not, is behind the end of the log at the beginning.
//!
//! Only the thread that uses the transaction counts its steps, so it needs no atomic
//! read-modify-write. A record's LSN is taken after its step began, by a sequentially consistent
//! addition to the log's tail. A thread that has seen the tail behind the record has therefore seen
//! that its step had begun.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use hashbrown::HashMap;
use millpond_base::Lsn;
use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::Mutex;

use crate::lock::{Spinlock, SpinlockGuard};
use crate::pool::{PoolError, borrowed};
use crate::stats::thread_slot::{OWNED, thread_slot};
use crate::txn::undo_buffer::UndoBuffer;

/// An active transaction: an entry of the table.
pub struct Active {
    tx: u64,
    first: AtomicU64,
    last: AtomicU64,
    steps: AtomicU64,
    over: AtomicBool,
    /// Locked by its own thread in each call that changes something, released by a plain store.
    undo: Spinlock<UndoBuffer>,
}

impl std::fmt::Debug for Active {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Active").field("tx", &self.tx).finish_non_exhaustive()
    }
}

impl Active {
    /// Returns the transaction id.
    pub fn tx(&self) -> u64 {
        self.tx
    }

    /// Returns a lower bound of the LSNs of its records.
    pub fn first(&self) -> Lsn {
        Lsn(self.first.load(Ordering::Acquire))
    }

    /// Returns the LSN of its last record, or 0 if it has none.
    pub fn last(&self) -> Lsn {
        Lsn(self.last.load(Ordering::Acquire))
    }

    /// Locks its undo buffer for its own thread; other threads hold it only briefly.
    #[inline]
    pub(super) fn undo(&self) -> SpinlockGuard<'_, UndoBuffer> {
        self.undo.lock()
    }

    /// Locks its undo buffer for another thread, which waits for a call of the transaction in
    /// progress.
    ///
    /// # Errors
    /// [`PoolError::Held`]: that call waits for a page that this thread lends.
    pub(super) fn undo_of_other(&self) -> Result<SpinlockGuard<'_, UndoBuffer>, PoolError> {
        if borrowed::pages_borrowed() == 0 {
            return Ok(self.undo());
        }
        borrowed::until(|| self.undo.try_lock())
    }

    /// Begins a step, which may append a record.
    #[inline]
    pub(super) fn begin_step(&self) -> Step<'_> {
        Step::begin(self)
    }

    /// Runs `step`, which may append a record and returns its LSN.
    pub(super) fn step<R>(&self, step: impl FnOnce() -> (R, Lsn)) -> R {
        let under_way = self.begin_step();
        let (result, at) = step();
        under_way.end(at);
        result
    }

    /// Waits until a step in progress has stored its LSN.
    fn await_step(&self) {
        let seen = self.steps.load(Ordering::SeqCst);
        let is_same = || self.steps.load(Ordering::SeqCst) == seen;
        let mut round = 0u32;
        while seen % 2 == 1 && is_same() && !self.over.load(Ordering::Acquire) {
            round += 1;
            if round < 100 {
                std::thread::yield_now();
            } else {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    }
}

/// A step; it ends when it is dropped, also by a panic.
pub(super) struct Step<'a>(&'a Active);

impl<'a> Step<'a> {
    /// Ends the step. If it appended a record, `at` is the record's LSN.
    #[inline]
    pub(super) fn end(self, at: Lsn) {
        if at != Lsn(0) {
            debug_assert!(at > self.0.last(), "the LSNs of a transaction's records grow");
            debug_assert!(at >= self.0.first(), "it entered before its first record (rule 1)");
            self.0.last.store(at.0, Ordering::Release);
        }
    }

    fn begin(active: &'a Active) -> Step<'a> {
        debug_assert_eq!(active.steps.load(Ordering::Relaxed) % 2, 0, "steps do not nest");
        add_one(&active.steps);
        Step(active)
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        add_one(&self.0.steps);
    }
}

/// Makes the record at `at` the last one of a transaction; 0 if nothing was logged.
#[inline]
pub(super) fn add_record(last: &mut Lsn, at: Lsn) {
    if at != Lsn(0) {
        assert!(at > *last, "the LSNs of a transaction's records grow");
        *last = at;
    }
}

/// Adds one to a counter that no other thread adds to.
#[inline]
fn add_one(steps: &AtomicU64) {
    steps.store(steps.load(Ordering::Relaxed) + 1, Ordering::Release);
}

/// Ids that a thread draws at once, so that it seldom writes the line that all threads share.
const IDS: u64 = 16;

/// Ids that the threads of a slot have drawn and not used.
#[repr(align(128))]
#[derive(Debug, Default)]
struct DrawnIds {
    next: std::sync::atomic::AtomicU64,
    end: std::sync::atomic::AtomicU64,
}

/// The transaction table.
#[derive(Debug)]
pub struct ActiveTable {
    next: AtomicU64,
    /// Drawn ids by the slot of the thread.
    drawn: Box<[DrawnIds]>,
    parts: Box<[Part]>,
}

/// Number of parts of the table; a power of two.
const PARTS: u64 = 32;

type Transactions = HashMap<u64, Arc<Active>>;

#[derive(Debug, Default)]
#[repr(align(128))]
struct Part(Mutex<Transactions>);

impl Part {
    fn lock(&self) -> MutexGuard<'_, Transactions> {
        self.0.lock().past_poison()
    }
}

impl ActiveTable {
    /// Returns a table whose first transaction has the id `next`, at least 1.
    pub fn new(next: u64) -> ActiveTable {
        let drawn = (0..OWNED).map(|_| DrawnIds::default()).collect();
        let parts = (0..PARTS).map(|_| Part::default()).collect();
        ActiveTable { next: AtomicU64::new(next.max(1)), drawn, parts }
    }

    /// Draws an id that no transaction has had. A thread's ids grow; ids of different threads only
    /// roughly show which transaction is older.
    #[inline]
    pub fn new_id(&self) -> u64 {
        // A slot that threads share has no drawn ids.
        let Some(drawn) = self.drawn.get(thread_slot()) else {
            return self.next.fetch_add(1, Ordering::Relaxed);
        };
        // Only the slot's owner reads and writes it.
        let mut id = drawn.next.load(Ordering::Relaxed);
        if id == drawn.end.load(Ordering::Relaxed) {
            id = self.next.fetch_add(IDS, Ordering::Relaxed);
            drawn.end.store(id + IDS, Ordering::Relaxed);
        }
        drawn.next.store(id + 1, Ordering::Relaxed);
        id
    }

    /// Returns an id that is larger than any that was drawn.
    pub fn next_id(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Locks the part with transaction `tx`.
    fn part(&self, tx: u64) -> MutexGuard<'_, Transactions> {
        self.parts[(tx / IDS % PARTS) as usize].lock()
    }

    /// Locks all parts, one after the other.
    fn each_part(&self) -> impl Iterator<Item = MutexGuard<'_, Transactions>> {
        self.parts.iter().map(Part::lock)
    }

    /// Enters transaction `tx`, whose last record is `last`. None of its records is before `first`.
    pub fn enter(&self, tx: u64, first: Lsn, last: Lsn) -> Arc<Active> {
        self.enter_again(None, tx, first, last)
    }

    /// Enters transaction `tx`. Reuses the memory of `spare`, an entry that has left, unless
    /// another thread still reads it.
    pub(super) fn enter_again(
        &self,
        spare: Option<Arc<Active>>,
        tx: u64,
        first: Lsn,
        last: Lsn,
    ) -> Arc<Active> {
        assert!(last == Lsn(0) || first <= last, "{first:?} bounds {last:?}");
        let fresh = |undo| Active {
            tx,
            first: AtomicU64::new(first.0),
            last: AtomicU64::new(last.0),
            steps: AtomicU64::new(0),
            over: AtomicBool::new(false),
            undo,
        };
        let active = match spare {
            Some(mut spare) => match Arc::get_mut(&mut spare) {
                Some(reused) => {
                    let undo = std::mem::take(&mut reused.undo);
                    *reused = fresh(undo);
                    reused.undo().clear();
                    spare
                }
                None => Arc::new(fresh(Spinlock::default())),
            },
            None => Arc::new(fresh(Spinlock::default())),
        };
        let other = self.part(tx).insert(tx, active.clone());
        assert!(other.is_none(), "transaction {tx} is in the table already");
        active
    }

    /// Removes a transaction that is over: its last record is in the log. Must be called within a
    /// step (rule 3).
    pub(super) fn leave(&self, active: &Active) {
        debug_assert_eq!(active.steps.load(Ordering::Relaxed) % 2, 1, "within a step (rule 3)");
        active.over.store(true, Ordering::Release);
        let left = self.part(active.tx).remove(&active.tx);
        debug_assert!(left.is_some(), "transaction {} is not in the table", active.tx);
    }

    /// Returns all entries.
    pub(super) fn all(&self) -> Vec<Arc<Active>> {
        self.each_part().flat_map(|part| part.values().cloned().collect::<Vec<_>>()).collect()
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.each_part().map(|part| part.len()).sum()
    }

    /// Returns `true` if the table is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the active transactions with their last LSNs, at a moment after the call began.
    pub fn last_records(&self) -> Vec<(u64, Lsn)> {
        let all = self.all();
        all.iter().for_each(|active| active.await_step());
        let active = all.iter().filter(|active| !active.over.load(Ordering::Acquire));
        active.map(|active| (active.tx, active.last())).collect()
    }

    /// Returns the position of the oldest active transaction's first record, or `None` if there is
    /// none.
    pub fn oldest(&self) -> Option<Lsn> {
        let first =
            |part: MutexGuard<'_, Transactions>| part.values().map(|active| active.first()).min();
        self.each_part().filter_map(first).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_is_under_way_is_waited_for() {
        let table = Arc::new(ActiveTable::new(7));
        let tx = table.new_id();
        let active = table.enter(tx, Lsn(50), Lsn(0));
        let (enter, entered) = std::sync::mpsc::channel();
        let (go, wait) = std::sync::mpsc::channel();
        let theirs = active.clone();
        let writer = std::thread::spawn(move || {
            theirs.step(|| {
                enter.send(()).unwrap();
                wait.recv().unwrap();
                ((), Lsn(99))
            });
        });
        entered.recv().unwrap();
        let asking = table.clone();
        let asker = std::thread::spawn(move || asking.last_records());
        go.send(()).unwrap();
        writer.join().unwrap();
        assert_eq!(asker.join().unwrap(), [(7, Lsn(99))]);
        assert_eq!(table.oldest(), Some(Lsn(50)));
        assert!(table.next_id() > tx);
        active.step(|| (table.leave(&active), Lsn(0)));
        assert!(table.is_empty() && table.last_records().is_empty() && table.oldest().is_none());
    }

    #[test]
    fn a_transaction_that_ends_meanwhile_is_not_reported() {
        let table = ActiveTable::new(1);
        let active = table.enter(table.new_id(), Lsn(1), Lsn(3));
        std::thread::scope(|scope| {
            let ending = scope.spawn(|| {
                active.step(|| {
                    std::thread::yield_now();
                    (table.leave(&active), Lsn(5))
                });
            });
            let reported = table.last_records();
            assert!(reported.is_empty() || reported[0].1 == Lsn(3), "{reported:?}");
            ending.join().unwrap();
        });
        assert!(table.last_records().is_empty());
    }
}
