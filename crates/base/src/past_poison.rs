//! Access to locks whose holder panicked.

use std::sync::PoisonError;

/// Ignores the poison of a lock.
///
/// A thread that panics while it holds a lock poisons it. In this workspace the data under a
/// lock is consistent between any two statements that change it. Other threads can therefore
/// continue, and one panic does not stop a store.
///
/// ```
/// use std::sync::Mutex;
///
/// use millpond_base::PastPoison;
/// let count = Mutex::new(1);
/// let _ = std::panic::catch_unwind(|| {
///     let _held = count.lock();
///     panic!("while it is held");
/// });
/// assert!(count.is_poisoned());
/// assert_eq!(*count.lock().past_poison(), 1);
/// ```
pub trait PastPoison {
    /// A guard, a guard with the outcome of a timed wait, or the data.
    type Held;

    /// Returns the guard or the data, poisoned or not.
    fn past_poison(self) -> Self::Held;
}

impl<T> PastPoison for Result<T, PoisonError<T>> {
    type Held = T;

    #[inline]
    fn past_poison(self) -> T {
        self.unwrap_or_else(PoisonError::into_inner)
    }
}
