//! Evictor threads that sleep until they are called, one by one and no more than are needed.
//!
//! A call wakes one of the members that sleep; the caller does not wait. A member that finds
//! nothing to do any more goes off duty.
//!
//! # Invariants
//! 1. `awake` is the number of calls that were not yet ended by a
//!    [`EvictorThreads::rest`]: at most as many as there are members, so that each call finds one
//!    that is off duty.
//! 2. A thread that creates work reads `awake` afterwards. A member that goes off duty looks for
//!    work afterwards. On either side a fence is between the two steps. So either the member sees
//!    the work, or the other thread sees that it must call.

use std::time::Duration;

use millpond_base::sync::atomic::{AtomicU32, Ordering, fence};

use crate::pool::sync::event::Event;

/// Calls to evictor threads, the members, and the number of members on duty.
#[derive(Default)]
pub struct EvictorThreads {
    awake: AtomicU32,
    /// Calls that no member has taken yet; at most `awake`.
    calls: AtomicU32,
    event: Event,
}

impl EvictorThreads {
    /// Records that no member is on duty. Called while none runs.
    pub fn reset(&self) {
        self.awake.store(0, Ordering::SeqCst);
        self.calls.store(0, Ordering::SeqCst);
    }

    /// Returns the number of members on duty, and of calls that will be taken.
    pub fn awake(&self) -> u32 {
        self.awake.load(Ordering::Relaxed)
    }

    /// Calls one member more if fewer than `enough` are on duty; returns whether it did. There must
    /// be at least `enough` members.
    pub fn call(&self, enough: u32) -> bool {
        fence(Ordering::SeqCst);
        let mut awake = self.awake.load(Ordering::Relaxed);
        while awake < enough {
            let (old, new) = (awake, awake + 1);
            match self.awake.compare_exchange(old, new, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => {
                    self.calls.fetch_add(1, Ordering::SeqCst);
                    self.event.signal_one();
                    return true;
                }
                Err(now) => awake = now,
            }
        }
        false
    }

    /// Sleeps until there is a call for this member, which is then on duty and must
    /// [`EvictorThreads::rest`]. Returns `false` once `longest` has passed, or if `is_over`.
    pub fn wait(&self, longest: Duration, is_over: impl Fn() -> bool) -> bool {
        if self.take_call() {
            return true;
        }
        let is_called = || self.calls.load(Ordering::SeqCst) > 0;
        self.event.wait(longest, || is_called() || is_over());
        self.take_call()
    }

    fn take_call(&self) -> bool {
        let less = |calls: u32| calls.checked_sub(1);
        self.calls.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
    }

    /// Takes the calling member off duty. The member must look for work next, and call if there is
    /// some.
    pub fn rest(&self) {
        let awake = self.awake.fetch_sub(1, Ordering::SeqCst);
        debug_assert_ne!(awake, 0, "no member is on duty");
        fence(Ordering::SeqCst);
    }

    /// Wakes all members that sleep, so that they end.
    pub fn dismiss(&self) {
        self.event.signal();
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn calls_are_taken_one_by_one_and_never_more_than_are_enough() {
        let evictor_threads = EvictorThreads::default();
        assert!(evictor_threads.call(2) && evictor_threads.call(2) && !evictor_threads.call(2));
        assert_eq!(evictor_threads.awake(), 2);
        assert!(evictor_threads.wait(LONG, || false) && evictor_threads.wait(LONG, || false));
        assert!(!evictor_threads.wait(LONG, || true), "there is no third call");
        evictor_threads.rest();
        assert!(evictor_threads.call(2) && !evictor_threads.call(2));
    }

    /// Items are created one by one, and worked off by the member that is called; a lost call would
    /// leave one for ever, and the test would sleep for minutes.
    #[test]
    fn no_work_is_left_while_all_sleep() {
        const ITEMS: u32 = 20_000;
        for members in 1..=3 {
            let (evictor_threads, over) = (EvictorThreads::default(), AtomicBool::new(false));
            let (work, done) = (AtomicU32::new(0), AtomicU32::new(0));
            let take = || {
                let less = |items: u32| items.checked_sub(1);
                work.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
            };
            let member = || {
                while !over.load(Ordering::SeqCst) {
                    if !evictor_threads.wait(LONG, || over.load(Ordering::SeqCst)) {
                        continue;
                    }
                    while take() {
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                    evictor_threads.rest();
                    if work.load(Ordering::SeqCst) > 0 {
                        evictor_threads.call(members);
                    }
                }
            };
            std::thread::scope(|scope| {
                (0..members).for_each(|_| drop(scope.spawn(member)));
                for made in 1..=ITEMS {
                    work.fetch_add(1, Ordering::SeqCst);
                    evictor_threads.call(members);
                    // Now and then they all get the time to sleep.
                    while made % 64 == 0 && done.load(Ordering::SeqCst) < made {
                        std::thread::yield_now();
                    }
                }
                while done.load(Ordering::SeqCst) < ITEMS {
                    std::thread::yield_now();
                }
                over.store(true, Ordering::SeqCst);
                evictor_threads.dismiss();
            });
            assert_eq!(done.load(Ordering::SeqCst), ITEMS);
            assert!(evictor_threads.awake() <= members);
        }
    }
}
