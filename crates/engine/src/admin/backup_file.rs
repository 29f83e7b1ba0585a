//! A backup in a file: written under another name, recovered, closed, and renamed at the end.
//!
//! Until then it is beside the target, as `TARGET-partial` and `TARGET-partial-log`. Any failure
//! removes both. A process that dies leaves them, and a later backup to the same place reports
//! them, because it cannot know whether the other one still runs.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::{CWD, RenameFlags};

use crate::admin::backup::{Backup, BackupPhase, BackupProgress, BackupWatch, tell};
use crate::io::PageStore;
use crate::io::copy::first_damaged;
use crate::page::superblock::Compression;
use crate::pool::PoolStrategy;
use crate::recovery::log_open::log_path;
use crate::store::error::Error;
use crate::store::error::backup::BackupError;
use crate::store::opening::Builder;
use crate::store::options::Options;
use crate::store::store::Store;
use millpond_device::file::new_file::{create_like, sync_folder_of};
use millpond_device::{Device, FileDevice, FileOptions, Process};

/// Maximum number of frames for recovering the copy; redo takes no more memory than these.
const FRAMES_MAX: u32 = 4096;

/// The two files, which are removed unless they are put in place.
struct Partial {
    data: PathBuf,
    log: PathBuf,
    is_placed: bool,
    /// The process that created them: a child of it leaves them alone.
    process: Process,
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.process.is_this() {
            return;
        }
        // Nothing can be done about a file that cannot be removed; the next backup names it.
        let _ = fs::remove_file(&self.log);
        if !self.is_placed {
            let _ = fs::remove_file(&self.data);
        }
    }
}

fn misplaced(path: &Path, error: impl ToString) -> Error {
    BackupError::Place { path: path.to_path_buf(), reason: error.to_string() }.into()
}

/// Creates a file at `path`, with the mode and owner of the file at `store`.
fn create(path: &Path, store: &Path) -> Result<(), Error> {
    create_like(path, store).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            BackupError::Unfinished { path: path.to_path_buf() }.into()
        }
        _ => misplaced(path, error),
    })?;
    Ok(())
}

/// Creates the file for the data of a backup; its requests are multiples of `unit` bytes.
fn data_device(path: &Path, unit: u64) -> Result<FileDevice, Error> {
    let device = FileDevice::create(path, &FileOptions::default())?;
    if unit.is_multiple_of(device.alignment().offset.max(1)) {
        return Ok(device);
    }
    device.release();
    drop(device);
    Ok(FileDevice::create(path, &FileOptions { direct: false, ..FileOptions::default() })?)
}

impl Partial {
    /// Creates two files for a backup of the store at `store` to `target`, which must not exist.
    /// The pages take multiples of `unit` bytes.
    fn new(
        target: &Path,
        store: &Path,
        unit: u64,
    ) -> Result<(Partial, [Arc<dyn Device>; 2]), Error> {
        for path in [target.to_path_buf(), log_path(target)] {
            if path.symlink_metadata().is_ok() {
                return Err(BackupError::Exists { path }.into());
            }
        }
        let mut name = OsString::from(target);
        name.push("-partial");
        let data = PathBuf::from(name);
        let log = log_path(&data);
        create(&data, store)?;
        create(&log, store).inspect_err(|_| drop(fs::remove_file(&data)))?;
        // From here on this process removes them.
        let partial = Partial { data, log, is_placed: false, process: Process::this() };
        let device = Arc::new(data_device(&partial.data, unit)?);
        let log_device = Arc::new(FileDevice::create(&partial.log, &FileOptions::default())?);
        Ok((partial, [device, log_device]))
    }

    /// Renames the durable data file to the target, and never replaces a file of that name.
    fn place(mut self, device: &dyn Device, target: &Path) -> Result<(), Error> {
        fs::remove_file(&self.log).map_err(|error| misplaced(&self.log, error))?;
        let moved = rustix::fs::renameat_with(CWD, &self.data, CWD, target, RenameFlags::NOREPLACE);
        match moved {
            Ok(()) => {}
            Err(rustix::io::Errno::EXIST) => {
                return Err(BackupError::Exists { path: target.to_path_buf() }.into());
            }
            // The file system, or the operating system, does not support such a rename.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                if target.symlink_metadata().is_ok() {
                    return Err(BackupError::Exists { path: target.to_path_buf() }.into());
                }
                fs::rename(&self.data, target).map_err(|error| misplaced(target, error))?;
            }
            Err(error) => return Err(misplaced(target, error)),
        }
        self.is_placed = true;
        device.release();
        sync_folder_of(target).map_err(|error| misplaced(target, error))
    }
}

impl<M: PoolStrategy> Store<M> {
    /// See [`Db::backup_to`](crate::Db::backup_to).
    ///
    /// # Errors
    /// See there.
    pub fn backup_to(&self, target: &Path, watch: &mut BackupWatch<'_>) -> Result<Backup, Error> {
        let started = Instant::now();
        self.may_write()?;
        if self.checkpointer().is_none() {
            return Err(self.has_no_log());
        }
        let pages = self.pages();
        let unit = match pages.compression() {
            Compression::None => pages.page_size().bytes_u64(),
            _ => pages.page_size().unit() as u64,
        };
        let (partial, [data, log]) = Partial::new(target, pages.path(), unit)?;
        let copied = self.copy_to(&*data, &*log, watch)?;
        let phase = BackupPhase::Recovery;
        tell(watch, BackupProgress { phase, done: 0, total: 0 })?;
        let plan = self.plan();
        // The copy's log buffer fits the longest record that this store can have written.
        let options = Options::new()
            .create_if_missing(false)
            .memory(plan.budget.total())
            .own_policies(plan.own_policies.clone())
            .policy(plan.policy.chosen.spec.to_string())
            .with_lab(|lab| lab.background_merge = false)
            .with_lab(|lab| lab.frames = Some(plan.budget.frames.min(FRAMES_MAX)));
        Builder::devices(data, log, &options).open::<M>()?.close()?;
        // The closed copy has released its device.
        let data: Arc<dyn Device> =
            Arc::new(PageStore::open_file(&partial.data, &FileOptions::default())?);
        if let Some(damage) = first_damaged(data.clone(), &copied.unsound)? {
            return Err(BackupError::Damaged(damage).into());
        }
        PageStore::renew(&*data)?;
        partial.place(&*data, target)?;
        Ok(Backup { elapsed: started.elapsed(), ..copied.backup })
    }
}
