//! A recovery with progress, and one in memory, which changes no file.

use std::path::Path;
use std::sync::Arc;

use millpond::internals::admin::log_view::{DevicePair, trial_devices};
use millpond::{
    Db, Error, Options,
    report::{Phase, Progress, Recovery},
};

use crate::progress::Progress as Bar;

/// Default memory of a recovery.
pub(crate) const MEMORY: u64 = 256 << 20;

/// Recovers the store in memory, without changing a file. Returns `None` if it was closed. The
/// recovered state is on the returned devices.
pub(crate) fn in_memory(
    file: &Path,
    options: Options,
    bar: &Arc<Bar>,
) -> Result<(DevicePair, Option<Recovery>), Error> {
    let (data, log) = trial_devices(file)?;
    let db = Db::open_on_devices(data.clone(), log.clone(), watched(options, bar))?;
    let done = db.recovery();
    db.close()?;
    Ok(((data, log), done))
}

/// Shows a recovery's progress on `bar`.
pub(crate) fn watched(options: Options, bar: &Arc<Bar>) -> Options {
    let bar = bar.clone();
    options.watch_recovery(move |progress| show(&bar, progress))
}

fn show(bar: &Bar, progress: Progress) {
    let (what, unit) = match progress.phase {
        Phase::Analysis => ("reading the log", "bytes"),
        Phase::Redo => ("redoing pages", "pages"),
        Phase::Undo => ("undoing what did not commit", "transactions"),
    };
    let share = progress.done as f64 / progress.total.max(1) as f64;
    bar.show(what, Some(share), progress.done, unit);
}
