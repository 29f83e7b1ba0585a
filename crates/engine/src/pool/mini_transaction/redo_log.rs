//! The redo log of a pool: destination of the changes of its mini-transactions.

use std::sync::Arc;

use millpond_base::Lsn;
use millpond_base::sync::Mutex;

use crate::log::{Appended, Log, Record};
use crate::pool::mini_transaction::change_set::ChangeSet;
use crate::pool::mini_transaction::page_space::PageSpace;
use crate::pool::mini_transaction::row_counts::RowCounts;
use crate::pool::sync::locked::locked;

/// The log of a pool, if it has one, and the page space and row counts at its end.
#[derive(Default)]
pub struct RedoLog {
    /// The log; `None` if changes are not logged.
    log: Option<Arc<Log>>,
    /// Page space as of the end of the log: it changes only while the record of the change is
    /// appended, under this mutex (rule 6).
    space: Mutex<PageSpace>,
    /// Numbers of entries of trees, as of the end of the log or, without one, now.
    rows: Arc<RowCounts>,
}

impl RedoLog {
    /// Returns a redo log that writes to `log`.
    pub(in crate::pool) fn to(log: Arc<Log>) -> RedoLog {
        RedoLog { log: Some(log), ..RedoLog::default() }
    }

    /// Returns the log, if changes are logged.
    #[inline(always)]
    pub(crate) fn log(&self) -> Option<&Log> {
        self.log.as_deref()
    }

    /// Returns the end of the log; 0 if changes are not logged.
    #[inline]
    pub(in crate::pool) fn tail(&self) -> Lsn {
        self.log().map_or(Lsn(0), Log::tail)
    }

    /// Returns the numbers of entries of trees.
    #[inline]
    pub(crate) fn rows(&self) -> &Arc<RowCounts> {
        &self.rows
    }

    /// Calls `look` with the page space as of the end of the log, and that end.
    pub(crate) fn space_at_tail<R>(&self, look: impl FnOnce(Lsn, &PageSpace) -> R) -> R {
        let space = locked(&self.space);
        look(self.tail(), &space)
    }

    /// Sets the page space, before anything is logged.
    pub(crate) fn set_space(&self, space: PageSpace) {
        *locked(&self.space) = space;
    }

    /// Appends the record that `changes` composed; `None` if there is nothing to log.
    pub(in crate::pool) fn append(&self, changes: &ChangeSet) -> Option<Appended> {
        let parts = [changes.body()];
        let record = changes.record(&parts)?;
        let log = self.log()?;
        let mut slot = changes.has_row_events().then(|| self.rows.hold());
        let appended = self.append_spaced(log, &record, changes);
        if let Some(slot) = &mut slot {
            changes.count_rows(&self.rows, slot);
        }
        Some(appended)
    }

    #[inline]
    fn append_spaced(&self, log: &Log, record: &Record<'_>, changes: &ChangeSet) -> Appended {
        if !changes.has_space_events() {
            return log.append(record);
        }
        let mut space = locked(&self.space);
        let appended = log.append(record);
        changes.apply_to(&mut space);
        appended
    }
}
