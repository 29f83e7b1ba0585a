//! Latches whose holder panicked.

use std::sync::PoisonError;

/// Returns the guard of a latch, also if a thread panicked while holding it. The state behind the
/// latches of this module is sound between any two statements.
pub(super) fn unpoisoned<T>(result: Result<T, PoisonError<T>>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}
