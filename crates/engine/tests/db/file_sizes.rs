//! Size of a store on disk: little while it is new, and after a clean close at most one segment
//! of the log.

use std::os::unix::fs::{FileExt, MetadataExt};
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

/// Copies a file as `cp --sparse=always` does: blocks of zeros become holes.
fn copy_sparsely(from: &Path, to: &Path) {
    let bytes = std::fs::read(from).unwrap();
    let file = std::fs::File::create(to).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    for (block, at) in bytes.chunks(4096).zip((0..).step_by(4096)) {
        if block.iter().any(|byte| *byte != 0) {
            file.write_all_at(block, at).unwrap();
        }
    }
}

/// Bytes of a file for which its file system has no blocks.
fn bytes_missing(path: &Path) -> u64 {
    let found = std::fs::metadata(path).unwrap();
    found.len().saturating_sub(found.blocks() * 512)
}

#[test]
fn the_holes_of_a_sparse_copy_get_blocks_when_it_is_opened_for_writing() {
    let dir = tempfile::tempdir().unwrap();
    let (live, copy) = (dir.path().join("live"), dir.path().join("copy"));
    let files = [copy.clone(), dir.path().join("copy-log")];
    let options = || Options::new().memory(16 << 20);
    let db = Db::open(&live, options()).unwrap();
    let tree = db.tree::<u64, Vec<u8>>("t").unwrap();
    for key in 0..2000 {
        tree.put(&key, &vec![7; 1000]).unwrap();
    }
    db.flush().unwrap();
    copy_sparsely(&live, &files[0]);
    copy_sparsely(&dir.path().join("live-log"), &files[1]);
    let lengths = files.each_ref().map(|file| std::fs::metadata(file).unwrap().len());
    assert!(bytes_missing(&files[1]) > 100_000, "the copy of the log has holes");
    let db = Db::open(&copy, options()).unwrap();
    for (file, length) in files.iter().zip(lengths) {
        assert_eq!(bytes_missing(file), 0, "{}", file.display());
        assert!(std::fs::metadata(file).unwrap().len() >= length);
    }
    assert_eq!(db.tree::<u64, Vec<u8>>("t").unwrap().len().unwrap(), 2000);
    db.close().unwrap();
}
