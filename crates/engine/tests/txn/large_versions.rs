//! Large values that snapshots need: they go to the spill file while they are read.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use millpond::internals::io::spill_path;
use millpond::{Db, KeyRange, Options, RawTree};
use millpond_base::rounds::rounds;

use crate::byte_calls::{SnapshotCalls, TxnCalls};

const CHILD: &str = "MILLPOND_TEST_LARGE_VERSIONS";
const OTHERWISE: &str = "MILLPOND_TEST_LARGE_VERSIONS_OTHERWISE";

/// Bytes of a large value.
fn len() -> u64 {
    rounds(40, 64) << 20
}

/// Less than the value has.
fn resident_max_allowed() -> u64 {
    rounds(36, 48) << 20
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    (folder, path)
}

fn resident_max() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

fn put_large(tree: &RawTree, key: &[u8], byte: u8) {
    tree.put_from(key, len(), std::io::repeat(byte).take(len())).unwrap();
}

/// Runs the test called `name` in a child, and returns the memory that the child reports.
fn resident_of_child(name: &str, variable: &str, path: &Path) -> u64 {
    let out = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(variable, path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{text}{}", String::from_utf8_lossy(&out.stderr));
    let line = text.lines().find_map(|line| line.split_once("resident ")).unwrap().1;
    line.strip_suffix(" bytes").unwrap().parse().unwrap()
}

/// Not a test of its own: the child of the next one.
#[test]
fn child_that_deletes_and_replaces_large_values_under_a_snapshot() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let db = Db::open(path, Options::new().memory(16 << 20)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    for (key, byte) in [(b"a", 1), (b"b", 2), (b"c", 3)] {
        put_large(&tree, key, byte);
    }
    let snapshot = db.snapshot().unwrap();
    assert!(tree.delete(b"a").unwrap());
    put_large(&tree, b"b", 9);
    let tx = db.begin().unwrap();
    tx.put(&tree, b"c", b"small").unwrap();
    tx.commit().unwrap();
    println!("resident {} bytes", resident_max());
    // What the snapshot sees is what there was; that takes memory as any value does.
    for (key, byte) in [(b"a", 1), (b"b", 2), (b"c", 3)] {
        let value = snapshot.get(&tree, key).unwrap().unwrap();
        assert!(value.len() as u64 == len() && value.iter().all(|b| *b == byte));
    }
    assert!(tree.get(b"a").unwrap().is_none());
    assert_eq!(tree.get(b"c").unwrap().as_deref(), Some(&b"small"[..]));
    drop(snapshot);
}

#[test]
fn a_large_value_that_a_snapshot_needs_is_never_in_memory_as_a_whole() {
    let (_folder, path) = place();
    let name = "txn::large_versions::child_that_deletes_and_replaces_large_values_under_a_snapshot";
    let bytes = resident_of_child(name, CHILD, &path);
    assert!(bytes <= resident_max_allowed(), "{bytes} bytes");
}

/// Not a test of its own: the child of the next one.
#[test]
fn child_that_changes_large_values_otherwise() {
    let Some(path) = std::env::var_os(OTHERWISE) else { return };
    let db = Db::open(path, Options::new().memory(16 << 20)).unwrap();
    let [replaced, cleared, cut] = ["replaced", "cleared", "cut"].map(|name| {
        let tree = db.raw_tree(name).unwrap();
        put_large(&tree, b"k", name.len() as u8);
        tree.put(b"small", name.as_bytes()).unwrap();
        tree
    });
    let trees = [&replaced, &cleared, &cut];
    let running = db.begin().unwrap();
    running.put(&replaced, b"k", b"shorter").unwrap();
    let snapshot = db.snapshot().unwrap();
    cleared.clear().unwrap();
    cut.remove_range(KeyRange::of::<Vec<u8>, &[u8]>(&b"a"[..]..)).unwrap();
    println!("resident {} bytes", resident_max());
    running.commit().unwrap();
    for (tree, name) in trees.into_iter().zip(["replaced", "cleared", "cut"]) {
        let value = snapshot.get(tree, b"k").unwrap().unwrap();
        assert!(value.len() as u64 == len() && value.iter().all(|b| *b == name.len() as u8));
        let small = snapshot.get(tree, b"small").unwrap();
        assert_eq!(small.as_deref(), Some(name.as_bytes()));
    }
    assert_eq!(replaced.get(b"k").unwrap().as_deref(), Some(&b"shorter"[..]));
    assert_eq!((cleared.len().unwrap(), cut.len().unwrap()), (0, 0));
}

#[test]
fn so_is_one_that_a_running_transaction_replaced_before_or_that_goes_with_others() {
    let (_folder, path) = place();
    let name = "txn::large_versions::child_that_changes_large_values_otherwise";
    let bytes = resident_of_child(name, OTHERWISE, &path);
    assert!(bytes <= resident_max_allowed(), "{bytes} bytes");
}

#[test]
fn large_values_in_the_spill_file_are_seen_through_merges_and_give_their_room_back() {
    let (_folder, path) = place();
    let db = Db::open(&path, Options::new().memory(4 << 20).page_size(4096)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let value = |row: u32, round: u32| vec![(row + 7 * round) as u8; 300_000 + row as usize];
    let mut snapshots = Vec::new();
    for round in 0..6 {
        for row in 0..4u32 {
            tree.put(&row.to_be_bytes(), &value(row, round)).unwrap();
        }
        snapshots.push((db.snapshot().unwrap(), round));
        // Enough for several runs, which are merged.
        for i in 100..1500u32 {
            tree.put(&i.to_be_bytes(), &vec![round as u8; 700]).unwrap();
        }
    }
    tree.clear().unwrap();
    for _ in 0..2 {
        for (snapshot, round) in &snapshots {
            for row in 0..4u32 {
                let seen = snapshot.get(&tree, &row.to_be_bytes()).unwrap();
                assert!(seen == Some(value(row, *round)), "{row} of {round}");
            }
            let first: Vec<_> = snapshot.iter(&tree).unwrap().take(4).map(Result::unwrap).collect();
            let expected = (0..4u32).map(|row| (row.to_be_bytes().to_vec(), value(row, *round)));
            assert!(first.into_iter().eq(expected));
        }
        // Without every other one.
        snapshots.retain(|(_, round)| round % 2 == 0);
    }
    drop(snapshots);
    drop(db.snapshot().unwrap());
    assert_eq!(std::fs::metadata(spill_path(&path)).unwrap().len(), 8);
}
