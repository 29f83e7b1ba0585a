//! Files that appear under their name only once they are whole.

use std::io;
use std::path::Path;

use tempfile::NamedTempFile;

/// A temporary file in the folder of `path`, which its `persist(path)` renames into place. It has
/// the permissions that a new file has, and is removed if it is never persisted.
///
/// # Errors
/// The operating system's, if no file can be made there.
pub fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".millpond-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The process's umask takes away what it takes away from every new file.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_that_was_written_whole_can_be_read_like_any_other() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |name: &str| {
            let path = folder.path().join(name);
            std::fs::metadata(path).unwrap().permissions().mode() & 0o777
        };
        std::fs::write(folder.path().join("plain"), "x").unwrap();
        beside(&folder.path().join("whole")).unwrap().persist(folder.path().join("whole")).unwrap();
        assert_eq!(mode("whole"), mode("plain"));
    }
}
