//! Log salvage: opens a store whose log is damaged. Opening fails with an error that names the
//! losses or, on request, restores the store as it was at the damage.
//!
//! `examine.rs` shows when that is possible, and `log/cut.rs` in which order the log is cut, so
//! that a crash may interrupt it. Everything is examined before anything is written. Once the log
//! is cut, the store is like one after a crash, and is opened like any other. So an interrupted
//! salvage is repeated, or has become an ordinary recovery.

use std::collections::BTreeMap;
use std::sync::Arc;

use millpond_base::Lsn;
use millpond_device::Device;

use super::damage::{LogDamage, LostRecords, Obstacle, StrayPages};
use super::error::{OpenLogError, RecoveryError};
use super::examine::{Examined, examine, stray_pages};
use super::log_settings::LogSettings;
use super::report::Salvaged;
use crate::io::PageStore;
use crate::log::{Log, LogError, LogOptions};

/// Returns whether the error may come from a log that is damaged, but readable elsewhere.
fn is_damage(error: &LogError) -> bool {
    matches!(
        error,
        LogError::Damaged { .. }
            | LogError::DamagedSegment { .. }
            | LogError::Missing { .. }
            | LogError::Forgotten { .. }
            | LogError::NoRecord { .. }
            | LogError::BeyondTail { .. }
            | LogError::Read(_)
    )
}

/// Returns the report of a new log for `store`, which was closed, and whose log on `device` failed
/// to open with `error`.
///
/// # Errors
/// If `salvage` is not set, or the log belongs to another store or another version.
pub(crate) fn closed(
    error: LogError,
    store: &PageStore,
    device: Arc<dyn Device>,
    salvage: bool,
) -> Result<Salvaged, OpenLogError> {
    let is_no_log = matches!(error, LogError::NotALog { .. });
    if !is_no_log && !is_damage(&error) {
        return Err(error.into());
    }
    let found = examine(store, device, true, &LogOptions::default());
    if let Ok(Examined { noted, .. }) = &found {
        noted.check(store)?;
    }
    if !salvage {
        return Err(found.map_or_else(|_| error.into(), |found| found.damage.into()));
    }
    tracing::warn!(%error, "the store was closed and needs no log: it gets a new one");
    let at = store.log_position();
    Ok(Salvaged { at, is_new_log: true, ..Salvaged::default() })
}

/// Cuts off the log on `device` at the damage that recovery of `store` failed with, if salvage was
/// requested and leaves a consistent store.
///
/// # Errors
/// The damage, or `error` if it has another cause. Nothing is changed then.
pub(crate) fn cut(
    error: RecoveryError,
    store: &PageStore,
    device: Arc<dyn Device>,
    settings: &LogSettings<'_>,
) -> Result<Salvaged, OpenLogError> {
    match &error {
        RecoveryError::Log(error) if is_damage(error) => {}
        _ => return Err(plain(error)),
    }
    let Ok(found) = examine(store, device.clone(), false, &settings.log) else {
        return Err(plain(error));
    };
    let Examined { mut damage, analysis, noted } = found;
    noted.check(store)?;
    let analysis = analysis.filter(|_| settings.salvage);
    let Some(analysis) = analysis else { return Err(damage.into()) };
    let pages = stray_pages(store, &analysis, damage.at);
    let pages_read = pages.looked_at;
    if !pages.is_empty() {
        damage.obstacle = Some(Obstacle::Pages(named(pages, &(settings.names)(store))));
        return Err(damage.into());
    }
    tracing::warn!(%damage, "the log is cut off where it is damaged");
    Log::cut(device, store.uuid(), damage.at)?;
    Ok(Salvaged { at: damage.at, lost: damage.lost, pages_read, is_new_log: false })
}

/// Converts an error; the log's own errors are reported as such.
fn plain(error: RecoveryError) -> OpenLogError {
    match error {
        RecoveryError::Log(error) => error.into(),
        other => other.into(),
    }
}

fn named(mut pages: StrayPages, names: &BTreeMap<u32, String>) -> StrayPages {
    for page in &mut pages.first {
        page.structure = page.owner.and_then(|owner| names.get(&owner).cloned());
    }
    pages
}

/// Returns the damage of the log behind `error`, if undo misses a record below the log's end;
/// `None` if the error has another cause.
pub(crate) fn undo_damage(error: &LogError, log: &Log, checkpoint: Lsn) -> Option<LogDamage> {
    let (LogError::NoRecord { path, at }
    | LogError::Missing { path, at }
    | LogError::Forgotten { path, at, .. }) = error
    else {
        return None;
    };
    (*at < log.durable()).then(|| LogDamage {
        path: path.clone(),
        at: *at,
        offset: None,
        checkpoint,
        lost: LostRecords::default(),
        durable: None,
        was_closed: false,
        obstacle: Some(Obstacle::Undo),
    })
}
