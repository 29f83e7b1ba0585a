//! What becomes of a store whose log is damaged: an error that says what is lost, or, where that
//! was asked for, the store as it was at the damage.
//!
//! `recovery/examine.rs` argues when that can be had, and `log/cut.rs` in which order the log is
//! cut so that a crash may interrupt it. Everything is looked at before anything is written. Once
//! the log is cut, the store is one that a crash left, and opening it is what it always is: so a
//! salvage that was interrupted is repeated, or has become an ordinary recovery.

use std::collections::BTreeMap;
use std::sync::Arc;

use millpond_base::Lsn;

use crate::io::{Device, PageStore};
use crate::log::{Log, LogError, LogOptions};
use crate::pool::PoolError;
use crate::recovery::{
    Examined, LogDamage, LostRecords, Obstacle, RecoveryError, Salvaged, StrayPages, examine,
    stray_pages,
};
use crate::store::error::Error;
use crate::store::options::Options;

/// Finds the names of a store's structures by their ids, as far as its catalog can be read: for
/// errors. It is `admin`'s, which knows how to read a damaged store.
pub(crate) type Names = fn(&PageStore) -> BTreeMap<u32, String>;

/// Whether an error may come of damage in a log of which the rest can be read.
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

/// The log on `device` failed with `error` when `store`, which was closed, was opened. Returns
/// the report of a new log in its place, if that was asked for.
///
/// # Errors
/// It was not asked for, or it is another store's log, or another version's.
pub(crate) fn closed(
    error: LogError,
    store: &PageStore,
    device: Arc<dyn Device>,
    options: &Options,
) -> Result<Salvaged, Error> {
    let is_no_log = matches!(error, LogError::NotALog { .. });
    if !is_no_log && !is_damage(&error) {
        return Err(error.into());
    }
    if !options.lab.salvage_log {
        let found = examine(store, device, true, &LogOptions::default());
        return Err(found.map_or_else(|_| error.into(), |found| found.damage.into()));
    }
    tracing::warn!(%error, "the store was closed and needs no log: it gets a new one");
    let at = store.log_position();
    Ok(Salvaged { at, is_new_log: true, ..Salvaged::default() })
}

/// Recovering `store` from the log on `device` failed with `error`. Cuts the log off at its damage,
/// if that was asked for and leaves a store that is whole.
///
/// # Errors
/// The damage, or `error` if it is another. Nothing is changed then.
pub(crate) fn cut(
    error: RecoveryError,
    store: &PageStore,
    device: Arc<dyn Device>,
    log_options: &LogOptions,
    options: &Options,
    names: Names,
) -> Result<Salvaged, Error> {
    match &error {
        RecoveryError::Log(error) if is_damage(error) => {}
        _ => return Err(plain(error)),
    }
    let Ok(found) = examine(store, device.clone(), false, log_options) else {
        return Err(plain(error));
    };
    let Examined { mut damage, analysis } = found;
    let analysis = analysis.filter(|_| options.lab.salvage_log);
    let Some(analysis) = analysis else { return Err(damage.into()) };
    let pages = stray_pages(store, &analysis, damage.at);
    let pages_read = pages.looked_at;
    if !pages.is_empty() {
        damage.obstacle = Some(Obstacle::Pages(named(pages, &names(store))));
        return Err(damage.into());
    }
    tracing::warn!(%damage, "the log is cut off where it is damaged");
    Log::cut(device, store.uuid(), damage.at)?;
    Ok(Salvaged { at: damage.at, lost: damage.lost, pages_read, is_new_log: false })
}

/// The log's own errors are errors of their own here.
fn plain(error: RecoveryError) -> Error {
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

/// The same error; if it says that what a transaction is to be undone with is not in the log, what
/// that means.
pub(crate) fn undo_failed(error: Error, log: &Log, checkpoint: Lsn) -> Error {
    let (LogError::NoRecord { path, at }
    | LogError::Missing { path, at }
    | LogError::Forgotten { path, at, .. }) = (match &error {
        Error::Pool(PoolError::Log(error)) => error,
        _ => return error,
    })
    else {
        return error;
    };
    if *at >= log.durable() {
        return error;
    }
    LogDamage {
        path: path.clone(),
        at: *at,
        offset: None,
        checkpoint,
        lost: LostRecords::default(),
        durable: None,
        was_closed: false,
        obstacle: Some(Obstacle::Undo),
    }
    .into()
}

impl From<LogDamage> for Error {
    fn from(damage: LogDamage) -> Error {
        Error::LogDamaged(Box::new(damage))
    }
}
