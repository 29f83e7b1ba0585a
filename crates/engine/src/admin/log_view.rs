//! Inspection of a store's log without opening the store, and trial recoveries.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use millpond_base::Lsn;
use millpond_device::{Device, FileDevice, FileOptions, OverlayDevice};

use crate::io::PageStore;
use crate::log::{Header, Log, LogOptions};
use crate::page::record_body::{Section, sections};
use crate::pool::mini_transaction::kind;
use crate::recovery::Checkpoint;
use crate::recovery::generation::Noted;
use crate::recovery::log_open::log_path;
use crate::store::error::Error;

/// A record of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LogRecord {
    /// Position at which the record begins.
    pub start: Lsn,
    /// Position at which the record ends.
    pub end: Lsn,
    /// Kind of the record.
    pub kind: &'static str,
    /// Transaction id, or 0 outside transactions.
    pub tx: u64,
    /// Position of the transaction's previous record.
    pub prev: Lsn,
    /// Summary of the record, a word or two for each section.
    pub what: String,
}

fn name_of(number: u8) -> &'static str {
    match number {
        kind::PAGES => "pages",
        kind::UPDATE => "update",
        kind::COMPENSATION => "compensation",
        kind::COMMIT => "commit",
        kind::ABORT => "abort",
        kind::CHECKPOINT => "checkpoint",
        kind::CHECKPOINT_PART => "checkpoint part",
        kind::SUPERBLOCK => "superblock",
        _ => "unknown",
    }
}

fn describe(body: &[u8]) -> String {
    let words = sections(body).map(|section| match section {
        Ok(Section::Image { page, .. }) => format!("image of page {page}"),
        Ok(Section::Difference { page, .. }) => format!("difference in page {page}"),
        Ok(Section::Physiological { page, bytes }) => {
            format!("note of {} bytes on page {page}", bytes.len())
        }
        Ok(Section::Taken { page }) => format!("page {page} taken"),
        Ok(Section::Freed { page }) => format!("page {page} freed"),
        Ok(Section::Orphaned { page, .. }) => format!("page {page} hangs"),
        Ok(Section::Attached { page }) => format!("page {page} placed"),
        Ok(Section::Undo { head, tail }) => {
            format!("undo of {} bytes", head.len() + tail.len())
        }
        Ok(Section::UndoNext { lsn }) => format!("undo next {}", lsn.0),
        Ok(Section::Rows { owner, change: Some(change) }) => {
            format!("{change:+} entries in tree {owner}")
        }
        Ok(Section::Rows { owner, change: None }) => format!("tree {owner} made"),
        Err(error) => error.to_string(),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Describes a SUPERBLOCK record; one of generation 0 makes no claim.
fn superblock(header: &Header, body: &[u8]) -> String {
    let mut noted = Noted::default();
    noted.record(header, body);
    match noted.generation {
        0 => String::new(),
        generation => format!("generation {generation} is durable"),
    }
}

/// The device of a store and that of its log.
pub type DevicePair = (Arc<dyn Device>, Arc<dyn Device>);

/// Opens the devices of the store at `path` and of its log for reading only; writes stay in memory.
/// With [`Db::open_on_devices`](crate::Db::open_on_devices) a recovery can be tried on them.
///
/// # Errors
/// One of the files cannot be opened, or is in use; [`Error::NoLogFile`].
pub fn trial_devices(path: &Path) -> Result<DevicePair, Error> {
    let options = FileOptions { read_only: true, ..FileOptions::default() };
    let trial =
        |file: FileDevice| -> Arc<dyn Device> { Arc::new(OverlayDevice::new(Arc::new(file))) };
    let (data, log) = (trial(PageStore::open_file(path, &options)?), log_path(path));
    if !log.exists() {
        return Err(Error::NoLogFile { path: path.to_path_buf(), log });
    }
    Ok((data, trial(FileDevice::open(&log, &options)?)))
}

/// Passes the records of the log of the store at `path` to `visit` until it returns `false`. Starts
/// at `from`, or where a recovery would start. Nothing is changed.
///
/// # Errors
/// The files cannot be read, are in use, or hold no log.
pub fn read_log(
    path: &Path,
    from: Option<Lsn>,
    mut visit: impl FnMut(LogRecord) -> bool,
) -> Result<(), Error> {
    let (data, log) = trial_devices(path)?;
    let store = PageStore::salvage_on(data, None)?;
    let position = store.log_position();
    if position == Lsn(0) {
        return Err(Error::NoLog { path: path.to_path_buf() });
    }
    let options = LogOptions { flush_interval: Duration::ZERO, ..LogOptions::default() };
    let (log, _) = Log::open(log, store.uuid(), position, &options)?;
    let begin = match from {
        Some(from) => from,
        None => Checkpoint::read(&log, position)?.redo,
    };
    let mut reader = log.reader(begin);
    while let Some((start, header, body)) = reader.next_record()? {
        let what = match header.kind {
            kind::CHECKPOINT | kind::CHECKPOINT_PART => String::new(),
            kind::SUPERBLOCK => superblock(&header, body),
            _ => describe(body),
        };
        let (end, tx, prev) = (header.end, header.tx, header.prev);
        if !visit(LogRecord { start, end, kind: name_of(header.kind), tx, prev, what }) {
            break;
        }
    }
    Ok(())
}
