//! What a store takes on disk: little while it is new, and after a clean close no more of a log
//! than a segment.

use std::path::Path;

use millpond::{Db, Options};
use millpond_base::rounds::rounds;

/// Bytes of the files in `folder`.
fn bytes_in(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn a_new_store_is_at_most_a_mebibyte_in_all() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let open = || Db::open(&path, Options::new()).unwrap();
    let db = open();
    assert!(bytes_in(dir.path()) <= 1 << 20, "{} bytes, empty", bytes_in(dir.path()));
    db.tree::<u64, u64>("t").unwrap().put(&1, &2).unwrap();
    assert!(bytes_in(dir.path()) <= 1 << 20, "{} bytes, one row", bytes_in(dir.path()));
    db.close().unwrap();
    assert!(bytes_in(dir.path()) <= 600 << 10, "{} bytes, closed", bytes_in(dir.path()));
    for _ in 0..20 {
        open().close().unwrap();
    }
    let db = open();
    assert_eq!(db.tree::<u64, u64>("t").unwrap().get(&1).unwrap(), Some(2));
    assert!(bytes_in(dir.path()) <= 1 << 20, "{} bytes, opened", bytes_in(dir.path()));
    db.close().unwrap();
}

#[test]
fn a_log_that_has_grown_is_short_after_a_clean_close_and_grows_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let log = || std::fs::metadata(dir.path().join("s-log")).unwrap().len();
    let (value, rows) = (vec![7_u8; 1000], rounds(20_000, 30_000_u64));
    let lives = rounds(2, 3_u64);
    for round in 0..lives {
        let db = Db::open(&path, Options::new().memory(16 << 20)).unwrap();
        let tree = db.tree::<u64, Vec<u8>>("t").unwrap();
        for key in 0..rows {
            tree.put(&(key.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ round), &value).unwrap();
        }
        assert!(log() > 16 << 20, "{} bytes while it is used", log());
        drop(tree);
        db.close().unwrap();
        // A segment of 4 MiB, in which the log ends.
        assert!(log() <= (4 << 20) + (64 << 10), "{} bytes after closing", log());
    }
    let db = Db::open(&path, Options::new().memory(16 << 20)).unwrap();
    let count = db.tree::<u64, Vec<u8>>("t").unwrap().iter().count();
    assert_eq!(count as u64, lives * rows);
}
