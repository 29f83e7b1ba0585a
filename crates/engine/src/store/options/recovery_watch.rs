//! The observer of a recovery's progress.

use std::fmt;
use std::sync::Arc;

use crate::recovery::Progress;

type Watcher = dyn Fn(Progress) + Send + Sync;

/// Receives the progress of a recovery, or does nothing. Two are equal if they share a watcher, or
/// both have none.
///
/// ```
/// use millpond::{Options, report::RecoveryWatch};
/// let mut options = Options::new();
/// options.recovery_watch = RecoveryWatch::new(|progress| println!("{progress:?}"));
/// ```
#[derive(Clone, Default)]
pub struct RecoveryWatch(Option<Arc<Watcher>>);

impl RecoveryWatch {
    /// Calls `watcher` from time to time while the log is read, pages are rebuilt and transactions
    /// undone, in the thread that opens the store.
    ///
    /// ```
    /// use millpond::report::RecoveryWatch;
    /// let watch = RecoveryWatch::new(|at| println!("{} of {}", at.done, at.total));
    /// assert_eq!(watch, watch.clone());
    /// ```
    pub fn new(watcher: impl Fn(Progress) + Send + Sync + 'static) -> RecoveryWatch {
        RecoveryWatch(Some(Arc::new(watcher)))
    }

    pub(crate) fn tell(&self, progress: Progress) {
        if let Some(watcher) = &self.0 {
            watcher(progress);
        }
    }
}

impl fmt::Debug for RecoveryWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "somebody" } else { "nobody" })
    }
}

impl PartialEq for RecoveryWatch {
    fn eq(&self, other: &RecoveryWatch) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }
}
