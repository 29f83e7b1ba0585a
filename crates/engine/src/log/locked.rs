//! Locks mutexes even after a panic.

use std::sync::PoisonError;

use millpond_base::sync::{Mutex, MutexGuard};

/// Locks `mutex`, even if a thread panicked under it. The data are whole then: every change to them
/// is a few plain stores.
#[cfg_attr(feature = "critical-sections", track_caller)]
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
