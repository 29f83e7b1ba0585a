//! Outputs: files that get their name only when complete, and devices, pipes and sockets, which
//! are written directly.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// An output. A regular file, or the target of a symbolic link, is written beside its place and
/// renamed when complete. A device, a pipe or a socket cannot be replaced, and is written
/// directly.
#[derive(Debug)]
pub struct WholeFile {
    target: Target,
}

#[derive(Debug)]
enum Target {
    Temporary { file: NamedTempFile, place: PathBuf },
    Stream(File),
    Stdout(io::Stdout),
}

impl WholeFile {
    /// Creates an output at `path`.
    ///
    /// # Errors
    /// The operating system's, if `path` is a directory, or nothing can be written there.
    pub fn create(path: &Path) -> io::Result<WholeFile> {
        let target = match fs::metadata(path) {
            // A file with an open descriptor is not ours to replace, such as a shell's
            // `> all.txt`.
            Ok(found) if found.is_file() && is_descriptor(path) => Target::descriptor(path)?,
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) if !found.is_file() => {
                Target::Stream(File::options().write(true).open(path)?)
            }
            Ok(_) => Target::at(fs::canonicalize(path)?)?,
            // For a dangling link, the file is created at the link's target.
            Err(_) => match fs::read_link(path) {
                Ok(to) => Target::at(folder(path).join(to))?,
                Err(_) => Target::at(path.to_path_buf())?,
            },
        };
        Ok(WholeFile { target })
    }

    /// Returns `true` if an output at `path` is a new file, which gets its name when complete.
    pub fn is_renamed(path: &Path) -> bool {
        fs::metadata(path).map_or(true, |found| found.is_file() && !is_descriptor(path))
    }

    /// Returns standard output.
    pub(crate) fn stdout() -> WholeFile {
        WholeFile { target: Target::Stdout(io::stdout()) }
    }

    /// Makes the bytes durable and gives the file its name, replacing any earlier file.
    ///
    /// # Errors
    /// The operating system's: a full disk may only be noticed now. Then nothing is replaced.
    pub fn finish(self) -> io::Result<()> {
        match self.target {
            Target::Temporary { file, place } => {
                file.as_file().sync_all()?;
                file.persist(place).map(|_| ()).map_err(|error| error.error)
            }
            Target::Stream(mut stream) => stream.flush(),
            Target::Stdout(mut stdout) => stdout.flush(),
        }
    }
}

impl Target {
    /// Opens a descriptor of this process, such as `/dev/stdout`; writes go after earlier ones.
    fn descriptor(path: &Path) -> io::Result<Target> {
        let stdout = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
        match stdout.iter().any(|name| path == Path::new(name)) {
            true => Ok(Target::Stdout(io::stdout())),
            false => Ok(Target::Stream(File::options().append(true).open(path)?)),
        }
    }

    /// Creates a file for `place`, with the mode of the file that it replaces.
    fn at(place: PathBuf) -> io::Result<Target> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".millpond-").suffix(".tmp");
        let kept = fs::metadata(&place).ok().map(|found| found.permissions());
        #[cfg(unix)]
        if kept.is_none() {
            use std::os::unix::fs::PermissionsExt;
            // The process's umask applies as for every new file.
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(folder(&place))?;
        if let Some(kept) = kept {
            file.as_file().set_permissions(kept)?;
        }
        Ok(Target::Temporary { file, place })
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.target {
            Target::Temporary { file, .. } => file.write(bytes),
            Target::Stream(stream) => stream.write(bytes),
            Target::Stdout(stdout) => stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            Target::Temporary { file, .. } => file.flush(),
            Target::Stream(stream) => stream.flush(),
            Target::Stdout(stdout) => stdout.flush(),
        }
    }
}

/// Maximum links followed to find a descriptor, as in an operating system.
const LINKS_MAX: usize = 40;

/// Returns `true` if `path` names an open descriptor: `/dev/stdout`, `/dev/fd/3`, or a symbolic
/// link that leads there.
fn is_descriptor(path: &Path) -> bool {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        let parent = folder(&path);
        let real = fs::canonicalize(&parent).unwrap_or_else(|_| parent.clone());
        if real.ends_with("fd") && (real.starts_with("/proc") || real.starts_with("/dev")) {
            return true;
        }
        match fs::read_link(&path) {
            Ok(to) => path = parent.join(to),
            Err(_) => return false,
        }
    }
    false
}

/// Returns the folder of `path`.
pub(crate) fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.into(),
        _ => PathBuf::from("."),
    }
}

/// Returns `true` if both paths lead to the same regular file: by equal names, symbolic or hard
/// links.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    let (Ok(a), Ok(b)) = (fs::metadata(one), fs::metadata(other)) else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino())
    }
    #[cfg(not(unix))]
    {
        a.is_file() && b.is_file() && fs::canonicalize(one).ok() == fs::canonicalize(other).ok()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn write(path: &Path, text: &str) {
        let mut file = WholeFile::create(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.finish().unwrap();
    }

    #[test]
    fn a_file_that_was_written_whole_can_be_read_like_any_other() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode() & 0o777;
        fs::write(at("plain"), "x").unwrap();
        write(&at("whole"), "y");
        assert_eq!(mode("whole"), mode("plain"));
        drop(WholeFile::create(&at("whole")).unwrap());
        assert_eq!(fs::read_to_string(at("whole")).unwrap(), "y", "never finished");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_file_that_is_replaced_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        for mode in [0o600, 0o640, 0o666] {
            fs::write(&path, "x").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            write(&path, "y");
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
            assert_eq!(fs::read_to_string(&path).unwrap(), "y");
        }
    }

    #[test]
    fn links_stay_and_what_they_lead_to_is_replaced_or_made() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("old"), "x").unwrap();
        symlink("old", at("link")).unwrap();
        symlink("new", at("dangling")).unwrap();
        write(&at("link"), "1");
        write(&at("dangling"), "2");
        assert_eq!(fs::read_to_string(at("old")).unwrap(), "1");
        assert_eq!(fs::read_to_string(at("new")).unwrap(), "2");
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert!(is_same_file(&at("old"), &at("link")) && !is_same_file(&at("old"), &at("new")));
        fs::hard_link(at("old"), at("hard")).unwrap();
        assert!(is_same_file(&at("hard"), &at("link")));
    }

    #[test]
    fn a_fifo_is_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        if !made.is_ok_and(|status| status.success()) {
            eprintln!("skipped: there is no mkfifo");
            return;
        }
        let reader = {
            let fifo = fifo.clone();
            std::thread::spawn(move || fs::read_to_string(fifo).unwrap())
        };
        write(&fifo, "through");
        assert_eq!(reader.join().unwrap(), "through");
        assert!(!fs::metadata(&fifo).unwrap().is_file());
    }
}
