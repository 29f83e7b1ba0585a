//! The event on which a waiting owner sleeps.

use std::sync::PoisonError;
use std::time::Instant;

use millpond_base::sync::{Condvar, Mutex};

/// The event of one owner. A wake-up may come late or be spurious: the owner checks again.
pub(super) struct Waiter {
    woken: Mutex<bool>,
    event: Condvar,
}

impl Waiter {
    pub fn new() -> Waiter {
        Waiter { woken: Mutex::new(false), event: Condvar::new() }
    }

    pub fn wake(&self) {
        *self.woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.event.notify_one();
    }

    /// Sleeps until it is woken, or until `deadline`. Returns whether it was woken.
    pub fn sleep(&self, deadline: Instant) -> bool {
        let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        while !*woken {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let wait = self.event.wait_timeout(woken, left);
            woken = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
        *woken = false;
        true
    }
}
