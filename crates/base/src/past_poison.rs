//! Locks whose holder panicked.

use std::sync::PoisonError;

/// Goes on past the poison of a lock.
///
/// A thread that panics while it holds a lock poisons it. The data under the locks of this
/// workspace are whole between any two statements that change them, so that the other threads go
/// on: one panic must not stop a store.
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

    /// Returns it, poisoned or not.
    fn past_poison(self) -> Self::Held;
}

impl<T> PastPoison for Result<T, PoisonError<T>> {
    type Held = T;

    #[inline]
    fn past_poison(self) -> T {
        self.unwrap_or_else(PoisonError::into_inner)
    }
}
