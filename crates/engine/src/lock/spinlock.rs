//! A mutex for sections that usually take some tens of nanoseconds.
//!
//! A transaction takes hundreds of these mutexes. To release the operating system's mutex takes an
//! exchange with memory, which shows whether a thread sleeps; an exchange waits for all earlier
//! stores of its thread. Here no thread sleeps: one that finds the mutex taken checks again for a
//! while and then yields its processor, so a release is a plain store. A thread that waits long,
//! for a lock and not for a mutex, waits in a [`Waiter`](super::waiter::Waiter).
//!
//! Under a model checker, this is the checker's mutex.

#[cfg(feature = "model")]
pub(crate) use model::{Guard, Spinlock};
#[cfg(not(feature = "model"))]
pub(crate) use real::{Guard, Spinlock};

#[cfg(feature = "model")]
mod model {
    use millpond_base::PastPoison;

    use millpond_base::sync::{Mutex, MutexGuard};

    pub(crate) type Guard<'a, T> = MutexGuard<'a, T>;

    #[derive(Default)]
    pub(crate) struct Spinlock<T>(Mutex<T>);

    impl<T> Spinlock<T> {
        pub fn new(value: T) -> Spinlock<T> {
            Spinlock(Mutex::new(value))
        }

        pub fn lock(&self) -> Guard<'_, T> {
            self.0.lock().past_poison()
        }

        pub fn try_lock(&self) -> Option<Guard<'_, T>> {
            self.0.try_lock().ok()
        }
    }
}

#[cfg(not(feature = "model"))]
mod real {
    use std::cell::UnsafeCell;
    use std::marker::PhantomData;
    use std::ops::{Deref, DerefMut};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use millpond_base::sections::{Section, note};

    /// Number of checks before the thread yields its processor.
    const SPINS: u32 = 100;
    /// Number of yields before the thread sleeps between checks: the mutex's holder may have to
    /// wait for a processor, too.
    const YIELDS: u32 = 1000;

    /// A value that one thread at a time can access.
    #[derive(Default)]
    pub(crate) struct Spinlock<T> {
        is_taken: AtomicBool,
        value: UnsafeCell<T>,
    }

    // SAFETY: `value` is reached only through a `Guard`, of which there is one at a time: the
    // thread that changed `is_taken` from false to true creates it, and dropping it changes
    // `is_taken` back. So the value moves from thread to thread, which `T: Send` allows, and is
    // never shared.
    unsafe impl<T: Send> Sync for Spinlock<T> {}

    /// Exclusive access to the value, for its thread alone: giving a `&T` to others needs more than
    /// `T: Send`.
    pub(crate) struct Guard<'a, T> {
        of: &'a Spinlock<T>,
        _threads: PhantomData<*mut T>,
    }

    impl<T> Spinlock<T> {
        pub fn new(value: T) -> Spinlock<T> {
            Spinlock { is_taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
        }

        #[inline]
        fn try_take(&self) -> bool {
            let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
            self.is_taken.compare_exchange(false, true, acquire, relaxed).is_ok()
        }

        #[cfg_attr(feature = "critical-sections", track_caller)]
        #[inline]
        pub fn lock(&self) -> Guard<'_, T> {
            if !self.try_take() {
                self.take_later();
            }
            note(Section::Mutex);
            Guard { of: self, _threads: PhantomData }
        }

        /// Returns a guard if no other thread has one; does not wait.
        #[cfg_attr(feature = "critical-sections", track_caller)]
        #[inline]
        pub fn try_lock(&self) -> Option<Guard<'_, T>> {
            if !self.try_take() {
                return None;
            }
            note(Section::Mutex);
            Some(Guard { of: self, _threads: PhantomData })
        }

        #[cold]
        #[inline(never)]
        fn take_later(&self) {
            for round in 0u32.. {
                if !self.is_taken.load(Ordering::Relaxed) && self.try_take() {
                    return;
                }
                match round {
                    _ if round < SPINS => std::hint::spin_loop(),
                    _ if round < SPINS + YIELDS => std::thread::yield_now(),
                    _ => std::thread::sleep(Duration::from_micros(50)),
                }
            }
        }
    }

    impl<T> Deref for Guard<'_, T> {
        type Target = T;

        #[inline(always)]
        fn deref(&self) -> &T {
            // SAFETY: this guard is the only one, and lends the value for no longer than it lives.
            unsafe { &*self.of.value.get() }
        }
    }

    impl<T> DerefMut for Guard<'_, T> {
        #[inline(always)]
        fn deref_mut(&mut self) -> &mut T {
            // SAFETY: as above; and it is borrowed mutably.
            unsafe { &mut *self.of.value.get() }
        }
    }

    impl<T> Drop for Guard<'_, T> {
        #[inline(always)]
        fn drop(&mut self) {
            debug_assert!(self.of.is_taken.load(Ordering::Relaxed), "a guard holds its spinlock");
            self.of.is_taken.store(false, Ordering::Release);
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn one_thread_at_a_time_changes_what_all_change() {
            const EACH: u64 = 20_000;
            // Two numbers that are equal whenever no thread is changing them.
            let both = Spinlock::new((0u64, vec![0u64]));
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..EACH {
                            let mut both = both.lock();
                            assert_eq!(both.0, both.1[0]);
                            both.0 += 1;
                            both.1 = vec![both.0];
                        }
                    });
                }
            });
            assert_eq!(both.lock().0, 4 * EACH);
        }

        #[test]
        fn what_is_taken_is_not_given_to_another() {
            let number = Spinlock::new(1);
            let held = number.try_lock();
            assert!(held.is_some() && number.try_lock().is_none());
            drop(held);
            assert_eq!(number.try_lock().map(|number| *number), Some(1));
        }

        #[test]
        fn a_holder_that_panics_leaves_it_free() {
            let number = Spinlock::new(1);
            let panics = || {
                let _held = number.lock();
                std::panic::resume_unwind(Box::new(()));
            };
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
            assert_eq!(*number.lock(), 1);
        }
    }
}
