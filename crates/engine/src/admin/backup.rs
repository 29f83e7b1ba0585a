//! Backups of a store that is in use.
//!
//! # How
//! 1. A checkpoint is taken. From then on the log keeps everything that a recovery from it reads:
//!    other checkpoints may follow, but release nothing of that.
//! 2. The pages in use at the checkpoint are copied from storage as they are, in steps of 1 MiB,
//!    without a latch or a lock. Readers and writers continue.
//! 3. The log is made durable, and copied from the checkpoint's first record to its durable end.
//!    This is the backup's cut: it has everything that had been appended to the log when the last
//!    page was copied.
//! 4. The copy gets a superblock that names that checkpoint, and is in the state after a crash.
//!    Opening it recovers it, like any other store.
//!
//! # Why that is consistent
//! By the rules of `recovery/README.md`. Either a copied page was not written between the
//! checkpoint's first step and its copy, or it was.
//! - If not: it was clean at that step, or its image is in the log behind `redo` (rules 1 and 2.1).
//!   If it was clean, the sync that followed made the copied bytes durable, and any later change
//!   begins with an image that the log has (L3). That is rule 5.
//! - If so: it was dirty, or being written, at or after that step. So all its records since it was
//!   last clean, the first of them an image, begin at or behind `redo`. They end before its
//!   pageLSN. The log was durable up to there before the write began, so they are before the cut.
//!   Recovery rebuilds the page from that image (rule 8) and never reads the copied bytes: old,
//!   new, or torn.
//!
//! Pages that were free in the checkpoint's map and are used since begin with an image (rule 6), so
//! zeros in their place lose nothing. Map, orphan roots and transactions come from the checkpoint
//! and the log behind it. The log's part is a log that ends at the end of a record, with nothing
//! behind it.
//!
//! # Contents
//! A backup has everything that was committed, with any durability, before
//! [`Db::backup_to`](crate::Db::backup_to) was called. Of the commits during the call it has a
//! prefix: all up to one position of the log, and none behind it. It has no transactions that had
//! not committed by then.
//!
//! # Id of a backup
//! A copied log must keep the store's id, because each record's checksum contains it. But two
//! stores with one id must not diverge. The log of one would be taken for the other's, and its
//! records applied to the wrong pages. So a backup in a file is finished: it is opened once, which
//! recovers it, closed, given its own id, and left without a log. A closed store needs no log, and
//! gets one when it is opened. A backup by [`Db::backup_to_devices`](crate::Db::backup_to_devices)
//! is not finished, and keeps the id.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use millpond_base::{Lsn, PageId};
use millpond_device::{AlignedBuffer, Device};

use crate::io::copy::{CopyError as PageCopyError, PageCopy};
use crate::log::copy::{CopyError as LogCopyError, LogCopy};
use crate::page::superblock::Placement;
use crate::pool::{PoolError, PoolStrategy};
use crate::store::error::Error;
use crate::store::error::backup::BackupError;
use crate::store::store::Store;

/// Bytes read, and then written, at a time.
const STEP_BYTES: usize = 1 << 20;

/// Phase of a backup.
///
/// ```
/// use millpond::{Db, Options, report::BackupPhase};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// use std::ops::ControlFlow;
/// let db = Db::open(folder.path().join("pond.mp"), Options::new().memory(16 << 20))?;
/// let target = folder.path().join("monday.mp");
/// let given_up = db.backup_with(&target, &mut |progress| match progress.phase {
///     BackupPhase::Pages => ControlFlow::Break(()),
///     _ => ControlFlow::Continue(()),
/// });
/// assert!(given_up.is_err() && !target.exists());
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BackupPhase {
    /// Copying pages.
    Pages,
    /// Copying the log.
    Log,
    /// Recovering the copy; its bytes are not counted.
    Recovery,
}

/// Progress of a backup.
///
/// ```
/// use millpond::{Db, Options};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// use std::ops::ControlFlow;
/// let db = Db::open(folder.path().join("pond.mp"), Options::new().memory(16 << 20))?;
/// let mut last = None;
/// db.backup_with(folder.path().join("monday.mp"), &mut |progress| {
///     last = Some(progress);
///     ControlFlow::Continue(())
/// })?;
/// assert!(last.is_some_and(|progress| progress.done <= progress.total));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BackupProgress {
    /// Present phase.
    pub phase: BackupPhase,
    /// Bytes done in this phase.
    pub done: u64,
    /// Bytes of this phase in all.
    pub total: u64,
}

/// Observes a backup's progress; `Break` cancels it.
pub type BackupWatch<'w> = dyn FnMut(BackupProgress) -> ControlFlow<()> + 'w;

/// A completed backup.
///
/// ```
/// use millpond::{Db, Options};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let db = Db::open(folder.path().join("pond.mp"), Options::new().memory(16 << 20))?;
/// let backup = db.backup_to(folder.path().join("monday.mp"))?;
/// println!("{} bytes in {:?}", backup.page_bytes, backup.elapsed);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Backup {
    /// Bytes of copied pages, including free ones.
    pub page_bytes: u64,
    /// Bytes of the log copied.
    pub log_bytes: u64,
    /// Position of the log up to which it has everything.
    pub end: Lsn,
    /// Time that it took.
    pub elapsed: Duration,
}

impl From<PageCopyError> for Error {
    fn from(error: PageCopyError) -> Error {
        match error {
            PageCopyError::Source(error) => BackupError::Source(error).into(),
            PageCopyError::Map(error) => BackupError::Map(*error).into(),
            PageCopyError::Target(error) => BackupError::Target(error).into(),
        }
    }
}

impl From<LogCopyError> for Error {
    fn from(error: LogCopyError) -> Error {
        match error {
            LogCopyError::Log(error) => error.into(),
            LogCopyError::Target(error) => BackupError::Target(error).into(),
        }
    }
}

/// Result of the copy.
pub(crate) struct Copied {
    pub(crate) backup: Backup,
    /// Pages that failed verification when they were copied.
    pub(crate) unsound: Vec<PageId>,
}

/// Reports the progress.
pub(crate) fn tell(watch: &mut BackupWatch<'_>, progress: BackupProgress) -> Result<(), Error> {
    match watch(progress) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(BackupError::GivenUp.into()),
    }
}

fn copy_pages(
    copy: &mut PageCopy<'_>,
    target: &dyn Device,
    buffer: &mut AlignedBuffer,
    watch: &mut BackupWatch<'_>,
) -> Result<(), Error> {
    let phase = BackupPhase::Pages;
    let (done, total) = copy.progress();
    tell(watch, BackupProgress { phase, done, total })?;
    while copy.step(target, buffer)? {
        let (done, total) = copy.progress();
        tell(watch, BackupProgress { phase, done, total })?;
    }
    Ok(())
}

fn copy_log(
    copy: &mut LogCopy,
    target: &dyn Device,
    buffer: &mut AlignedBuffer,
    watch: &mut BackupWatch<'_>,
) -> Result<(), Error> {
    let phase = BackupPhase::Log;
    let (done, total) = copy.progress();
    tell(watch, BackupProgress { phase, done, total })?;
    while copy.step(target, buffer)? {
        let (done, total) = copy.progress();
        tell(watch, BackupProgress { phase, done, total })?;
    }
    Ok(target.sync().map_err(BackupError::Target)?)
}

impl<M: PoolStrategy> Store<M> {
    /// Copies the store to two empty devices, in the state after a crash.
    pub(crate) fn copy_to(
        &self,
        data: &dyn Device,
        log: &dyn Device,
        watch: &mut BackupWatch<'_>,
    ) -> Result<Copied, Error> {
        let started = Instant::now();
        let (store, target) = (self.pages().path().display(), data.path().display());
        let _span = tracing::info_span!("backup", %store, %target).entered();
        self.may_write()?;
        for target in [data, log] {
            if target.length() > 0 {
                return Err(BackupError::Exists { path: target.path().to_path_buf() }.into());
            }
        }
        let checkpointer = self.checkpointer().ok_or_else(|| self.has_no_log())?;
        let (taken, pin) = checkpointer.take_pinned()?;
        let (checkpoint, mut buffer) = (taken.checkpoint, AlignedBuffer::new(STEP_BYTES));
        let root = checkpoint.catalog_root;
        let mut pages = match self.pages().placement() {
            Placement::InPlace => self.pages().copy_pages(checkpoint.taken, checkpoint.pages),
            Placement::OutOfPlace => self.pages().copy_places(taken.map_root)?,
        };
        copy_pages(&mut pages, data, &mut buffer, watch)?;
        // Behind the last page (step 3 of the header): the copied log covers all pages copied
        // before.
        let mut records = checkpointer.log.copy(taken.kept).map_err(PoolError::Log)?;
        copy_log(&mut records, log, &mut buffer, watch)?;
        drop(pin);
        let (page_bytes, log_bytes) = (pages.progress().0, records.progress().0);
        let unsound = pages.finish(data, taken.at, root)?;
        let (end, elapsed) = (records.end(), started.elapsed());
        Ok(Copied { backup: Backup { page_bytes, log_bytes, end, elapsed }, unsound })
    }

    pub(crate) fn has_no_log(&self) -> Error {
        BackupError::NoLog { path: self.pages().path().to_path_buf() }.into()
    }

    /// See [`Db::backup_to_devices`](crate::Db::backup_to_devices).
    ///
    /// # Errors
    /// See there.
    pub fn backup_to_devices(
        &self,
        data: &Arc<dyn Device>,
        log: &Arc<dyn Device>,
        watch: &mut BackupWatch<'_>,
    ) -> Result<Backup, Error> {
        Ok(self.copy_to(&**data, &**log, watch)?.backup)
    }
}
