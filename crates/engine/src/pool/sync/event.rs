//! Sleeping until somebody rings: a condition variable that costs its ringer nothing while nobody
//! sleeps.
//!
//! Frames become free, and pages become dirty, far more often than anybody waits for it; waking
//! nobody must not be a system call.
//!
//! # Invariant
//! A sleeper counts itself before it looks for a reason to stay awake, a ringer makes the reason
//! before it counts sleepers, and a fence lies between the two steps on either side: at least one
//! of them sees the other. A ringer that saw a sleeper takes the lock, so that it rings after the
//! sleeper fell asleep, or before it looked.

use std::time::Duration;

use millpond_base::sync::atomic::{AtomicU32, Ordering, fence};
use millpond_base::sync::{Condvar, Mutex};

use crate::pool::sync::locked::locked;

/// Where threads sleep.
#[derive(Default)]
pub(crate) struct Event {
    sleepers: AtomicU32,
    lock: Mutex<()>,
    signal: Condvar,
}

impl Event {
    /// Sleeps until somebody rings, or for `longest`; not at all if `is_due`.
    pub(crate) fn wait(&self, longest: Duration, is_due: impl FnOnce() -> bool) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let guard = locked(&self.lock);
        fence(Ordering::SeqCst);
        if !is_due() {
            drop(self.signal.wait_timeout(guard, longest));
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Sleeps for a moment: the caller looks again then, whatever happened.
    pub(crate) fn nap(&self, moment: Duration, is_due: impl FnOnce() -> bool) {
        if cfg!(any(loom, shuttle)) {
            // Time does not pass there.
            millpond_base::sync::thread::yield_now();
        } else {
            self.wait(moment, is_due);
        }
    }

    /// Wakes all that sleep here; what they wait for has been done.
    #[inline]
    pub(crate) fn signal(&self) {
        if self.is_heard() {
            self.signal.notify_all();
        }
    }

    /// Wakes one of those that sleep here, where each would do.
    #[inline]
    pub(crate) fn ring_one(&self) {
        if self.is_heard() {
            self.signal.notify_one();
        }
    }

    /// Whether somebody sleeps, or is about to: not any more before it can hear the bell.
    #[inline]
    fn is_heard(&self) -> bool {
        fence(Ordering::SeqCst);
        let is_heard = self.sleepers.load(Ordering::Relaxed) > 0;
        if is_heard {
            drop(locked(&self.lock));
        }
        is_heard
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::time::Instant;

    /// A ring that got lost would cost a minute; ten thousand of them are not lost.
    #[test]
    fn no_ring_is_lost() {
        const LONG: Duration = Duration::from_secs(60);
        let (event, flag) = (Event::default(), AtomicBool::new(false));
        let started = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..10_000 {
                    while !flag.swap(false, Ordering::SeqCst) {
                        event.wait(LONG, || flag.load(Ordering::SeqCst));
                    }
                }
            });
            for _ in 0..10_000 {
                flag.store(true, Ordering::SeqCst);
                event.signal();
                while flag.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
            }
        });
        assert!(started.elapsed() < LONG);
    }
}
