//! The calling thread's slot in per-thread tables.
//!
//! Statistics are written at every page reference, so the writes of two threads must never meet in
//! a cache line. A thread therefore gets its own slot the first time that it asks, the same one in
//! every table of the process, and passes it on when it ends. There are [`OWNED`] of them. If all
//! are taken, a thread uses [`SHARED`], where additions must be atomic.
//!
//! Invariants:
//! 1. At most one living thread has a given owned slot. So the owner may add with a plain load and
//!    a plain store: no other thread writes there.
//! 2. The next owner sees all writes of the last one: a slot is released and acquired with the
//!    matching orderings on one word.
//! 3. A thread whose thread-locals are being destroyed uses the shared slot: its own may have a new
//!    owner already.
//!
//! The atomics are std's also under a model checker: nothing that is checked depends on them. All
//! tasks of a schedule that shuttle draws share one thread of the system; there a slot belongs to a
//! task.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Slots with one owner each. Few under shuttle, since each look at one is a step.
pub const OWNED: usize = if cfg!(feature = "shuttle") { 7 } else { 63 };
/// The slot that all other threads share.
pub const SHARED: usize = OWNED;
/// Slots of a table: a power of two, so that masking an index keeps it in range.
pub const SLOTS: usize = OWNED + 1;

/// The thread has not asked for its slot yet.
const UNKNOWN: usize = usize::MAX;

/// Bit s is set while a thread owns slot s; the shared slot's bit is always set.
static TAKEN: AtomicU64 = AtomicU64::new(1 << SHARED);

thread_local! {
    /// Read at every count, hence without a destructor and the check that comes with one.
    static SLOT: Cell<usize> = const { Cell::new(UNKNOWN) };
    static LEASE: Lease = const { Lease(Cell::new(SHARED)) };
}

/// Passes the slot on when the thread ends.
struct Lease(Cell<usize>);

impl Drop for Lease {
    fn drop(&mut self) {
        let slot = self.0.get();
        SLOT.set(SHARED);
        if slot < OWNED {
            TAKEN.fetch_and(!(1 << slot), Ordering::Release);
        }
    }
}

/// Returns the calling thread's slot, below [`SLOTS`]; the thread owns it if it is below [`OWNED`].
#[inline(always)]
#[cfg(not(feature = "shuttle"))]
pub fn thread_slot() -> usize {
    let slot = SLOT.get();
    if slot < SLOTS { slot } else { assign() }
}

/// Returns the running task's slot; late tasks share one.
#[cfg(feature = "shuttle")]
pub fn thread_slot() -> usize {
    shuttle::current::get_current_task().map_or(SHARED, |task| usize::from(task).min(SHARED))
}

#[cold]
#[cfg_attr(feature = "shuttle", expect(dead_code))]
fn assign() -> usize {
    let slot = LEASE.try_with(|lease| {
        let slot = take();
        lease.0.set(slot);
        slot
    });
    let slot = slot.unwrap_or(SHARED);
    SLOT.set(slot);
    slot
}

fn take() -> usize {
    let mut taken = TAKEN.load(Ordering::Relaxed);
    while taken != u64::MAX {
        let slot = (!taken).trailing_zeros() as usize;
        let want = taken | 1 << slot;
        match TAKEN.compare_exchange_weak(taken, want, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return slot,
            Err(now) => taken = now,
        }
    }
    SHARED
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Barrier;
    use std::thread;

    /// Returns the slots of `threads` threads that live at the same time.
    fn slots_of(threads: usize) -> Vec<usize> {
        let barrier = Barrier::new(threads);
        thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|_| {
                    scope.spawn(|| {
                        let slot = thread_slot();
                        barrier.wait();
                        assert_eq!(thread_slot(), slot);
                        slot
                    })
                })
                .collect();
            workers.into_iter().map(|w| w.join().unwrap()).collect()
        })
    }

    #[test]
    fn threads_that_live_together_own_different_slots_and_the_surplus_shares_one() {
        let slots = slots_of(OWNED + 20);
        let owned: Vec<usize> = slots.iter().copied().filter(|s| *s < OWNED).collect();
        assert_eq!(owned.iter().collect::<HashSet<_>>().len(), owned.len());
        assert!(slots.iter().filter(|s| **s == SHARED).count() >= 20);
    }

    #[test]
    fn slots_of_threads_that_ended_are_used_again() {
        let mut used = 0;
        for _ in 0..200 {
            used += usize::from(thread::spawn(thread_slot).join().unwrap() < OWNED);
        }
        // The other test may hold all slots for a moment.
        assert!(used > OWNED, "{used}");
    }

    #[test]
    fn a_thread_that_is_being_torn_down_uses_the_shared_slot() {
        struct Late;
        impl Drop for Late {
            fn drop(&mut self) {
                assert!(thread_slot() < SLOTS);
            }
        }
        thread_local!(static LATE: Late = const { Late });
        // Registered before the lease, hence destroyed after or before it: either must work.
        thread::spawn(|| {
            LATE.with(|_| ());
            thread_slot()
        })
        .join()
        .unwrap();
        thread::spawn(|| {
            thread_slot();
            LATE.with(|_| ());
        })
        .join()
        .unwrap();
    }
}
