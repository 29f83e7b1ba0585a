//! Which superblock is durable: it is in the log, because a drive may return an older one.
//!
//! A superblock that the drive lost, or reads as it was before, is right in itself: its checksum
//! fits, the checkpoint that it names may still be in the log, and the nodes of its page map may
//! still be where it says. But places that were freed since have other pages by now; and what is
//! done by that map spoils what the true one names. So superblocks have generations:
//!
//! 1. When the superblock of a generation is durable, a SUPERBLOCK record with it is appended to
//!    the log, and made durable. Only then are the places free that the superblock's page map does
//!    without ([`note`]).
//! 2. An opening that finds a later generation in the log than in the superblock that it read is an
//!    error, before anything is written. Otherwise it makes the superblock durable as it was read,
//!    and notes it in the log, if that was not done ([`settle`]).
//! 3. A generation is the LSN of a record that was durable before the superblock was written: of
//!    the checkpoint, or of one for its sake. The superblock of a clean close has the next number.
//!    So none is given twice, whatever an older superblock led to meanwhile.
//!
//! So nothing is written to a place that the page map of an older superblock names, unless a record
//! behind the checkpoint of that one tells that it is older. A superblock that is durable and not
//! in the log, because the power failed in between, is the newest, and the one before it is as
//! good: no place was used since which that one's map has.

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

/// The latest superblock of which a log says that it was durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Noted {
    /// The generation; 0 for none.
    pub generation: u64,
    /// Position of the generation's record.
    pub at: Lsn,
}

impl Noted {
    /// Takes in a record, of whatever kind.
    pub(crate) fn record(&mut self, header: &Header, mut body: &[u8]) {
        if header.kind != kind::SUPERBLOCK {
            return;
        }
        if let Some(generation) = take_varint(&mut body).filter(|found| *found > self.generation) {
            *self = Noted { generation, at: header.start };
        }
    }

    /// Reads the generations in `log` from the record at `from` on.
    ///
    /// # Errors
    /// If it cannot be read.
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

/// Refuses a store whose log, which nothing is written to, knows of a later superblock. A log that
/// is missing or cannot be read says nothing: a closed store does not need it.
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

/// Has the log say, durably, that the superblock of `generation` is durable.
///
/// # Errors
/// If the log does not become durable.
pub(crate) fn note(log: &Log, generation: u64) -> Result<(), LogError> {
    append(log, generation).map(drop)
}

/// Appends the record, and returns where it begins when it is durable.
fn append(log: &Log, generation: u64) -> Result<Lsn, LogError> {
    let mut body = Vec::new();
    put_varint(&mut body, generation);
    let record = Record { kind: kind::SUPERBLOCK, tx: 0, prev: Lsn(0), parts: &[&body] };
    let appended = log.append(&record);
    log.wait_durable(appended.end)?;
    Ok(appended.start)
}

/// Makes room in `store` during redo: its page map is made durable as it is.
///
/// # Errors
/// The device or the log fails.
pub(super) fn save_map(store: &PageStore, log: &Log) -> Result<(), RecoveryError> {
    // It claims nothing: the last superblock that was written may not be durable.
    let lsn = append(log, 0)?;
    store.save_map(lsn, |generation| Ok(note(log, generation)?))
}

/// Makes sure that the superblock of `store`, as it was read, is the latest of which `log` knows,
/// which is `noted`, and will be from now on. Before, nothing is written to the store.
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

    /// A claim that is not true would refuse the store for ever.
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
