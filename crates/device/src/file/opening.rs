//! Opening and creating a file as a device.

use std::path::Path;
use std::sync::atomic::AtomicU64;

use super::file_device::FileDevice;
use super::file_open::{
    OpenedFile, Origin, create_file, fill_holes, length_of, lock_and_probe, open_file, rings,
    what_else,
};
use super::gate::Gate;
use super::options::{FileOptions, Submission};
use super::{lock, system};
use crate::error::OpenFileError;
use crate::process::Process;

impl FileDevice {
    /// Opens the file at `path`, which must exist, and locks it: exclusively, or shared if
    /// `options.read_only`.
    ///
    /// # Errors
    /// The file does not exist, may not be opened, or is locked by another process.
    pub fn open(path: &Path, options: &FileOptions) -> Result<FileDevice, OpenFileError> {
        Self::open_existing(path, options, false)
    }

    /// Creates an empty file at `path`, or takes an existing empty one, and locks it for writing,
    /// even if `options.read_only` is set.
    ///
    /// # Errors
    /// Same as [`FileDevice::open`]; also if a file exists that is not empty.
    pub fn create(path: &Path, options: &FileOptions) -> Result<FileDevice, OpenFileError> {
        let options = FileOptions { read_only: false, ..options.clone() };
        let fail = |errno| OpenFileError::Io { path: path.to_path_buf(), errno };
        let made = create_file(path).map_err(fail)?;
        let is_new = made.is_some();
        if let Some(made) = made {
            // Any other reason that prevents the opening is found while this process has the lock.
            let tried = lock::acquire(&made, path, &options)
                .and_then(|()| open_file(path, &options).map_err(fail));
            match tried {
                Ok(_) => {}
                // Another process found the file, and makes a store of it: it belongs to that
                // process.
                Err(error @ OpenFileError::Locked { .. }) => return Err(error),
                Err(error) => {
                    let _ = std::fs::remove_file(path);
                    return Err(error);
                }
            }
        }
        let device = Self::open_existing(path, &options, is_new)?;
        match length_of(&device.file, 1).map_err(fail)? {
            0 => Ok(device),
            length => Err(OpenFileError::Exists { path: path.to_path_buf(), length }),
        }
    }

    fn open_existing(
        path: &Path,
        options: &FileOptions,
        is_new: bool,
    ) -> Result<FileDevice, OpenFileError> {
        let fail = |errno| OpenFileError::Io { path: path.to_path_buf(), errno };
        if let Some(what) = what_else(path, options) {
            return Err(OpenFileError::NotAFile { path: path.to_path_buf(), what });
        }
        let opened = open_file(path, options).map_err(fail)?;
        let OpenedFile { file, direct } = lock_and_probe(opened, path, options)?;
        let block = direct.map_or(1, |need| need.offset.max(1));
        let length = length_of(&file, block).map_err(fail)?;
        // Another process may have removed or replaced it before it was locked.
        let origin = Origin::of(&file, path).map_err(fail)?;
        if options.fills_holes && !options.read_only {
            fill_holes(&file, path);
        }
        if direct.is_none() {
            system::expect_random_reads(&file);
        }
        let rings = match options.submission {
            Submission::Sync => None,
            Submission::Auto | Submission::Uring => rings(path, options.depth),
        };
        let syncs_ranges = direct.is_none() && rings.is_some() && system::knows_ranges(&file);
        let (path, length) = (path.to_path_buf(), AtomicU64::new(length));
        let FileOptions { read_only, zeros, .. } = *options;
        Ok(FileDevice {
            file,
            path,
            origin,
            is_new,
            gate: Gate::default(),
            process: Process::this(),
            read_only,
            zeros,
            direct,
            rings,
            syncs_ranges,
            length,
        })
    }
}
