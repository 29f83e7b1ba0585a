//! Hashes of a file's content, and of the sources of this program.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use millpond_base::PastPoison;
use xxhash_rust::xxh3::Xxh3;

/// Returns the version, and a hash of the sources that simulated rows depend on. All programs built
/// from these sources return the same text.
pub fn sources() -> &'static str {
    concat!(env!("CARGO_PKG_VERSION"), "-", env!("MILLPOND_SOURCES"))
}

/// Path, length and modification time of a file; while they stay, the content counts as unchanged.
type Seen = (PathBuf, u64, Option<SystemTime>);

static KNOWN: Mutex<Option<HashMap<Seen, u64>>> = Mutex::new(None);

/// Returns a hash of a file's bytes. The hash is computed once per process, unless the file
/// changes.
///
/// # Errors
/// The error of the operating system.
pub fn content_hash(path: &Path) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let found = file.metadata()?;
    let seen = (path.to_path_buf(), found.len(), found.modified().ok());
    // The map is consistent at any time, because each entry is inserted in one step.
    let lock = || KNOWN.lock().past_poison();
    if let Some(hash) = lock().as_ref().and_then(|known| known.get(&seen).copied()) {
        return Ok(hash);
    }
    let mut hasher = Xxh3::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => hasher.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let hash = hasher.digest();
    lock().get_or_insert_default().insert(seen, hash);
    Ok(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_are_equal_whatever_their_file() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        std::fs::write(&one, b"1\n2\n").unwrap();
        std::fs::write(&two, b"1\n2\n").unwrap();
        let before = content_hash(&one).unwrap();
        assert_eq!(before, content_hash(&two).unwrap());
        std::fs::write(&one, b"1\n2\n3\n").unwrap();
        assert_ne!(before, content_hash(&one).unwrap());
        assert!(content_hash(&folder.path().join("none")).is_err());
    }
}
