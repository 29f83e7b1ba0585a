//! Where an owner sleeps until it should look again.

use std::sync::PoisonError;
use std::time::Instant;

use millpond_base::sync::{Condvar, Mutex};

/// The bed of one owner. A wake-up may come late or for nothing: whoever wakes looks again.
pub(super) struct Waiter {
    woken: Mutex<bool>,
    bell: Condvar,
}

impl Waiter {
    pub fn new() -> Waiter {
        Waiter { woken: Mutex::new(false), bell: Condvar::new() }
    }

    pub fn wake(&self) {
        *self.woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.bell.notify_one();
    }

    /// Sleeps until it is woken, or until `deadline`. Returns whether it was woken.
    pub fn sleep(&self, deadline: Instant) -> bool {
        let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        while !*woken {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let wait = self.bell.wait_timeout(woken, left);
            woken = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
        *woken = false;
        true
    }
}
