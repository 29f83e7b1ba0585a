//! Writer quiescence: tracks the threads that are within a writing call outside transactions. The
//! thread that begins the first snapshot waits for them ([`ActiveWriters::quiesce`]), since they
//! may not know of the snapshot yet.
//!
//! # Rules
//! 1. A call is announced before it checks for snapshots. The thread that begins the first snapshot
//!    publishes it before it checks for calls. One of the two sees the other.
//! 2. A thread with its own slot counts there: the depth of its nested calls, and the number of its
//!    completed outermost calls, so that `quiesce` does not wait for a later call.
//! 3. The other threads share two counters. They use one of them, and the other from the next
//!    `quiesce` on. So the first one drains, however many calls begin.
use std::sync::atomic::{AtomicU64, Ordering};

use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::Mutex;

use crate::pool::{PoolError, borrowed};
use crate::stats::thread_slot::{OWNED, thread_slot};

/// Mask of the depth of nested calls; the bits above count calls.
const DEPTH: u64 = (1 << 16) - 1;

/// A counter in its own cache line.
#[repr(align(64))]
#[derive(Default)]
struct Slot(AtomicU64);

/// Calls in progress, by thread.
pub(super) struct ActiveWriters {
    slots: Box<[Slot]>,
    /// Counters of the threads without their own slot.
    late: [AtomicU64; 2],
    phase: AtomicU64,
    quiescing: Mutex<()>,
}

/// A call, which ends when this is dropped.
pub(super) struct Call<'c> {
    count: &'c AtomicU64,
    is_owned: bool,
}

impl ActiveWriters {
    pub(super) fn new() -> ActiveWriters {
        let slots = (0..OWNED).map(|_| Slot::default()).collect();
        let (late, phase) = (Default::default(), AtomicU64::new(0));
        ActiveWriters { slots, late, phase, quiescing: Mutex::default() }
    }

    /// Announces a call.
    #[inline]
    pub(super) fn enter(&self) -> Call<'_> {
        if let Some(Slot(count)) = self.slots.get(thread_slot()) {
            // No other thread writes there.
            let depth = count.load(Ordering::Relaxed) & DEPTH;
            debug_assert!(depth < DEPTH, "calls nest too deeply");
            count.store(count.load(Ordering::Relaxed) + 1, Ordering::SeqCst);
            return Call { count, is_owned: true };
        }
        let [even, odd] = &self.late;
        let count = if self.phase.load(Ordering::SeqCst).is_multiple_of(2) { even } else { odd };
        count.fetch_add(1, Ordering::SeqCst);
        Call { count, is_owned: false }
    }

    /// Waits until the calls in progress have ended.
    ///
    /// # Errors
    /// [`PoolError::Held`]: one of them waits for a page that this thread lends.
    pub(super) fn quiesce(&self) -> Result<(), PoolError> {
        let _quiescing = self.quiescing.lock().past_poison();
        for Slot(count) in &self.slots {
            let seen = count.load(Ordering::SeqCst);
            let over = || {
                let now = count.load(Ordering::SeqCst);
                now & DEPTH == 0 || now / (DEPTH + 1) != seen / (DEPTH + 1)
            };
            if seen & DEPTH > 0 {
                borrowed::until(|| over().then_some(()))?;
            }
        }
        // A call that chose its counter earlier, and counts there only now, sees the epoch.
        for _ in 0..2 {
            let [even, odd] = &self.late;
            let phase = self.phase.fetch_add(1, Ordering::SeqCst);
            let count = if phase.is_multiple_of(2) { even } else { odd };
            borrowed::until(|| (count.load(Ordering::SeqCst) == 0).then_some(()))?;
        }
        Ok(())
    }
}

impl Drop for Call<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_owned {
            let before = self.count.fetch_sub(1, Ordering::SeqCst);
            debug_assert!(before > 0, "a call that was announced");
            return;
        }
        let count = self.count.load(Ordering::Relaxed);
        debug_assert!(count & DEPTH > 0, "a call that was announced");
        let is_last = count & DEPTH == 1;
        let after = if is_last { (count - 1).wrapping_add(DEPTH + 1) } else { count - 1 };
        self.count.store(after, Ordering::Release);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn quiescence_waits_for_the_calls_under_way_and_for_no_other() {
        let calls = Arc::new(ActiveWriters::new());
        calls.quiesce().unwrap();
        let (entered, enter) = std::sync::mpsc::channel();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let is_over = Arc::new(AtomicBool::new(false));
        let (theirs, over) = (calls.clone(), is_over.clone());
        let caller = std::thread::spawn(move || {
            let outer = theirs.enter();
            let inner = theirs.enter();
            drop(inner);
            entered.send(()).unwrap();
            wait.recv().unwrap();
            over.store(true, Ordering::SeqCst);
            drop(outer);
            // From now on there is always a call in progress.
            let mut last = theirs.enter();
            while Arc::strong_count(&over) > 1 {
                drop(last);
                last = theirs.enter();
            }
            drop(last);
        });
        enter.recv().unwrap();
        let quiescer = {
            let (calls, is_over) = (calls.clone(), is_over.clone());
            std::thread::spawn(move || {
                calls.quiesce().unwrap();
                assert!(is_over.load(Ordering::SeqCst));
            })
        };
        go.send(()).unwrap();
        quiescer.join().unwrap();
        calls.quiesce().unwrap();
        drop(is_over);
        caller.join().unwrap();
        assert!(calls.slots.iter().all(|slot| slot.0.load(Ordering::SeqCst) & DEPTH == 0));
    }

    #[test]
    fn late_threads_are_waited_for_once() {
        let calls = ActiveWriters::new();
        calls.late[0].fetch_add(1, Ordering::SeqCst);
        std::thread::scope(|scope| {
            let quiescer = scope.spawn(|| calls.quiesce());
            while calls.phase.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            // A call that begins now counts in the other one.
            assert_eq!(calls.phase.load(Ordering::SeqCst) % 2, 1);
            assert!(!quiescer.is_finished());
            calls.late[0].fetch_sub(1, Ordering::SeqCst);
            quiescer.join().unwrap().unwrap();
        });
    }
}
