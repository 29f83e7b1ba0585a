//! The moment at which written pages are made durable (li 4.4.1.2): at once, or when the log
//! forgets the records of their changes.

use millpond_base::{Lsn, PageId, Reason};

use crate::pool::buffer_pool::Pool;
use crate::pool::error::PoolError;
use crate::pool::options::{PoolStrategy, SyncMode};
use crate::pool::sync::locked::locked;

impl<M: PoolStrategy> Pool<M> {
    /// Returns the moment at which writes are made durable.
    pub(crate) fn sync_mode(&self) -> SyncMode {
        self.options.sync_mode
    }

    /// Makes writes durable, where they are to be at once (li 4.4.1.2); returns the pages written
    /// by then.
    pub(super) fn synced_after(
        &self,
        reason: Reason,
        is_written: Vec<bool>,
        error: &mut Option<PoolError>,
    ) -> Vec<bool> {
        let is_due = match self.options.sync_mode {
            SyncMode::EachWrite => true,
            SyncMode::EachRecov => reason == Reason::Recov,
            SyncMode::Checkpoint | SyncMode::Ranges => false,
        };
        if !is_due || !is_written.contains(&true) {
            return is_written;
        }
        match self.storage.sync() {
            Ok(()) => is_written,
            Err(failed) => {
                error.get_or_insert(failed);
                vec![false; is_written.len()]
            }
        }
    }

    /// Takes the pages out of the sync list whose updates begin before `bound`, in the order of
    /// their ids.
    pub(crate) fn take_overdue(&self, bound: Lsn) -> Vec<PageId> {
        let mut list = locked(&self.writes.sync_list);
        let mut overdue: Vec<PageId> = std::iter::from_fn(|| list.take_before(bound)).collect();
        overdue.sort_unstable();
        overdue
    }
}
