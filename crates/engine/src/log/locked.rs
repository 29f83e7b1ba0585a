//! Locking past a panic.

use std::sync::PoisonError;

use millpond_base::sync::{Mutex, MutexGuard};

/// Locks `mutex`. A thread that panicked under it left the data whole: every change to them is a
/// few plain stores.
#[cfg_attr(feature = "critical-sections", track_caller)]
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
