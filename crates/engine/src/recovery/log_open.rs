//! Opens a store together with its log. If the store was not closed, its pages are brought to the
//! end of the log, and the transactions that are left to undo are returned.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use millpond_base::{Lsn, PageId};
use millpond_device::{
    Device, Errno, FileDevice, FileOptions, OpenFileError, OverlayDevice, beside,
    file::new_file::create_like, real_path,
};

use super::analysis::Loser;
use super::checkpoint::Checkpoint;
use super::error::{OpenLogError, RecoveryError};
use super::generation::{self, Noted};
use super::log_salvage;
use super::log_settings::LogSettings;
use super::redo::RedoOptions;
use super::report::Recovery;
use super::run;
use crate::btree::apply_redo_note;
use crate::io::{OpenError, PageStore, superblock_of};
use crate::log::{Log, LogError, LogOptions, Tail};
use crate::page::PageSize;
use crate::page::record_body::OrphanRoot;
use crate::page::superblock::{Compression, Placement};
use crate::pool::mini_transaction::kind;

/// Returns the path of the log of the store at `path`: beside the store's file, even if `path` is a
/// symbolic link to that file.
pub fn log_path(path: &Path) -> PathBuf {
    beside(path, "-log")
}

/// A store's log, opened.
pub(crate) struct OpenedLog {
    pub(crate) log: Arc<Log>,
    /// Transactions to undo. The pages have their state at the end of the log.
    pub(crate) losers: Vec<Loser>,
    /// Orphan roots, to which nothing refers.
    pub(crate) orphans: Vec<(PageId, OrphanRoot)>,
    pub(crate) next_tx: u64,
    /// Number of entries of each tree, by owner id, before losers are undone.
    pub(crate) rows: Vec<(u32, u64)>,
    /// The recovery that ran, if the store was not closed.
    pub(crate) recovery: Option<Recovery>,
}

/// The pages of a store whose log has not been opened yet.
pub(crate) struct Unopened {
    pub(crate) pages: PageStore,
    /// True if the store was not closed, and needs its log to become consistent.
    needs_recovery: bool,
}

impl OpenedLog {
    fn fresh(log: Log) -> OpenedLog {
        let (losers, orphans) = (Vec::new(), Vec::new());
        let (log, rows) = (Arc::new(log), Vec::new());
        OpenedLog { log, losers, orphans, next_tx: 1, rows, recovery: None }
    }
}

/// Opens a store's log at the superblock's log position: that of the last checkpoint's record, or 0
/// before the first checkpoint.
fn open_log(
    device: Arc<dyn Device>,
    pages: &PageStore,
    options: &LogOptions,
) -> Result<(Log, Tail), LogError> {
    match pages.log_position() {
        Lsn(0) => Log::open(device, pages.uuid(), Lsn(0), options),
        checkpoint => Log::open_from_record(device, pages.uuid(), checkpoint, options),
    }
}

/// Returns whether the store of the log on `device` was ever open. The first checkpoint ends the
/// creation of a store, and an open store appends records behind it. Returns `false` if the device
/// holds no log, and `true` if the device fails, since nobody knows then.
pub(crate) fn was_in_use(device: Arc<dyn Device>) -> bool {
    device.length() > 0
        && Log::goes_on_behind(device, kind::CHECKPOINT).unwrap_or_else(|error| {
            tracing::debug!(%error, "the log of a store without a superblock says nothing");
            matches!(error, LogError::Read(_))
        })
}

/// Creates a store and its log.
pub(crate) fn create(
    device: Arc<dyn Device>,
    log: Arc<dyn Device>,
    page_size: PageSize,
    placement: Placement,
    compression: Compression,
    options: &LogOptions,
) -> Result<(PageStore, OpenedLog), OpenLogError> {
    let pages = PageStore::create_unmarked_on(device, page_size, placement, compression)?;
    let log = Log::create(log, pages.uuid(), pages.lsn_floor(), options)?;
    Ok((pages, OpenedLog::fresh(log)))
}

/// Opens the pages of the store on `device`, which holds one; `log` returns the device of its log.
pub(crate) fn open_pages(
    device: Arc<dyn Device>,
    page_size: Option<PageSize>,
    log: impl FnOnce() -> Result<Arc<dyn Device>, OpenLogError>,
) -> Result<Unopened, OpenLogError> {
    let opened = PageStore::open_with_log(device.clone(), page_size);
    let opened = opened.map_err(|error| map_error(error, &*device, log));
    opened.map(|(pages, needs_recovery)| Unopened { pages, needs_recovery })
}

/// Converts the error with which the store on `device` failed to open. If its page map cannot be
/// read, the superblock may be older than the log and the map may be gone; the error then reports
/// that.
fn map_error(
    error: OpenError,
    device: &dyn Device,
    log: impl FnOnce() -> Result<Arc<dyn Device>, OpenLogError>,
) -> OpenLogError {
    if let OpenError::PageMap(_) = error
        && let Ok(superblock) = superblock_of(device, None)
        && let Err(older) = generation::check(device.path(), &superblock, log)
    {
        return older.into();
    }
    error.into()
}

/// Opens the store on `device` to read it, if it was closed. Its log, if there is one, shows
/// whether the superblock is the latest. The store must have the `page_size`; `None` accepts any.
pub(crate) fn open_to_read(
    device: Arc<dyn Device>,
    page_size: Option<PageSize>,
    file: &FileOptions,
) -> Result<PageStore, OpenLogError> {
    let log = || log_file(device.path(), false, file);
    let opened = PageStore::open_on(device.clone(), page_size, true);
    let pages = opened.map_err(|error| map_error(error, &*device, log))?;
    if let Some(superblock) = pages.superblock() {
        generation::check(pages.path(), superblock, log)?;
    }
    Ok(pages)
}

/// Reads the trees' numbers of entries from the log on `device` of a closed store, and checks that
/// the superblock is the latest. Opening the store needs nothing else of the log. Nothing is
/// written.
///
/// # Errors
/// As opening the store.
pub(crate) fn read_closed(
    pages: &PageStore,
    device: Arc<dyn Device>,
) -> Result<Vec<(u32, u64)>, OpenLogError> {
    let position = pages.log_position();
    let options = LogOptions { flush_interval: Duration::ZERO, ..LogOptions::default() };
    let (log, _) = open_log(Arc::new(OverlayDevice::new(device)), pages, &options)?;
    let Checkpoint { rows, .. } = Checkpoint::read(&log, position)?;
    Noted::behind(&log, position)?.check(pages)?;
    Ok(rows)
}

/// Opens the log of a store, and recovers the store if it was not closed. `log(false)` returns the
/// log's device, `log(true)` a new and empty one.
pub(crate) fn open(
    store: Unopened,
    log: impl Fn(bool) -> Result<Arc<dyn Device>, OpenLogError>,
    settings: &LogSettings<'_>,
) -> Result<(PageStore, OpenedLog), OpenLogError> {
    let pages = store.pages;
    let opened = if store.needs_recovery {
        let device = log(false)?;
        if device.length() == 0 {
            return Err(OpenLogError::Missing { path: device.path().to_path_buf() });
        }
        open_unclosed(&pages, device, settings)?
    } else {
        open_closed(&pages, log, settings)?
    };
    Ok((pages, opened))
}

/// Opens the log of a store that was closed, or creates one if it has none.
fn open_closed(
    pages: &PageStore,
    log: impl Fn(bool) -> Result<Arc<dyn Device>, OpenLogError>,
    settings: &LogSettings<'_>,
) -> Result<OpenedLog, OpenLogError> {
    let position = pages.log_position();
    let old = match position.0 {
        0 => None,
        _ => match log(false) {
            Err(OpenLogError::Missing { .. }) => None,
            found => Some(found?),
        },
    };
    let Some(old) = old.filter(|device| device.length() > 0) else {
        // The store is whole without it.
        pages.confirm().map_err(RecoveryError::from)?;
        let log = Log::create(log(true)?, pages.uuid(), pages.lsn_floor(), &settings.log)?;
        return Ok(OpenedLog::fresh(log));
    };
    match open_log(old.clone(), pages, &settings.log) {
        Ok((log, _)) => {
            let Checkpoint { next_tx, orphans, rows, .. } = Checkpoint::read(&log, position)?;
            generation::settle(pages, &log, Noted::behind(&log, position)?)?;
            Ok(OpenedLog { orphans, next_tx, rows, ..OpenedLog::fresh(log) })
        }
        Err(error) => {
            let salvaged = log_salvage::closed(error, pages, old, settings.salvage)?;
            pages.confirm().map_err(RecoveryError::from)?;
            let device = log(true)?;
            Log::wipe(&*device)?;
            let log = Log::create(device, pages.uuid(), pages.lsn_floor(), &settings.log)?;
            let recovery = Recovery { salvaged: Some(salvaged), ..Recovery::default() };
            Ok(OpenedLog { recovery: Some(recovery), ..OpenedLog::fresh(log) })
        }
    }
}

/// Opens the log of a store that was not closed, and brings its pages to the log's end.
fn open_unclosed(
    pages: &PageStore,
    device: Arc<dyn Device>,
    settings: &LogSettings<'_>,
) -> Result<OpenedLog, OpenLogError> {
    let error = match recover(pages, device.clone(), settings) {
        Ok(opened) => return Ok(opened),
        Err(error) => error,
    };
    let salvaged = log_salvage::cut(error, pages, device.clone(), settings)?;
    let mut opened = recover(pages, device, settings)?;
    if let Some(recovery) = &mut opened.recovery {
        recovery.salvaged = Some(salvaged);
    }
    Ok(opened)
}

fn recover(
    pages: &PageStore,
    device: Arc<dyn Device>,
    settings: &LogSettings<'_>,
) -> Result<OpenedLog, RecoveryError> {
    let _span = tracing::info_span!("recovery", store = %pages.path().display()).entered();
    let (log, tail) = open_log(device, pages, &settings.log)?;
    let started = std::time::Instant::now();
    let mut progress = |progress| (settings.progress)(progress);
    let options = RedoOptions { memory_bytes: settings.memory, ..RedoOptions::default() };
    let recovered = run::recover(pages, &log, apply_redo_note, &options, &mut progress)?;
    let analysis = recovered.analysis;
    tracing::info!(
        records = analysis.records,
        bytes = analysis.bytes,
        passes = recovered.redone.passes,
        redo_bytes = recovered.redone.bytes,
        losers = analysis.losers.len(),
        end = tail.end.0,
        seconds = started.elapsed().as_secs_f64(),
        "the store was recovered up to the end of its log"
    );
    debug_assert_eq!(analysis.end, tail.end, "analysis reads the log to the end that was found");
    let orphans = analysis.space.orphans().iter().map(|(page, root)| (*page, *root));
    let orphans = orphans.collect();
    let (next_tx, rows) = (analysis.next_tx, analysis.rows);
    let recovery = Recovery {
        records: analysis.records,
        log_bytes: analysis.bytes,
        cut_bytes: tail.cut.map_or(0, |cut| cut.until.0.saturating_sub(tail.end.0)),
        pages: recovered.redone.pages,
        losers: analysis.losers.len() as u64,
        elapsed: started.elapsed(),
        ..Recovery::default()
    };
    let losers = analysis.losers.into_iter().collect();
    let (log, recovery) = (Arc::new(log), Some(recovery));
    Ok(OpenedLog { log, losers, orphans, next_tx, rows, recovery })
}

/// Opens the log's file beside the store at `path`. With `empty`, replaces it by a new file
/// instead.
pub(crate) fn log_file(
    path: &Path,
    empty: bool,
    file: &FileOptions,
) -> Result<Arc<dyn Device>, OpenLogError> {
    // The name may be a link to the log's real path.
    let (store, path) = (path, real_path(&log_path(path)));
    let exists = path.exists();
    if exists && !empty {
        return Ok(Arc::new(FileDevice::open(&path, file)?));
    }
    if !empty {
        return Err(OpenLogError::Missing { path });
    }
    if exists {
        // The store that is being opened does not need the old log, whatever it holds.
        let removed = std::fs::remove_file(&path);
        removed.map_err(|source| OpenLogError::OldLog {
            path: path.clone(),
            reason: source.to_string(),
        })?;
    }
    let refused = |error: std::io::Error| {
        let (path, errno) = (path.clone(), Errno::of(&error));
        OpenLogError::File(OpenFileError::Io { path, errno })
    };
    drop(create_like(&path, store).map_err(refused)?);
    let create = || -> Result<FileDevice, OpenLogError> {
        let device = FileDevice::create(&path, file)?;
        device.sync_directory()?;
        Ok(device)
    };
    match create() {
        Ok(device) => Ok(Arc::new(device)),
        Err(error) => {
            // The file is still empty.
            let _ = std::fs::remove_file(&path);
            Err(error)
        }
    }
}
