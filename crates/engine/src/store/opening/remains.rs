//! Remaining files of a store whose data file is missing, or empty.
//!
//! A log holds every commit since the last checkpoint, and a new store would need its name. So no
//! store is created while such a file exists: the data file may come back. An opening that creates
//! a store and fails removes the files that it created.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millpond_device::{Device, FileDevice, FileOptions, Submission, beside};

use crate::io::{is_spill, spill_path};
use crate::log::{Log, LogError};
use crate::pool::mini_transaction::kind;
use crate::recovery::log_open::log_path;
use crate::store::error::Error;
use crate::store::stats::stat_file::stat_path;

fn is_filled(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() > 0)
}

/// Fails if a file beside `store`, which is missing or empty, belongs to a store. Writes nothing.
///
/// # Errors
/// [`Error::Remains`]; a log that is in use, or cannot be read.
pub(super) fn check(store: &Path) -> Result<(), Error> {
    let remains = |beside, what| Error::Remains { path: store.to_path_buf(), beside, what };
    let log = log_path(store);
    if std::fs::metadata(&log).is_ok_and(|meta| meta.len() > 0) {
        let options = FileOptions {
            read_only: true,
            direct: false,
            submission: Submission::Sync,
            ..FileOptions::default()
        };
        check_log(store, &(Arc::new(FileDevice::open(&log, &options)?) as Arc<dyn Device>))?;
    }
    let spill = spill_path(store);
    if is_filled(&spill) && is_spill(&spill).unwrap_or(true) {
        return Err(remains(spill, "the spill file of a store"));
    }
    let others = [
        (stat_path(store), "the statistics of a store"),
        (beside(store, "-partial"), "a backup that was not finished"),
        (beside(store, "-partial-log"), "the log of a backup that was not finished"),
    ];
    match others.into_iter().find(|(path, _)| is_filled(path)) {
        Some((path, what)) => Err(remains(path, what)),
        None => Ok(()),
    }
}

/// Fails if `log` holds something that a new store at `store` must not overwrite. An interrupted
/// creation leaves a log, too: it is empty.
///
/// # Errors
/// [`Error::Remains`], or the log cannot be read.
pub(super) fn check_log(store: &Path, log: &Arc<dyn Device>) -> Result<(), Error> {
    if log.length() == 0 {
        return Ok(());
    }
    let what = match Log::goes_on_behind(log.clone(), kind::CHECKPOINT) {
        Ok(false) => return Ok(()),
        Ok(true) => "the log of a store",
        Err(LogError::NotALog { .. }) if Log::is_blank(&**log)? => return Ok(()),
        Err(LogError::NotALog { .. }) => "no log, or one whose first block is lost",
        Err(LogError::Version { .. }) => "the log of a store of another version",
        Err(error) => return Err(error.into()),
    };
    let (path, beside) = (store.to_path_buf(), log.path().to_path_buf());
    Err(Error::Remains { path, beside, what })
}

/// The files that an opening created. They are removed when this is dropped, unless the store was
/// opened. The data file stays locked until then, so that no other process creates a store in it.
#[derive(Default)]
pub(super) struct Created {
    paths: RefCell<Vec<PathBuf>>,
    data: RefCell<Option<Arc<dyn Device>>>,
}

impl Created {
    /// Returns `true` if the data file is new, and the store with it.
    pub(super) fn has_data(&self) -> bool {
        !self.paths.borrow().is_empty()
    }

    /// Adds the data file of a store, which did not exist.
    pub(super) fn add_data(&self, path: &Path, data: Arc<dyn Device>) {
        self.paths.borrow_mut().extend([path.to_path_buf(), stat_path(path)]);
        *self.data.borrow_mut() = Some(data);
    }

    /// Adds a file beside it, which did not exist either. Files beside an existing data file stay:
    /// the store may need them by now.
    pub(super) fn add(&self, path: &Path) {
        if self.has_data() {
            self.paths.borrow_mut().push(path.to_path_buf());
        }
    }

    /// Keeps the files, since the store is open.
    pub(super) fn keep(self) {
        self.paths.borrow_mut().clear();
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        // The data file goes last: as long as there are others, it shows which store they belong
        // to.
        for path in self.paths.borrow().iter().rev() {
            if let Err(error) = std::fs::remove_file(path)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::warn!(%error, "{} is left of a store that failed", path.display());
            }
        }
    }
}
