//! Checks of a closed store with its log, and files whose length is not the store's own.

use std::io::Write;
use std::path::{Path, PathBuf};

use millpond::internals::admin::check::{CATALOG, CheckOptions, check};
use millpond::{Db, ErrorKind, Options};

use super::{assert_sound, place};
use crate::byte_calls::TxnCalls;

fn options() -> Options {
    Options::new().memory(8 << 20)
}

fn log_of(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_os_string();
    name.push("-log");
    PathBuf::from(name)
}

/// Opens the store, adds rows from `first` on, and closes it; the files' contents.
fn filled(path: &Path, first: u32) -> [Vec<u8>; 2] {
    let db = Db::open(path, options()).unwrap();
    let tree = db.tree::<u32, u32>("t").unwrap();
    for key in first..first + 500 {
        tree.put(&key, &key).unwrap();
    }
    drop(tree);
    db.close().unwrap();
    [path.to_path_buf(), log_of(path)].map(|file| std::fs::read(file).unwrap())
}

/// Returns two flags: a check finds nothing wrong, and the store opens.
fn judged(path: &Path, what: &str) -> (bool, bool) {
    let is_sound = check(path, CATALOG, CheckOptions::default()).is_ok_and(|report| {
        let log = |text: String| assert!(text.contains("does not open with the log"), "{text}");
        report.problems.iter().for_each(|problem| log(problem.to_string()));
        report.problems.is_empty()
    });
    let files = || [path.to_path_buf(), log_of(path)].map(|file| std::fs::read(file).ok());
    let before = files();
    let opened = Db::open(path, options());
    if opened.is_err() {
        let [[data, log], [data_now, log_now]] = [before, files()];
        assert!(data == data_now, "{what}: the data file is as it was");
        // It may have been about to grow.
        let (log, now) = (log.unwrap(), log_now.unwrap());
        assert!(now.starts_with(&log), "{what}: the log is as it was");
    }
    (is_sound, opened.is_ok())
}

#[test]
fn a_check_finds_nothing_if_and_only_if_the_store_opens() {
    let (_folder, path) = place();
    let [old_data, old_log] = filled(&path, 0);
    let [data, log] = filled(&path, 500);
    let write = |data: &[u8], log: &[u8]| {
        std::fs::write(&path, data).unwrap();
        std::fs::write(log_of(&path), log).unwrap();
    };
    let mut damaged = log.clone();
    damaged[8192..].iter_mut().for_each(|byte| *byte ^= 0x55);
    let mut headless = log.clone();
    headless[..4096].fill(0);
    for (what, data, log) in [
        ("a damaged log", &data, &damaged[..]),
        ("a log that is cut off", &data, &log[..8192]),
        ("a log from before", &data, &old_log[..]),
        ("data from before", &old_data, &log[..]),
    ] {
        write(data, log);
        assert_eq!(judged(&path, what), (false, false), "{what}");
    }
    for (what, log) in [("its own", &log), ("its own, without the first block", &headless)] {
        write(&data, log);
        assert_eq!(judged(&path, what), (true, true), "{what}");
    }
    filled(&path, 0);
    std::fs::write(log_of(&path), b"").unwrap();
    assert_eq!(judged(&path, "an empty log"), (true, true), "a closed store needs no log");
    filled(&path, 0);
    std::fs::remove_file(log_of(&path)).unwrap();
    assert_eq!(judged(&path, "no log"), (true, true), "a closed store needs no log");
}

#[test]
fn an_empty_log_after_a_crash_is_told_as_one_that_is_missing() {
    let (folder, path) = place();
    let db = Db::open(&path, options()).unwrap();
    db.tree::<u32, u32>("t").unwrap().put(&1, &1).unwrap();
    db.flush().unwrap();
    let copy = folder.path().join("copy");
    std::fs::copy(&path, &copy).unwrap();
    for is_there in [false, true] {
        if is_there {
            std::fs::write(log_of(&copy), b"").unwrap();
        }
        let error = Db::open(&copy, options()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Incomplete, "{error}");
        assert!(error.to_string().contains("put the log back"), "{error}");
    }
}

#[test]
fn a_killed_store_is_recovered_although_the_first_block_of_its_log_is_lost() {
    for rows in [10u32, 20_000] {
        let (folder, path) = place();
        let db = Db::open(&path, options()).unwrap();
        let tree = db.raw_tree("t").unwrap();
        for key in 0..rows {
            tree.put(&key.to_be_bytes(), &[7; 400]).unwrap();
        }
        db.flush().unwrap();
        let copy = folder.path().join("copy");
        std::fs::copy(&path, &copy).unwrap();
        let mut log = std::fs::read(log_of(&path)).unwrap();
        log[..4096].fill(0);
        std::fs::write(log_of(&copy), log).unwrap();
        let copy = Db::open(&copy, options()).unwrap();
        assert!(copy.recovery().is_some());
        assert_eq!(copy.raw_tree("t").unwrap().len().unwrap(), u64::from(rows));
        copy.close().unwrap();
    }
}

fn append(path: &Path, bytes: usize) {
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(&vec![b'\n'; bytes]).unwrap();
}

#[test]
fn a_store_whose_files_are_longer_by_some_bytes_grows_as_before() {
    for (bytes, is_killed) in [(1, false), (1, true), (511, true), (4097, false), (70_000, true)] {
        let (folder, mut path) = place();
        filled(&path, 0);
        let mut db = None;
        if is_killed {
            let live = Db::open(&path, options()).unwrap();
            live.tree::<u32, u32>("t").unwrap().put(&1, &1).unwrap();
            live.flush().unwrap();
            let copy = folder.path().join("copy");
            std::fs::copy(&path, &copy).unwrap();
            std::fs::copy(log_of(&path), log_of(&copy)).unwrap();
            (path, db) = (copy, Some(live));
        }
        append(&path, bytes);
        append(&log_of(&path), bytes);
        for round in 0..2 {
            let db = Db::open(&path, options()).unwrap();
            let tree = db.raw_tree("rows").unwrap();
            for key in 0..6000u32 {
                tree.put(&[&key.to_be_bytes()[..], &[round]].concat(), &[7; 1000]).unwrap();
            }
            db.transact(|tx| tx.put(&tree, b"last", b"1")).unwrap();
            db.checkpoint().unwrap();
            assert!(db.check().unwrap().is_sound());
            drop(tree);
            db.close().unwrap();
            assert_sound(&path);
        }
        drop(db);
    }
}

#[test]
fn a_file_of_a_few_bytes_is_somebody_elses_and_stays() {
    for bytes in [1, 5, 511, 4095] {
        let (folder, path) = place();
        let letter = vec![b'x'; bytes];
        std::fs::write(&path, &letter).unwrap();
        Db::open(&path, options()).unwrap_err();
        assert_eq!(std::fs::read(&path).unwrap(), letter);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
