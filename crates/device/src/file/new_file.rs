//! Creation and opening of files so that no other program writes into them or reads them.
//!
//! **Descriptors.** 0, 1 and 2 are standard input, output and error. Where a program has closed
//! one of them, the next file that it opens gets that number, and text for standard error then
//! overwrites that file. A file of a store has a descriptor of 3 or more.
//!
//! **Mode and owner.** A file beside a store's data file contains data of it, too. It gets the mode
//! and, where the process may give files away, the owner of the data file.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Lowest descriptor of a file of a store.
const DESCRIPTOR_LEAST: i32 = 3;

/// Takes the free descriptors below 3 until the returned value is dropped, so that no file opened
/// in the meantime gets one of them.
pub(super) fn take_low_descriptors() -> Vec<File> {
    let mut low = Vec::new();
    while let Ok(other) = File::open("/") {
        if other.as_raw_fd() >= DESCRIPTOR_LEAST {
            break;
        }
        low.push(other);
    }
    low
}

/// Opens a file with the options `how`, under a descriptor of 3 or more.
///
/// # Errors
/// Same as [`OpenOptions::open`].
pub fn open_above_standard(how: &OpenOptions, path: &Path) -> io::Result<File> {
    let _low = take_low_descriptors();
    let file = how.open(path)?;
    if file.as_raw_fd() >= DESCRIPTOR_LEAST {
        return Ok(file);
    }
    Ok(rustix::io::fcntl_dupfd_cloexec(&file, DESCRIPTOR_LEAST).map(File::from)?)
}

/// Creates the file at `path`, which must not exist, for reading and writing, with the mode and
/// owner of the file at `store`. Without a file there, it is created like any other file.
///
/// # Errors
/// The file exists, or cannot be created.
pub fn create_like(path: &Path, store: &Path) -> io::Result<File> {
    let mut how = OpenOptions::new();
    how.read(true).write(true).create_new(true);
    let Ok(found) = std::fs::metadata(store) else { return open_above_standard(&how, path) };
    let file = open_above_standard(how.mode(found.mode() & 0o600), path)?;
    let mode = found.mode() & 0o666;
    let set = || {
        let made = file.metadata()?;
        if made.mode() & 0o666 != mode
            && let Err(error) = file.set_permissions(Permissions::from_mode(mode))
        {
            // Some file systems have one mode for all files.
            if made.mode() & !found.mode() & 0o777 != 0 {
                return Err(error);
            }
            tracing::debug!(%error, "{} keeps its mode", path.display());
        }
        if (made.uid(), made.gid()) != (found.uid(), found.gid()) {
            let give = |owner| std::os::unix::fs::fchown(&file, owner, Some(found.gid()));
            // Only a privileged process may set the owner; others may set the group, if they belong
            // to it.
            let given = give(Some(found.uid())).or_else(|_| give(None));
            given.unwrap_or_else(|error| tracing::debug!(%error, "{} is ours", path.display()));
        }
        Ok(())
    };
    set().inspect_err(|_| drop(std::fs::remove_file(path)))?;
    Ok(file)
}

/// Syncs the folder of the file at `path`, so that the file's name is durable.
///
/// Some file systems (CIFS, 9p) cannot sync a folder: then there is nothing to wait for. A folder
/// that may be searched, but not listed, cannot be opened to sync it.
///
/// # Errors
/// The folder cannot be opened or synced.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    let parent = folder_of(path);
    let synced = File::open(parent).and_then(|folder| folder.sync_all());
    let Err(error) = synced else { return Ok(()) };
    const UNKNOWN: [i32; 5] =
        [libc::EINVAL, libc::ENOSYS, libc::EOPNOTSUPP, libc::EBADF, libc::EACCES];
    if error.raw_os_error().is_none_or(|errno| !UNKNOWN.contains(&errno)) {
        return Err(error);
    }
    tracing::warn!(
        %error,
        "the folder {} cannot be synced: after a power failure a file that was just created there \
         may be missing",
        parent.display()
    );
    Ok(())
}

/// Returns the folder of the file at `path`.
pub(super) fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_beside_a_store_has_its_mode_whatever_the_umask() {
        let folder = tempfile::tempdir().unwrap();
        let (store, side) = (folder.path().join("s"), folder.path().join("s-side"));
        std::fs::write(&store, b"x").unwrap();
        for mode in [0o600, 0o640, 0o666] {
            std::fs::set_permissions(&store, Permissions::from_mode(mode)).unwrap();
            let file = create_like(&side, &store).unwrap();
            assert!(file.as_raw_fd() >= DESCRIPTOR_LEAST);
            assert_eq!(file.metadata().unwrap().mode() & 0o777, mode);
            let again = create_like(&side, &store).unwrap_err();
            assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
            std::fs::remove_file(&side).unwrap();
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_knows_no_sync_is_no_failure_and_a_missing_one_is() {
        let unsynced = File::open("/proc/self").unwrap().sync_all().unwrap_err();
        assert_eq!(unsynced.raw_os_error(), Some(libc::EINVAL));
        sync_folder_of(Path::new("/proc/self/pond")).unwrap();
        let error = sync_folder_of(Path::new("/proc/self/none/pond")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
