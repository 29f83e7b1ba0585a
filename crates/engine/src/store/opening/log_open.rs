//! A store's log: where it is, and how both are opened together.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use millpond_base::Lsn;

use crate::btree::apply_redo_note;
use crate::io::simulated::planted::planted;
use crate::io::{Device, FileDevice, OpenError, PageStore, beside};
use crate::log::{Log, LogError, LogOptions, Tail};
use crate::page::PageSize;
use crate::page::record_body::OrphanRoot;
use crate::pool::mini_transaction::kind;
use crate::recovery::{self, Loser, Recovery, RecoveryError, RedoOptions};
use crate::store::error::Error;
use crate::store::opening::log_salvage::{self, Names};
use crate::store::options::Options;
use crate::store::options::memory_limit::SystemRoots;

/// Where the log of the store at `path` is: beside its file, also where `path` is a symbolic link
/// to that.
pub fn log_path(path: &Path) -> PathBuf {
    beside(path, "-log")
}

/// A store's log, opened.
pub(crate) struct Logged {
    pub(crate) log: Arc<Log>,
    /// Transactions to be undone; the pages are as they were at the end of the log.
    pub(crate) losers: Vec<Loser>,
    /// Roots that hung.
    pub(crate) orphans: Vec<(millpond_base::PageId, OrphanRoot)>,
    pub(crate) next_tx: u64,
    /// What was done, if the store was not closed.
    pub(crate) recovery: Option<Recovery>,
}

fn log_options(options: &Options, page_size: PageSize) -> Result<LogOptions, Error> {
    let (page_size, defaults) = (page_size.bytes() as u32, LogOptions::default());
    let plan = options.plan(&SystemRoots::default(), Some(page_size))?;
    let buffer_bytes = plan.budget.log_bytes as usize;
    let segment_bytes = options.lab.log_segment.unwrap_or(defaults.segment_bytes);
    Ok(LogOptions { segment_bytes, buffer_bytes, ..defaults })
}

impl Logged {
    fn fresh(log: Log) -> Logged {
        let (losers, orphans) = (Vec::new(), Vec::new());
        Logged { log: Arc::new(log), losers, orphans, next_tx: 1, recovery: None }
    }
}

/// Opens a store's log. The store's position is that of a checkpoint's record, once there was one.
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

/// Whether the store of the log on `device` was ever open: its first checkpoint is the end of its
/// creation, and all else comes behind. An unreadable log says nothing.
pub(crate) fn was_in_use(device: Arc<dyn Device>) -> bool {
    device.length() > 0
        && Log::goes_on_behind(device, kind::CHECKPOINT).unwrap_or_else(|error| {
            tracing::debug!(%error, "the log of a store without a superblock says nothing");
            false
        })
}

/// A new store, and its log.
pub(crate) fn create(
    device: Arc<dyn Device>,
    log: Arc<dyn Device>,
    page_size: PageSize,
    options: &Options,
) -> Result<(PageStore, Logged), Error> {
    let pages = PageStore::create_unmarked_on(device, page_size)?;
    let log = Log::create(log, pages.uuid(), &log_options(options, page_size)?)?;
    Ok((pages, Logged::fresh(log)))
}

/// The store on `device`, which holds one, and its log; recovered if it was not closed. `log` gives
/// the log's device; told that it shall be empty, a new one.
pub(crate) fn open(
    device: Arc<dyn Device>,
    log: impl Fn(bool) -> Result<Arc<dyn Device>, Error>,
    page_size: Option<PageSize>,
    options: &Options,
    names: Names,
) -> Result<(PageStore, Logged), Error> {
    match PageStore::open_unmarked_on(device.clone(), page_size) {
        Ok(pages) => {
            let position = pages.log_position();
            let log_options = log_options(options, pages.page_size())?;
            let old = match position.0 {
                0 => None,
                _ => match log(false) {
                    Err(Error::LogMissing { .. }) => None,
                    found => Some(found?),
                },
            };
            let old = old.filter(|device| device.length() > 0);
            let (mut recovery, mut next_tx, mut orphans) = (None, 1, Vec::new());
            let opened = match old {
                Some(old) => match open_log(old.clone(), &pages, &log_options) {
                    Ok((log, _)) => {
                        let checkpoint = recovery::Checkpoint::read(&log, position)?;
                        (next_tx, orphans) = (checkpoint.next_tx, checkpoint.orphans);
                        log
                    }
                    Err(error) => {
                        let salvaged = log_salvage::closed(error, &pages, old, options)?;
                        recovery =
                            Some(Recovery { salvaged: Some(salvaged), ..Recovery::default() });
                        let device = log(true)?;
                        Log::wipe(&*device)?;
                        Log::create(device, pages.uuid(), &log_options)?
                    }
                },
                // The store is whole without it.
                None => Log::create(log(true)?, pages.uuid(), &log_options)?,
            };
            Ok((pages, Logged { orphans, next_tx, recovery, ..Logged::fresh(opened) }))
        }
        Err(OpenError::NeedsRecovery { .. }) => {
            let pages = PageStore::open_to_recover(device, page_size)?;
            let (log, log_options) = (log(false)?, log_options(options, pages.page_size())?);
            let logged = match recover(&pages, log.clone(), &log_options, options) {
                Ok(logged) => logged,
                Err(error) => {
                    let salvaged =
                        log_salvage::cut(error, &pages, log.clone(), &log_options, options, names)?;
                    let mut logged = recover(&pages, log, &log_options, options)?;
                    if let Some(recovery) = &mut logged.recovery {
                        recovery.salvaged = Some(salvaged);
                    }
                    logged
                }
            };
            Ok((pages, logged))
        }
        Err(error) => Err(error.into()),
    }
}

fn recover(
    pages: &PageStore,
    device: Arc<dyn Device>,
    log_options: &LogOptions,
    options: &Options,
) -> Result<Logged, RecoveryError> {
    let (log, tail) = open_log(device, pages, log_options)?;
    let started = std::time::Instant::now();
    let recovered = recovery::recover(
        pages,
        &log,
        apply_redo_note,
        &RedoOptions::default(),
        &mut |progress| options.recovery_watch.tell(progress),
    )?;
    let analysis = recovered.analysis;
    tracing::info!(
        records = analysis.records,
        bytes = analysis.bytes,
        losers = analysis.losers.len(),
        end = tail.end.0,
        seconds = started.elapsed().as_secs_f64(),
        "the store was recovered up to the end of its log"
    );
    let orphans = analysis.space.orphans().iter().map(|(page, root)| (*page, *root));
    let orphans = orphans.filter(|_| !planted!(OrphansNotRestored)).collect();
    let next_tx = analysis.next_tx;
    let recovery = Recovery {
        records: analysis.records,
        log_bytes: analysis.bytes,
        cut_bytes: tail.cut.map_or(0, |cut| cut.until.0.saturating_sub(tail.end.0)),
        pages: recovered.redone.pages,
        losers: analysis.losers.len() as u64,
        elapsed: started.elapsed(),
        ..Recovery::default()
    };
    let losers = analysis.losers.into_iter().filter(|_| !planted!(LosersNotUndone));
    let (log, losers, recovery) = (Arc::new(log), losers.collect(), Some(recovery));
    Ok(Logged { log, losers, orphans, next_tx, recovery })
}

/// The log's file beside the store at `path`; a new one if it shall be `empty`.
pub(crate) fn log_file(
    path: &Path,
    empty: bool,
    options: &Options,
) -> Result<Arc<dyn Device>, Error> {
    let path = log_path(path);
    let file = options.file_options();
    let exists = path.exists();
    if exists && !empty {
        return Ok(Arc::new(FileDevice::open(&path, &file)?));
    }
    if !empty {
        return Err(Error::LogMissing { path });
    }
    if exists {
        // Whatever it holds, the store that is open does without.
        std::fs::remove_file(&path)
            .map_err(|source| Error::OldLog { path: path.clone(), reason: source.to_string() })?;
    }
    let device = FileDevice::create(&path, &file)?;
    device.sync_directory()?;
    Ok(Arc::new(device))
}
