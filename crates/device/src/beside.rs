//! The files beside a store's file: its name with a suffix.

use std::path::{Path, PathBuf};

/// Maximum number of symbolic links that are followed, one after the other.
const LINKS_MAX: usize = 40;

/// Returns the path of the file that accompanies `store` and whose name ends in `suffix`. The
/// path derives from the store's real path, whatever symbolic link the caller opens it by.
/// Otherwise a store would get one log per name, and each log would lack the records of the others.
pub fn beside(store: &Path, suffix: &str) -> PathBuf {
    let mut name = real_path(store).into_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns the file that `path` leads to, which need not exist. A path that is not a symbolic link
/// is returned unchanged, relative or not; so is one that leads nowhere.
pub fn real_path(path: &Path) -> PathBuf {
    let mut real = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        let Ok(target) = std::fs::read_link(&real) else { return real };
        // An absolute target replaces everything before it.
        real = real.parent().map_or_else(|| target.clone(), |parent| parent.join(&target));
    }
    path.to_path_buf()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_lie_beside_the_real_file_by_whatever_name_it_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("a")).unwrap();
        std::fs::write(at("a/store"), b"x").unwrap();
        symlink("a/store", at("link")).unwrap();
        symlink(at("link"), at("a/second")).unwrap();
        symlink("a", at("folder")).unwrap();
        symlink("missing", at("dangling")).unwrap();
        symlink("round", at("round")).unwrap();
        for name in ["a/store", "link", "a/second"] {
            assert_eq!(beside(&at(name), "-log"), at("a/store-log"), "{name}");
        }
        assert_eq!(beside(&at("folder/store"), "-log"), at("folder/store-log"));
        assert_eq!(beside(&at("dangling"), "-log"), at("missing-log"));
        assert_eq!(beside(&at("round"), "-log"), at("round-log"));
        assert_eq!(beside(Path::new("plain"), "-log"), Path::new("plain-log"));
    }
}
