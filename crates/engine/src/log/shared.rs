//! What all threads of a log share.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use millpond_base::sync::{Mutex, MutexGuard};

use super::counts::Counters;
use super::flush::Flush;
use super::ring::Ring;
use super::segments::Segments;
use super::writer::Alarm;

/// LSN of the first record of a new log: a block, so that 0 is none.
pub(super) const FIRST: u64 = super::options::BLOCK;

/// Everything but the background thread itself.
pub(super) struct Shared {
    pub(super) ring: Ring,
    pub(super) segments: Arc<Segments>,
    pub(super) flush: Flush,
    pub(super) alarm: Alarm,
    pub(super) counters: Counters,
    pub(super) salt: u64,
    pub(super) path: PathBuf,
    /// Most bytes of a body.
    pub(super) record_max: usize,
    /// Where the log ended when it was opened.
    pub(super) opened_at: u64,
}

impl Shared {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Locks `mutex`. A thread that panicked under it left the data whole: every change to them is a
/// few plain stores.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
