//! Paths to a store: links to it, and paths that lead to no file at all.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use millpond::internals::io::OpenError;
use millpond::{Db, Error, Options};
use millpond_device::OpenFileError;

use super::{place, tiny};
use crate::byte_calls::{SnapshotCalls, TxnCalls};

fn log_of(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_os_string();
    name.push("-log");
    PathBuf::from(name)
}

fn names_in(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|n| n.into_string().unwrap()).collect();
    names.sort();
    names
}

/// The log was once made beside the link. After a clean close the store was reported as damaged
/// under its own name, and after a crash committed rows were missing.
#[test]
fn a_store_is_the_same_by_each_of_its_links() {
    let (dir, path) = place();
    let links = tempfile::tempdir().unwrap();
    let (link, second) = (links.path().join("link"), links.path().join("second"));
    symlink(&path, &link).unwrap();
    symlink("link", &second).unwrap();
    // The first one makes it: its link leads nowhere yet.
    for (round, by) in [&link, &path, &second, &path, &link].into_iter().enumerate() {
        let db = Db::open(by, tiny(64)).unwrap();
        let tree = db.tree::<u32, u32>("t").unwrap();
        let rows: Vec<u32> = tree.iter().map(|row| row.unwrap().0).collect();
        assert_eq!(rows, (0..round as u32).collect::<Vec<_>>(), "by {}", by.display());
        tree.put(&(round as u32), &7).unwrap();
        drop(tree);
        db.close().unwrap();
    }
    assert_eq!(names_in(links.path()), ["link", "second"], "nothing lies beside the links");
    assert!(names_in(dir.path()).contains(&"store.mill-log".to_string()));
}

const CHILD: &str = "MILLPOND_TEST_OTHER_FOLDER";

/// Not a test of its own: the child of the next one, since the working directory is the whole
/// process's.
#[test]
fn child_that_goes_to_another_folder() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    std::env::set_current_dir(&folder).unwrap();
    let db = Db::open("store", Options::new().memory(4 << 20)).unwrap();
    std::env::set_current_dir("other").unwrap();
    let tree = db.raw_tree("t").unwrap();
    tree.put(b"key", &vec![1; 4 << 20]).unwrap();
    let snapshot = db.snapshot().unwrap();
    // The undo and the version go to the spill file, the log grows, and statistics are published.
    let tx = db.begin().unwrap();
    for key in 0..40_000u32 {
        tx.put(&tree, &key.to_be_bytes(), &[1; 20]).unwrap();
    }
    tx.abort().unwrap();
    tree.put(b"key", b"new").unwrap();
    assert_eq!(snapshot.get(&tree, b"key").unwrap().unwrap().len(), 4 << 20);
    drop((snapshot, tree));
    db.shrink().unwrap();
    db.close().unwrap();
}

/// The statistics of a store that was opened by a relative path went wherever the process was when
/// they were published.
#[test]
fn a_store_stays_where_it_is_when_its_process_goes_elsewhere() {
    let (dir, _) = place();
    let other = dir.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "db::paths::child_that_goes_to_another_folder"]).env(CHILD, dir.path());
    let out = child.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
    assert!(names_in(&other).is_empty(), "{:?}", names_in(&other));
    assert_eq!(names_in(dir.path()), ["other", "store", "store-log", "store.stat"]);
}

#[test]
fn a_store_that_was_not_closed_is_recovered_by_a_link() {
    let (_dir, path) = place();
    let db = Db::open(&path, tiny(64)).unwrap();
    let tree = db.tree::<u32, u32>("t").unwrap();
    for key in 0..500 {
        tree.put(&key, &key).unwrap();
    }
    db.flush().unwrap();
    let (copies, links) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (copy, link) = (copies.path().join("copy"), links.path().join("link"));
    std::fs::copy(&path, &copy).unwrap();
    std::fs::copy(log_of(&path), log_of(&copy)).unwrap();
    symlink(&copy, &link).unwrap();
    let again = Db::open(&link, tiny(64)).unwrap();
    assert_eq!(again.tree::<u32, u32>("t").unwrap().len().unwrap(), 500);
    again.close().unwrap();
    assert_eq!(names_in(links.path()), ["link"]);
}

#[test]
fn what_is_no_file_is_refused_and_nothing_is_left_behind() {
    let (dir, _) = place();
    let at = |name: &str| dir.path().join(name);
    std::fs::create_dir(at("folder")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    symlink("/dev/null", at("null")).unwrap();
    let before = names_in(dir.path());
    for (name, what) in [
        ("folder", "a directory"),
        ("socket", "a socket"),
        ("fifo", "a FIFO"),
        ("null", "a character device"),
    ] {
        for options in [
            Options::new(),
            Options::new().lab(|lab| lab.log = false),
            Options::new().read_only(true),
        ] {
            match Db::open(at(name), options) {
                Err(Error::Open(OpenError::File(OpenFileError::NotAFile {
                    what: found, ..
                }))) => {
                    assert_eq!(found, what);
                }
                Err(Error::NoStore { .. }) => {}
                Err(error) => panic!("{name}: {error}"),
                Ok(_) => panic!("{name} is a store"),
            }
        }
    }
    assert_eq!(names_in(dir.path()), before);
    assert!(!Path::new("/dev/null-log").exists());
}
