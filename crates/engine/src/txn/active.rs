//! Transactions that have written something and are not over yet.
//!
//! A checkpoint has to know of each of them the last record that lies before the checkpoint's own
//! place in the log, `begin`. A transaction appends its record first and notes its place here
//! afterwards; so whoever looks at the table waits for steps that were under way at `begin`:
//!
//! 1. A transaction enters the table before its first record.
//! 2. Its step counter is odd while it may append a record that is not noted yet.
//! 3. It is marked as over after the record that ends it, and within a step.
//!
//! A step that began after `begin` appends behind `begin`, where recovery reads the record itself.
//!
//! Steps are counted by the one thread that uses the transaction, so without an exchange of memory
//! contents: whoever has seen the log's tail behind a record has seen that its step had begun,
//! because the place of the record was taken, by a sequentially consistent addition to the tail,
//! after that.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use hashbrown::HashMap;
use millpond_base::Lsn;

use crate::io::simulated::planted::{planted, unless_planted};
use crate::pool::{PoolError, borrowed};
use crate::txn::undo_buffer::UndoBuffer;

/// A transaction under way.
pub struct Active {
    tx: u64,
    first: AtomicU64,
    last: AtomicU64,
    steps: AtomicU64,
    over: AtomicBool,
    /// Its own thread has this within each call that changes something.
    changes: Mutex<UndoBuffer>,
}

impl std::fmt::Debug for Active {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Active").field("tx", &self.tx).finish_non_exhaustive()
    }
}

impl Active {
    /// Its id.
    pub fn tx(&self) -> u64 {
        self.tx
    }

    /// A lower bound of its records.
    pub fn first(&self) -> Lsn {
        Lsn(self.first.load(Ordering::Acquire))
    }

    /// Start of its last record that was noted; 0: none.
    pub fn last(&self) -> Lsn {
        Lsn(self.last.load(Ordering::Acquire))
    }

    /// What it changed, for its own thread: others have this for moments.
    #[inline]
    pub(super) fn changes(&self) -> MutexGuard<'_, UndoBuffer> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it changed, for another thread. A call that the transaction is in is waited for.
    ///
    /// # Errors
    /// [`PoolError::Held`]: that call waits for a page that this thread lends.
    pub(super) fn changes_of_other(&self) -> Result<MutexGuard<'_, UndoBuffer>, PoolError> {
        if borrowed::pages_borrowed() == 0 {
            return Ok(self.changes());
        }
        borrowed::until(|| match self.changes.try_lock() {
            Ok(changes) => Some(changes),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        })
    }

    /// Begins a step, which may append a record.
    #[inline]
    pub(super) fn begin_step(&self) -> Step<'_> {
        Step::begin(self)
    }

    /// Does `step`, which may append a record and answers where.
    pub(super) fn step<R>(&self, step: impl FnOnce() -> (R, Lsn)) -> R {
        let under_way = self.begin_step();
        let (result, at) = step();
        under_way.end(at);
        result
    }

    /// Waits until what was under way when this was called is noted.
    fn settle(&self) {
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

/// A step under way; over when it is dropped, also by a panic.
pub(super) struct Step<'a>(&'a Active);

impl<'a> Step<'a> {
    /// Ends it: its record, if there was one, is at `at`.
    #[inline]
    pub(super) fn end(self, at: Lsn) {
        planted!(StepNotAwaited, dawdle);
        if at != Lsn(0) {
            self.0.last.store(at.0, Ordering::Release);
        }
    }

    fn begin(active: &'a Active) -> Step<'a> {
        add_one(&active.steps);
        Step(active)
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        add_one(&self.0.steps);
    }
}

/// Adds one to what no other thread adds to.
#[inline]
fn add_one(steps: &AtomicU64) {
    steps.store(steps.load(Ordering::Relaxed) + 1, Ordering::Release);
}

/// All of them.
#[derive(Debug, Default)]
pub struct ActiveTable {
    next: AtomicU64,
    active: Mutex<HashMap<u64, Arc<Active>>>,
}

impl ActiveTable {
    /// A table whose first transaction has the id `next`, at least 1.
    pub fn new(next: u64) -> ActiveTable {
        ActiveTable { next: AtomicU64::new(next.max(1)), active: Mutex::default() }
    }

    /// An id that no transaction has had.
    pub fn new_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The id that the next transaction gets.
    pub fn next_id(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    fn map(&self) -> MutexGuard<'_, HashMap<u64, Arc<Active>>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The transaction `tx`, whose last record is `last`, writes from `first` on.
    pub fn enter(&self, tx: u64, first: Lsn, last: Lsn) -> Arc<Active> {
        self.enter_again(None, tx, first, last)
    }

    /// The same, with the memory of an entry that has left, unless somebody still looks at it.
    pub(super) fn enter_again(
        &self,
        spare: Option<Arc<Active>>,
        tx: u64,
        first: Lsn,
        last: Lsn,
    ) -> Arc<Active> {
        let fresh = |changes| Active {
            tx,
            first: AtomicU64::new(first.0),
            last: AtomicU64::new(last.0),
            steps: AtomicU64::new(0),
            over: AtomicBool::new(false),
            changes,
        };
        let active = match spare {
            Some(mut spare) => match Arc::get_mut(&mut spare) {
                Some(place) => {
                    let changes = std::mem::take(&mut place.changes);
                    *place = fresh(changes);
                    place.changes().clear();
                    spare
                }
                None => Arc::new(fresh(Mutex::default())),
            },
            None => Arc::new(fresh(Mutex::default())),
        };
        self.map().insert(tx, active.clone());
        active
    }

    /// It is over: its last record is in the log. Call it within a step.
    pub(super) fn leave(&self, active: &Active) {
        active.over.store(true, Ordering::Release);
        self.map().remove(&active.tx);
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Arc<Active>> {
        self.map().values().cloned().collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.map().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Those that are under way, with their last records as of a moment after the call began.
    pub fn settled(&self) -> Vec<(u64, Lsn)> {
        let all = self.all();
        unless_planted!(StepNotAwaited, all.iter().for_each(|active| active.settle()));
        let under_way = all.iter().filter(|active| !active.over.load(Ordering::Acquire));
        under_way.map(|active| (active.tx, active.last())).collect()
    }

    /// Where the oldest of them began; `None` if there is none.
    pub fn oldest(&self) -> Option<Lsn> {
        self.map().values().map(|active| active.first()).min()
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
        let asker = std::thread::spawn(move || asking.settled());
        go.send(()).unwrap();
        writer.join().unwrap();
        assert_eq!(asker.join().unwrap(), [(7, Lsn(99))]);
        assert_eq!((table.oldest(), table.next_id()), (Some(Lsn(50)), 8));
        active.step(|| (table.leave(&active), Lsn(0)));
        assert!(table.is_empty() && table.settled().is_empty() && table.oldest().is_none());
    }

    #[test]
    fn a_transaction_that_ends_meanwhile_is_not_told_of() {
        let table = ActiveTable::new(1);
        let active = table.enter(table.new_id(), Lsn(1), Lsn(3));
        std::thread::scope(|scope| {
            let ending = scope.spawn(|| {
                active.step(|| {
                    std::thread::yield_now();
                    (table.leave(&active), Lsn(5))
                });
            });
            let told = table.settled();
            assert!(told.is_empty() || told[0].1 == Lsn(3), "{told:?}");
            ending.join().unwrap();
        });
        assert!(table.settled().is_empty());
    }
}
