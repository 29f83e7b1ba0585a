//! The stack that a thread needs to call a store.

use std::path::Path;
use std::process::Command;

use millpond::{BulkOptions, Db, KeyRange, Options, TxnOptions};

use super::place;
use crate::byte_calls::{SnapshotCalls, TxnCalls};

const CHILD: &str = "MILLPOND_TEST_STACK";
const PLACE: &str = "MILLPOND_TEST_STACK_PLACE";

/// Stack that a thread needs, by docs/memory.md.
const STACK: usize = 64 << 10;

#[allow(clippy::print_stdout, reason = "the parent reads it")]
fn step(name: &str) {
    println!("step: {name}");
}

/// Runs `work` on a thread with a stack of `bytes`; one that overflows ends the process.
fn on_a_stack_of<R: Send>(bytes: usize, work: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(bytes);
        thread.spawn_scoped(scope, work).unwrap().join().unwrap()
    })
}

fn open(path: &Path) -> Db {
    step("open");
    Db::open(path, Options::new().memory(8 << 20)).unwrap()
}

/// Every kind of call of an open store; the last name that is printed is the one that failed.
fn calls(db: &Db) {
    let tree = db.raw_tree("t").unwrap();
    step("put, split");
    for key in 0..20_000u32 {
        tree.put(&key.wrapping_mul(2_654_435_761).to_be_bytes(), &[1; 100]).unwrap();
    }
    step("large values");
    for key in 0..20u32 {
        tree.put(&key.to_le_bytes(), &vec![7; 200_000]).unwrap();
    }
    step("long keys");
    for key in 0..2000u32 {
        tree.put(&[&key.to_be_bytes()[..], &[9; 900]].concat(), &[1; 900]).unwrap();
    }
    step("get, scan");
    tree.get(&7u32.to_le_bytes()).unwrap();
    assert!(tree.iter().filter(Result::is_ok).count() > 20_000);
    assert!(tree.iter().rev().filter(Result::is_ok).count() > 20_000);
    step("a transaction that spills, and its abort");
    let mut tx = db.begin_with(TxnOptions::default()).unwrap();
    let snapshot = db.snapshot().unwrap();
    for key in 0..40_000u32 {
        tx.put(&tree, &key.to_be_bytes(), &[2; 60]).unwrap();
    }
    let savepoint = tx.savepoint().unwrap();
    tx.put(&tree, b"k", &vec![3; 100_000]).unwrap();
    tx.rollback_to(&savepoint).unwrap();
    tx.abort().unwrap();
    step("snapshot");
    assert!(snapshot.get(&tree, &7u32.to_le_bytes()).unwrap().is_some());
    drop(snapshot);
    step("hash index, heap");
    let hash = db.hash_index::<u32, u32>("h").unwrap();
    let heap = db.heap::<String>("heap").unwrap();
    db.transact(|tx| {
        for key in 0..5000 {
            tx.hash_index(&hash).put(&key, &key)?;
            tx.heap(&heap).append("a record")?;
        }
        Ok::<(), millpond::Error>(())
    })
    .unwrap();
    step("remove a range, bulk load");
    tree.remove_range(KeyRange::of::<Vec<u8>, &[u8]>(&[0x40u8][..]..&[0x60u8][..])).unwrap();
    let loaded = db.raw_tree("loaded").unwrap();
    let rows = (0..30_000u32).map(|key| (key.to_be_bytes().to_vec(), vec![1; 80]));
    loaded.bulk_load(rows, BulkOptions::default()).unwrap();
    step("check, statistics");
    assert!(db.check().unwrap().is_sound());
    db.stats();
    step("drop");
    drop(loaded);
    db.drop_tree("loaded").unwrap();
    step("flush, checkpoint");
    db.flush().unwrap();
    db.checkpoint().unwrap();
}

/// Runs backup, shrink, close and recovery.
fn maintenance(db: Db, path: &Path) {
    step("backup");
    let copy = path.with_extension("copy");
    db.backup_to(&copy).unwrap();
    step("shrink");
    db.shrink().unwrap();
    step("close");
    db.close().unwrap();
    step("recover");
    let db = open(&copy);
    let tree = db.raw_tree("t").unwrap();
    for key in 0..5000u32 {
        tree.put(&key.to_be_bytes(), &[5; 100]).unwrap();
    }
    db.flush().unwrap();
    let (killed, log) = (path.with_extension("killed"), path.with_extension("killed-log"));
    std::fs::copy(&copy, &killed).unwrap();
    std::fs::copy(path.with_extension("copy-log"), log).unwrap();
    open(&killed).close().unwrap();
    step("done");
}

/// Not a test of its own: calls a store from a thread with a stack of some size.
#[test]
fn child_that_calls_from_a_small_stack() {
    let (Some(bytes), Some(path)) = (std::env::var_os(CHILD), std::env::var_os(PLACE)) else {
        return;
    };
    let (bytes, path): (usize, &Path) = (bytes.to_str().unwrap().parse().unwrap(), path.as_ref());
    let db = on_a_stack_of(bytes, || open(path));
    on_a_stack_of(bytes, || calls(&db));
    on_a_stack_of(bytes, || maintenance(db, path));
}

#[test]
fn a_thread_with_the_stack_that_the_documentation_names_makes_every_call() {
    let (_folder, path) = place();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "db::small_stack::child_that_calls_from_a_small_stack", "--nocapture"]);
    let out = child.env(CHILD, STACK.to_string()).env(PLACE, &path).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success() && text.contains("step: done"), "{}: {text}", out.status);
}
