//! The transactions whose closures the calling thread is in. The thread cannot wait for them,
//! because it would wait for itself.
//!
//! A transaction is tied to no thread, except while a closure runs in it. Its owner then has a
//! *claim* that names the thread, and each thread has a list of its claims. A claim also shows when
//! its transaction is over, so the list may be outdated; only a thread that is about to wait reads
//! it.
//!
//! The atomics are those of std even under a model checker, where tasks take the place of threads:
//! a claim of another thread decides only which owner of a cycle is the victim.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Link from a transaction to the thread that runs its closure.
pub(super) struct Claim {
    /// Address of the lock manager.
    manager: usize,
    /// Transaction id; 0 for none.
    transaction: AtomicU64,
    /// Number of the thread.
    thread: AtomicU64,
}

thread_local! {
    static CLAIMS: RefCell<Vec<Arc<Claim>>> = const { RefCell::new(Vec::new()) };
}

#[cfg(not(feature = "shuttle"))]
thread_local! {
    static THREAD: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Returns a number that no other thread of this process ever has.
#[inline]
#[cfg(not(feature = "shuttle"))]
pub(crate) fn this_thread() -> u64 {
    static THREADS: AtomicU64 = AtomicU64::new(1);
    let known = THREAD.get();
    if known != 0 {
        return known;
    }
    let number = THREADS.fetch_add(1, Ordering::Relaxed);
    THREAD.set(number);
    number
}

/// Returns the number of the running task.
#[cfg(feature = "shuttle")]
pub(crate) fn this_thread() -> u64 {
    shuttle::current::get_current_task().map_or(0, |task| usize::from(task) as u64) + 1
}

impl Claim {
    pub(super) fn new(manager: usize) -> Arc<Claim> {
        Arc::new(Claim { manager, transaction: AtomicU64::new(0), thread: AtomicU64::new(0) })
    }

    /// Ties `transaction` to the calling thread, which is `thread`.
    pub(super) fn set(self: &Arc<Claim>, transaction: u64, thread: u64) {
        self.transaction.store(transaction, Ordering::Release);
        // Only the thread that uses the transaction writes this field, which rarely changes. An
        // exchange would wait for all earlier stores.
        if self.is_in(thread) {
            return;
        }
        self.thread.store(thread, Ordering::Release);
        // A thread that is being torn down waits for its own transactions as for others.
        let _ = CLAIMS.try_with(|claims| {
            let mut claims = claims.borrow_mut();
            claims.retain(|claim| {
                Arc::strong_count(claim) > 1 && claim.is_in(thread) && !Arc::ptr_eq(claim, self)
            });
            claims.push(self.clone());
        });
    }

    /// Ties the claim to no transaction.
    pub(super) fn clear(&self) {
        self.transaction.store(0, Ordering::Release);
    }

    fn is_in(&self, thread: u64) -> bool {
        self.thread.load(Ordering::Acquire) == thread
    }

    /// Returns whether `transaction` still belongs to `thread`.
    pub(super) fn is_of_thread(&self, transaction: u64, thread: u64) -> bool {
        self.is_in(thread) && self.transaction.load(Ordering::Acquire) == transaction
    }
}

/// Returns the calling thread's transactions with locks of the manager at the address `manager`,
/// each with its claim, except `asking`.
pub(super) fn own_transactions(manager: usize, asking: u64) -> Vec<(u64, Arc<Claim>)> {
    let thread = this_thread();
    let of_thread = |claim: &Arc<Claim>| {
        let transaction = claim.transaction.load(Ordering::Acquire);
        let is_own = claim.manager == manager && claim.is_in(thread) && transaction != 0;
        (is_own && transaction != asking).then(|| (transaction, claim.clone()))
    };
    let own = CLAIMS.try_with(|claims| claims.borrow().iter().filter_map(of_thread).collect());
    own.unwrap_or_default()
}
