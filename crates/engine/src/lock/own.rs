//! Which transactions are the calling thread's own: it cannot wait for them, because nobody but
//! itself goes on with them.
//!
//! A transaction is its thread's from the first lock that it asks for there until it ends, asks for
//! a lock on another thread, or is let go of
//! ([`LockOwner::leave_thread`](super::LockOwner::leave_thread)).
//! Each owner of a transaction has a *badge* that says so, and each thread a list of the badges
//! that it was given. A badge whose transaction went to another thread, or is over, says that, too,
//! so the list may be outdated; it is looked through only by a thread that is about to wait.
//!
//! The atomics are std's also under a model checker, where tasks take the place of threads: nothing
//! is decided by a badge of another thread but which of those who wait in a circle gives way.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Says whose a transaction is.
pub(super) struct Badge {
    /// The lock manager, by its address.
    manager: usize,
    /// The transaction; 0: none.
    transaction: AtomicU64,
    /// The thread that it is in.
    thread: AtomicU64,
}

thread_local! {
    static BADGES: RefCell<Vec<Arc<Badge>>> = const { RefCell::new(Vec::new()) };
}

#[cfg(not(shuttle))]
thread_local! {
    static THREAD: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// A number that no other thread of this process ever has.
#[inline]
#[cfg(not(shuttle))]
pub(super) fn this_thread() -> u64 {
    static THREADS: AtomicU64 = AtomicU64::new(1);
    let known = THREAD.get();
    if known != 0 {
        return known;
    }
    let number = THREADS.fetch_add(1, Ordering::Relaxed);
    THREAD.set(number);
    number
}

/// The same for the running task.
#[cfg(shuttle)]
pub(super) fn this_thread() -> u64 {
    shuttle::current::get_current_task().map_or(0, |task| usize::from(task) as u64) + 1
}

impl Badge {
    pub(super) fn new(manager: usize) -> Arc<Badge> {
        Arc::new(Badge { manager, transaction: AtomicU64::new(0), thread: AtomicU64::new(0) })
    }

    /// `transaction` is the calling thread's from now on, which is `thread`.
    pub(super) fn give(self: &Arc<Badge>, transaction: u64, thread: u64) {
        self.transaction.store(transaction, Ordering::Release);
        if self.thread.swap(thread, Ordering::AcqRel) == thread {
            return;
        }
        // A thread that is being torn down waits for its own transactions as for others.
        let _ = BADGES.try_with(|badges| {
            let mut badges = badges.borrow_mut();
            badges.retain(|badge| {
                Arc::strong_count(badge) > 1 && badge.is_of(thread) && !Arc::ptr_eq(badge, self)
            });
            badges.push(self.clone());
        });
    }

    /// It is nobody's.
    pub(super) fn take(&self) {
        self.transaction.store(0, Ordering::Release);
    }

    fn is_of(&self, thread: u64) -> bool {
        self.thread.load(Ordering::Acquire) == thread
    }

    /// Whether `transaction` is still that of `thread`.
    pub(super) fn says(&self, transaction: u64, thread: u64) -> bool {
        self.is_of(thread) && self.transaction.load(Ordering::Acquire) == transaction
    }
}

/// Transactions of the calling thread with locks of the manager at the address `manager`, each with
/// its badge; without `asking`.
pub(super) fn own_transactions(manager: usize, asking: u64) -> Vec<(u64, Arc<Badge>)> {
    let thread = this_thread();
    let of_thread = |badge: &Arc<Badge>| {
        let transaction = badge.transaction.load(Ordering::Acquire);
        let is_own = badge.manager == manager && badge.is_of(thread) && transaction != 0;
        (is_own && transaction != asking).then(|| (transaction, badge.clone()))
    };
    let own = BADGES.try_with(|badges| badges.borrow().iter().filter_map(of_thread).collect());
    own.unwrap_or_default()
}
