//! The event on which a waiting owner sleeps, and the interruption of a thread that sleeps there or
//! is in a long call.

use std::cell::Cell;
use std::time::{Duration, Instant};

use millpond_base::PastPoison;
use millpond_base::sync::{Condvar, Mutex};

/// Time between two calls of a thread's check.
const CHECK_PERIOD: Duration = Duration::from_millis(50);

thread_local! {
    static CHECK: Cell<Option<fn() -> bool>> = const { Cell::new(None) };
    /// Time at which a long call last called the check; `None` if none has called it since it was
    /// set.
    static CHECKED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Sets the interrupt check of the calling thread, and returns the former one. While the thread
/// waits for a lock, it calls the check now and then; the wait ends with
/// [`LockError::Interrupted`](super::LockError::Interrupted) when the check returns `true`. Calls
/// that walk a whole tree, and recovery, call the check, too ([`is_interrupted`]).
///
/// Bindings to languages whose signals only the interpreter handles need this. No latch is held
/// during the check, which may use the store.
pub fn interrupt_waits_by(check: Option<fn() -> bool>) -> Option<fn() -> bool> {
    CHECKED.set(None);
    CHECK.replace(check)
}

/// Returns whether the calling thread's check ends its long call. The first call after the check
/// was set runs the check, and later ones run it now and then.
pub(crate) fn is_interrupted() -> bool {
    let Some(check) = CHECK.get() else { return false };
    let now = Instant::now();
    if CHECKED.get().is_some_and(|last| now.duration_since(last) < CHECK_PERIOD) {
        return false;
    }
    CHECKED.set(Some(now));
    check()
}

/// Returns the calling thread's check, and the time at which to call it at the latest.
pub(super) fn check_before(deadline: Instant) -> (Option<fn() -> bool>, Instant) {
    match CHECK.get() {
        None => (None, deadline),
        check => (check, deadline.min(Instant::now() + CHECK_PERIOD)),
    }
}

/// The event of one owner. A wake-up may come late or be spurious, so the owner checks again.
pub(super) struct Waiter {
    woken: Mutex<bool>,
    event: Condvar,
}

impl Waiter {
    pub fn new() -> Waiter {
        Waiter { woken: Mutex::new(false), event: Condvar::new() }
    }

    pub fn wake(&self) {
        *self.woken.lock().past_poison() = true;
        self.event.notify_one();
    }

    /// Sleeps until a wake-up or `deadline`. Returns whether there was a wake-up.
    pub fn sleep(&self, deadline: Instant) -> bool {
        let mut woken = self.woken.lock().past_poison();
        while !*woken {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let wait = self.event.wait_timeout(woken, left);
            woken = wait.past_poison().0;
        }
        *woken = false;
        true
    }
}
