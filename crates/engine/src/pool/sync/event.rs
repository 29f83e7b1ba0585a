//! An event: a condition variable whose signal costs no system call while no thread sleeps.
//!
//! Frames become free, and pages become dirty, far more often than a thread waits for it; a signal
//! without a sleeper must not be a system call.
//!
//! # Invariant
//! A sleeper counts itself before it looks for a reason to stay awake. A signaller creates the
//! reason before it reads the count. On either side a fence is between the two steps, so at least
//! one of the threads sees the other. A signaller that saw a sleeper takes the lock, so that it
//! signals after the sleeper began to wait, or before it looked.

use std::time::Duration;

use millpond_base::sync::atomic::{AtomicU32, Ordering, fence};
use millpond_base::sync::{Condvar, Mutex};

use crate::pool::sync::locked::locked;

/// An event on which threads sleep.
#[derive(Default)]
pub(crate) struct Event {
    /// Number of threads inside [`Event::wait`].
    sleepers: AtomicU32,
    lock: Mutex<()>,
    signal: Condvar,
}

impl Event {
    /// Sleeps until the event is signalled, or for `longest`; returns at once if `is_due` returns
    /// `true`.
    pub(crate) fn wait(&self, longest: Duration, is_due: impl FnOnce() -> bool) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let guard = locked(&self.lock);
        fence(Ordering::SeqCst);
        if !is_due() {
            drop(self.signal.wait_timeout(guard, longest));
        }
        let sleepers = self.sleepers.fetch_sub(1, Ordering::SeqCst);
        debug_assert_ne!(sleepers, 0, "this thread was counted");
    }

    /// Sleeps until the event is signalled, or for `moment`. The caller looks again in either case.
    pub(crate) fn nap(&self, moment: Duration, is_due: impl FnOnce() -> bool) {
        if cfg!(feature = "model") {
            // Time does not pass in a model.
            millpond_base::sync::thread::yield_now();
        } else {
            self.wait(moment, is_due);
        }
    }

    /// Wakes all threads that sleep here, once their reason to wait is gone.
    #[inline]
    pub(crate) fn signal(&self) {
        if self.has_sleepers() {
            self.signal.notify_all();
        }
    }

    /// Wakes one of the threads that sleep here, if any of them will do.
    #[inline]
    pub(crate) fn signal_one(&self) {
        if self.has_sleepers() {
            self.signal.notify_one();
        }
    }

    /// Returns whether a thread sleeps, or is about to. If so, it can receive a signal once this
    /// has returned.
    #[inline]
    fn has_sleepers(&self) -> bool {
        fence(Ordering::SeqCst);
        let has_sleepers = self.sleepers.load(Ordering::Relaxed) > 0;
        if has_sleepers {
            drop(locked(&self.lock));
        }
        has_sleepers
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::time::Instant;

    /// A lost signal would cost a minute; ten thousand of them are not lost.
    #[test]
    fn no_signal_is_lost() {
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
