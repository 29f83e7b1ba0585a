//! Who is told how far a recovery is.

use std::fmt;
use std::sync::Arc;

use crate::recovery::Progress;

type Watcher = dyn Fn(Progress) + Send + Sync;

/// Somebody who is told how far a recovery is, or nobody. Two are equal if they are the same.
///
/// ```
/// use millpond::{Options, RecoveryWatch};
/// let mut options = Options::new();
/// options.recovery_watch = RecoveryWatch::new(|progress| println!("{progress:?}"));
/// ```
#[derive(Clone, Default)]
pub struct RecoveryWatch(Option<Arc<Watcher>>);

impl RecoveryWatch {
    /// `watcher` is told as the log is read, pages are made anew and transactions undone, now and
    /// then, by the thread that opens the store.
    ///
    /// ```
    /// use millpond::RecoveryWatch;
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
