//! Superblock generations: the log notes which superblock is durable, because a drive may return an
//! older one.
//!
//! An older superblock that the drive returns looks valid. Its checksum fits, the checkpoint that
//! it names may still be in the log, and the nodes of its page map may still be in their places.
//! But places freed since then hold other pages by now, and writes by the old map would overwrite
//! pages that the newest map names. So superblocks have generations:
//!
//! 1. Once the superblock of a generation is durable, a SUPERBLOCK record with that generation is
//!    appended to the log and made durable. Only then do the places become free that the
//!    superblock's page map no longer uses ([`note`]).
//! 2. Opening fails, before anything is written, if the log has a later generation than the
//!    superblock that was read. Otherwise opening makes the superblock durable as it was read, and
//!    notes it in the log if that had not been done ([`settle`]).
//! 3. A generation is the LSN of a record that was durable before the superblock was written: the
//!    checkpoint's record, or one appended only for its LSN. The superblock of a clean close has
//!    the next number. So no generation is assigned twice, even if the store ran from an older
//!    superblock in the meantime.
//!
//! So no write goes to a place that the page map of an older superblock names, unless a record
//! behind that superblock's checkpoint shows that it is older. After a power failure, the newest
//! superblock may be durable but not yet noted in the log. The one before it is then as good: no
//! place in its map has been used since.

use std::path::Path;
use std::sync::Arc;

use millpond_base::Lsn;
use millpond_device::Device;

use super::error::{OpenLogError, RecoveryError};
use crate::io::PageStore;
use crate::log::{Header, Log, LogError, Record};
use crate::page::superblock::Superblock;
use crate::page::varint::{put_varint, take_varint};
use crate::pool::mini_transaction::kind;

/// The latest superblock that a log notes as durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Noted {
    /// Generation of the superblock; 0 for none.
    pub generation: u64,
    /// Position of its SUPERBLOCK record.
    pub at: Lsn,
}

impl Noted {
    /// Updates the finding if the record is a SUPERBLOCK record of a later generation.
    pub(crate) fn record(&mut self, header: &Header, mut body: &[u8]) {
        if header.kind != kind::SUPERBLOCK {
            return;
        }
        if let Some(generation) = take_varint(&mut body).filter(|found| *found > self.generation) {
            *self = Noted { generation, at: header.start };
        }
    }

    /// Returns the latest superblock that `log` notes from the record at `from` on.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub(super) fn behind(log: &Log, from: Lsn) -> Result<Noted, LogError> {
        let mut noted = Noted::default();
        let mut reader = log.reader(from);
        while let Some((_, header, body)) = reader.next_record()? {
            noted.record(&header, body);
        }
        Ok(noted)
    }

    /// Refuses a store whose superblock is older than this one.
    ///
    /// # Errors
    /// [`RecoveryError::OlderSuperblock`].
    pub(super) fn check(self, store: &PageStore) -> Result<(), RecoveryError> {
        self.check_found(store.path(), store.generation())
    }

    fn check_found(self, path: &Path, found: u64) -> Result<(), RecoveryError> {
        if found >= self.generation {
            return Ok(());
        }
        let (path, Noted { generation, at }) = (path.to_path_buf(), self);
        Err(RecoveryError::OlderSuperblock { path, found, durable: generation, at })
    }
}

/// Refuses a store whose log notes a later superblock; writes nothing to the log. A log that is
/// missing or cannot be read is ignored: a closed store does not need it.
///
/// # Errors
/// [`RecoveryError::OlderSuperblock`].
pub(super) fn check(
    path: &Path,
    superblock: &Superblock,
    log: impl FnOnce() -> Result<Arc<dyn Device>, OpenLogError>,
) -> Result<(), RecoveryError> {
    let (mut noted, from) = (Noted::default(), superblock.log_position);
    if from == Lsn(0) {
        return Ok(());
    }
    let mut visit = |header: &Header, body: &[u8]| noted.record(header, body);
    let walked = log().and_then(|log| Ok(Log::walk(log, superblock.uuid, from, &mut visit)?));
    if let Err(error) = walked {
        tracing::debug!(%error, "the log does not say which superblock is durable");
    }
    noted.check_found(path, superblock.generation)
}

/// Notes in the log that the superblock of `generation` is durable, and waits until the note is
/// durable, too.
///
/// # Errors
/// If the log does not become durable.
pub(crate) fn note(log: &Log, generation: u64) -> Result<(), LogError> {
    append(log, generation).map(drop)
}

/// Appends a SUPERBLOCK record, waits until it is durable, and returns its start.
fn append(log: &Log, generation: u64) -> Result<Lsn, LogError> {
    let mut body = Vec::new();
    put_varint(&mut body, generation);
    let record = Record { kind: kind::SUPERBLOCK, tx: 0, prev: Lsn(0), parts: &[&body] };
    let appended = log.append(&record);
    log.wait_durable(appended.end)?;
    Ok(appended.start)
}

/// Makes room in `store` during redo by making its page map durable.
///
/// # Errors
/// The device or the log fails.
pub(super) fn save_map(store: &PageStore, log: &Log) -> Result<(), RecoveryError> {
    // Generation 0 claims nothing: the last superblock that was written may not be durable.
    let lsn = append(log, 0)?;
    store.save_map(lsn, |generation| Ok(note(log, generation)?))
}

/// Refuses `store` if its superblock is older than `noted`, the latest one in `log`. Otherwise
/// makes the superblock durable as it was read, and notes it in the log. Nothing is written to the
/// store before that check.
///
/// # Errors
/// [`RecoveryError::OlderSuperblock`]; or the device or the log fails.
pub(super) fn settle(store: &PageStore, log: &Log, noted: Noted) -> Result<(), RecoveryError> {
    noted.check(store)?;
    store.confirm()?;
    if noted.generation < store.generation() {
        note(log, store.generation())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::LogOptions;
    use crate::page::PageSize;
    use crate::page::superblock::{Compression, Placement};
    use millpond_device::{FaultyDevice, MemoryDevice};

    /// If it were noted, the store could never be opened again.
    #[test]
    fn a_superblock_that_could_not_be_written_is_not_noted_by_the_next_one() {
        let device = Arc::new(FaultyDevice::new(Arc::new(MemoryDevice::new()), 1));
        let (size, placement) = (PageSize::KIB_4, Placement::OutOfPlace);
        let store =
            PageStore::create_unmarked_on(device.clone(), size, placement, Compression::None)
                .unwrap();
        let log = Arc::new(MemoryDevice::new());
        let log = Log::create(log, store.uuid(), Lsn(0), &LogOptions::default()).unwrap();
        let begin = append(&log, 0).unwrap();
        let durable = store.set_log_position(begin, None, None).unwrap();
        note(&log, durable).unwrap();
        device.fail_writes_at(0);
        store.set_log_position(Lsn(begin.0 + 8), None, None).unwrap_err();
        assert!(store.generation() > durable);
        save_map(&store, &log).unwrap_err();
        let noted = Noted::behind(&log, begin).unwrap();
        assert_eq!(noted.generation, durable);
    }
}
