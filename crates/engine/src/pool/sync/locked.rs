//! Locks the mutexes of the pool.

use millpond_base::sync::{Mutex, MutexGuard};

/// Locks `mutex`, poisoned or not: a thread that panicked while it held one must not stop the
/// others.
#[cfg_attr(feature = "critical-sections", track_caller)]
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}
