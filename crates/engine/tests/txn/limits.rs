//! Limits that the system sets a process.

use std::path::Path;
use std::process::{Command, Output};

use millpond::{Db, Durability, Options};

const CHILD: &str = "MILLPOND_TEST_LIMITED";

fn options() -> Options {
    Options::new().memory(8 << 20).page_size(4096).durability(Durability::Async)
}

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

/// Runs the test called `name` as a child, behind a line for the shell.
fn child(name: &str, line: &str, path: &Path) -> Output {
    Command::new("sh")
        .args(["-c", &format!("{line}; exec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, path)
        .output()
        .unwrap()
}

/// Not a test of its own: the child of the next one.
#[test]
fn child_that_writes_until_its_files_may_not_grow() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let db = Db::open(path, options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let mut rows = 0;
    let error = loop {
        match tree.put(&key(rows), &[rows as u8; 1000]) {
            Ok(_) if rows % 500 == 499 => db.flush().unwrap_or_else(|error| panic!("{error:#}")),
            Ok(_) => {}
            Err(error) => break error,
        }
        rows += 1;
        assert!(rows < 100_000, "nothing was refused");
    };
    assert!(error.to_string().contains("a limit of file sizes is reached"), "{error}");
    for row in 0..rows {
        assert_eq!(tree.get(&key(row)).unwrap(), Some(vec![row as u8; 1000]), "{row}");
    }
    println!("rows {rows} rows");
}

#[test]
fn a_limit_of_file_sizes_is_a_full_disk_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let name = "txn::limits::child_that_writes_until_its_files_may_not_grow";
    // In blocks of 512 bytes: 6 MiB. The signal is ignored, as Python does.
    let out = child(name, "trap '' XFSZ; ulimit -f 12288", &path);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{text}{}", String::from_utf8_lossy(&out.stderr));
    let line = text.lines().find_map(|line| line.strip_prefix("rows ")).unwrap();
    let rows: u32 = line.strip_suffix(" rows").unwrap().parse().unwrap();
    let db = Db::open(&path, options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    for row in 0..rows / 500 * 500 {
        assert_eq!(tree.get(&key(row)).unwrap(), Some(vec![row as u8; 1000]), "{row}");
    }
    assert!(rows > 1000, "{rows}");
}

/// Not a test of its own: a transaction that fills the disk.
#[test]
fn child_whose_transaction_fills_the_disk() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let db = Db::open(path, options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    (0..500).for_each(|row| assert!(!tree.put(&key(row), &[1; 1000]).unwrap()));
    db.flush().unwrap();
    let other = db.raw_tree("other").unwrap();
    let tx = db.begin().unwrap();
    let value = |row: u32| [(row / 500) as u8; 1000];
    let put = |row: u32| tx.tree(&tree).put(&key(row % 500), &value(row + 1000));
    let error = (0..100_000).map(put).find_map(Result::err).unwrap();
    println!("the transaction: {error}");
    println!("other: {:?}", other.put(b"key", b"value").map_err(|error| error.to_string()));
    tx.abort().unwrap_or_else(|error| panic!("{error}"));
    for row in 0..500 {
        assert_eq!(tree.get(&key(row)).unwrap(), Some(vec![1; 1000]), "{row}");
    }
    // What the transaction took of the log is of use again once a checkpoint was taken.
    db.checkpoint().unwrap();
    tree.put(&key(0), &[1; 1000]).unwrap();
    println!("whole");
}

/// An abort on a full disk once failed, and its rows stayed locked until the store was reopened.
#[test]
fn an_abort_on_a_full_disk_takes_all_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let name = "txn::limits::child_whose_transaction_fills_the_disk";
    let out = child(name, "trap '' XFSZ; ulimit -f 12288", &path);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{text}{}", String::from_utf8_lossy(&out.stderr));
    assert!(text.contains("whole"), "{text}");
    let db = Db::open(&path, options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    assert!((0..500).all(|row| tree.get(&key(row)).unwrap() == Some(vec![1; 1000])));
}
