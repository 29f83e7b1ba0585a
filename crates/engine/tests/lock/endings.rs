//! Waits that end without the lock: the store closes, or the waiting thread's own check ends them.

use std::sync::atomic::{AtomicU32, Ordering};

use millpond::internals::lock::LockMode::{S, X};
use millpond::internals::lock::{LockError, LockOwner, interrupt_waits_by};

use crate::lock::scene::{manager, waits};

#[test]
fn a_store_that_closes_ends_waits_for_locks_and_lets_none_begin() {
    let manager = manager();
    let mut holder = LockOwner::begin(&manager, 1);
    holder.lock_key(7, b"k", X).unwrap();
    holder.lock_tree(8, X).unwrap();
    let waiter = |id| LockOwner::begin(&manager, id);
    let asleep = [
        waits(&manager, waiter(2), |w| w.lock_key(7, b"k", S)),
        waits(&manager, waiter(3), |w| w.lock_tree(8, S)),
    ];
    manager.end_waits();
    for (mut owner, got) in asleep.map(|working| working.done()) {
        assert!(matches!(got, Err(LockError::Closed { .. })), "{got:?}");
        assert!(!got.unwrap_err().retriable());
        // What needs no wait is granted as ever.
        owner.lock_key(7, b"other", X).unwrap();
    }
    let late = waiter(4).lock_key(7, b"k", X);
    assert!(matches!(late, Err(LockError::Closed { tree }) if tree.id == 7));
}

static CHECKS: AtomicU32 = AtomicU32::new(0);

fn third_time() -> bool {
    CHECKS.fetch_add(1, Ordering::Relaxed) == 2
}

#[test]
fn a_threads_own_check_ends_its_waits_and_those_of_no_other_thread() {
    let manager = manager();
    let mut holder = LockOwner::begin(&manager, 1);
    holder.lock_key(7, b"k", X).unwrap();
    let patient = waits(&manager, LockOwner::begin(&manager, 2), |w| w.lock_key(7, b"k", S));
    let checked = waits(&manager, LockOwner::begin(&manager, 3), |w| {
        assert!(interrupt_waits_by(Some(third_time)).is_none());
        let got = w.lock_key(7, b"k", S);
        assert!(interrupt_waits_by(None).is_some());
        got
    });
    let (mut owner, got) = checked.done();
    assert!(matches!(got, Err(LockError::Interrupted { .. })), "{got:?}");
    assert_eq!(CHECKS.load(Ordering::Relaxed), 3);
    assert!(patient.is_waiting());
    holder.release_all();
    patient.done().1.unwrap();
    // The request left the queue.
    owner.lock_key(7, b"k", S).unwrap();
}
