//! The memory number holds for the whole process: measured in a child that does nothing else.

use std::process::Command;

use millpond::internals::btree::BulkOptions;
use millpond::{Db, Options};

use super::place;

pub const CHILD: &str = "MILLPOND_TEST_MEMORY";
const MEMORY: u64 = 32 << 20;

/// A field of `/proc/self/status`, in bytes.
pub fn status(field: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    Some(line.trim_start_matches(':').trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// Not a test of its own: the child of the next one.
#[test]
fn child_that_fills_its_pool() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let before = status("VmRSS").unwrap_or(0);
    let db = Db::open(path, Options::new().memory(MEMORY)).unwrap();
    let tree = db.tree::<u64, Vec<u8>>("t").unwrap();
    let value = vec![7u8; 900];
    for i in 0..70_000u64 {
        tree.put(&(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)), &value).unwrap();
    }
    // Large values must not pile anything up either.
    for i in 0..4000u64 {
        tree.put(&(i % 16), [9u8; 9000].as_slice()).unwrap();
    }
    drop(tree);
    db.close().unwrap();
    println!("grew {} by {}", before, status("VmHWM").unwrap_or(0).saturating_sub(before));
}

#[test]
fn a_process_stays_within_two_percent_and_sixteen_mebibytes_of_its_number() {
    let (_dir, path) = place();
    let out = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "db::memory::child_that_fills_its_pool", "--nocapture"])
        .env(CHILD, &path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{text}");
    let line = text.lines().find_map(|line| line.split_once("grew ")).unwrap().1;
    let grown: u64 = line.split_once(" by ").unwrap().1.trim().parse().unwrap();
    assert!(grown <= MEMORY + MEMORY / 50 + (16 << 20), "{grown} bytes");
    assert!(grown > MEMORY / 2, "{grown} bytes: the pool was not filled");
}

/// Runs the test called `name` as a child for the store at `path`, and returns by how much its
/// memory grew at most, or as far as it says.
pub fn grown(name: &str, path: &std::path::Path) -> u64 {
    let out = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("db::{name}"), "--nocapture"])
        .env(CHILD, path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{text}{}", String::from_utf8_lossy(&out.stderr));
    let line = text.lines().find_map(|line| line.split_once(" by ")).unwrap().1;
    line.trim().parse().unwrap()
}

/// Bytes that the process has had at most, beyond `before`.
fn growth(before: u64) -> u64 {
    status("VmHWM").unwrap_or(0).saturating_sub(before)
}

const SMALL: u64 = 4 << 20;
/// Memory that a process may take besides: its program, its stacks, the allocator's reserve, a
/// part of the log that is read ahead.
const BESIDES: u64 = 10 << 20;

/// Not a test of its own: leaves a store that was not closed, with 40 MB of log.
#[test]
fn child_that_is_killed_with_a_long_log() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let db = Db::open(path, Options::new().memory(128 << 20)).unwrap();
    let tree = db.tree::<u64, Vec<u8>>("t").unwrap();
    for i in 0..40_000u64 {
        tree.put(&(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)), &[7u8; 900][..]).unwrap();
    }
    db.flush().unwrap();
    println!("grew 0 by 0");
    std::process::exit(0);
}

/// Not a test of its own: recovers it.
#[test]
fn child_that_recovers_with_little_memory() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let before = status("VmRSS").unwrap_or(0);
    let db = Db::open(path, Options::new().memory(SMALL)).unwrap();
    assert!(db.recovery().is_some_and(|recovery| recovery.log_bytes > 30 << 20));
    println!("grew {before} by {}", growth(before));
    assert_eq!(db.tree::<u64, Vec<u8>>("t").unwrap().len().unwrap(), 40_000);
    drop(db);
}

/// Recovery once took 115 MiB for 93 MB of log, whatever the memory number was.
#[test]
fn recovery_stays_within_the_memory_number() {
    let (_dir, path) = place();
    grown("memory::child_that_is_killed_with_a_long_log", &path);
    let grown = grown("memory::child_that_recovers_with_little_memory", &path);
    assert!(grown <= SMALL + BESIDES, "{grown} bytes");
}

/// Not a test of its own: large values are replaced, removed, and brought back.
#[test]
fn child_that_replaces_large_values() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let (before, grown) = replace_large_values(&path, 4096, 20_000, 3000);
    println!("grew {before} by {grown}");
}

/// Not a test of its own: the same where a large value takes a page of 64 KiB.
#[test]
fn child_that_replaces_large_values_in_large_pages() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let (before, grown) = replace_large_values(&path, 65_536, 2500, 40_000);
    println!("grew {before} by {grown}");
}

/// Returns the bytes that the process had, and by how much they grew.
fn replace_large_values(
    path: &std::ffi::OsStr,
    page_bytes: u32,
    values: u64,
    bytes: usize,
) -> (u64, u64) {
    let db = Db::open(path, Options::new().memory(16 << 20).page_size(page_bytes)).unwrap();
    let tree = db.tree::<u64, Vec<u8>>("t").unwrap();
    (0..values).for_each(|i| assert!(!tree.put(&i, &vec![0u8; bytes][..]).unwrap()));
    let before = status("VmRSS").unwrap_or(0);
    let mut after = Vec::new();
    for round in 1..=4u8 {
        let tx = db.begin().unwrap();
        let value = vec![round; bytes];
        (0..values).for_each(|i| assert!(tx.tree(&tree).put(&i, &value[..]).unwrap()));
        tx.commit().unwrap();
        let tx = db.begin().unwrap();
        (0..values).for_each(|i| assert!(tx.tree(&tree).delete(&i).unwrap()));
        tx.abort().unwrap();
        after.push(status("VmRSS").unwrap_or(0));
    }
    let grown = growth(before);
    // What a transaction took is there for the next one.
    assert!(after[3] <= after[0] + (4 << 20), "{after:?} bytes after each round");
    for i in (0..values).step_by(501) {
        assert_eq!(tree.get(&i).unwrap(), Some(vec![4u8; bytes]));
    }
    db.check().unwrap();
    (before, grown)
}

/// Each took a page of memory until the store was closed.
#[test]
fn large_values_that_a_transaction_replaces_take_next_to_no_memory() {
    let of_pages = [
        "memory::child_that_replaces_large_values",
        "memory::child_that_replaces_large_values_in_large_pages",
    ];
    for name in of_pages {
        let (_dir, path) = place();
        let grown = grown(name, &path);
        println!("{name}: {grown} bytes");
        assert!(grown <= 16 << 20, "{name}: {grown} bytes");
    }
}

const THREADS: u64 = 16;

/// Not a test of its own: threads with a transaction each.
#[test]
fn child_with_many_threads() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let before = status("VmRSS").unwrap_or(0);
    let db = Db::open(path, Options::new().memory(SMALL)).unwrap();
    let tree = db.tree::<u64, Vec<u8>>("t").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, tree) = (&db, &tree);
            scope.spawn(move || {
                for i in 0..60 {
                    let put = |tx: &mut millpond::Txn| {
                        for row in 0..60 {
                            let key = thread << 32 | (i * 60 + row);
                            tx.tree(tree).put(&key, &[thread as u8; 2000][..])?;
                        }
                        Ok::<_, millpond::Error>(())
                    };
                    db.transact(put).unwrap();
                }
            });
        }
    });
    assert_eq!(tree.len().unwrap(), THREADS * 60 * 60);
    println!("grew {before} by {}", growth(before));
}

/// Sixteen of them took 36 MiB.
#[test]
fn what_threads_keep_of_their_own_is_small_beside_the_memory_number() {
    let (_dir, path) = place();
    let grown = grown("memory::child_with_many_threads", &path);
    println!("{grown} bytes");
    assert!(grown <= SMALL + THREADS * (400 << 10) + BESIDES, "{grown} bytes");
}

/// Not a test of its own: large values that wait for their leaf.
#[test]
fn child_that_loads_large_values() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let before = status("VmRSS").unwrap_or(0);
    let db = Db::open(path, Options::new().memory(SMALL)).unwrap();
    let tree = db.tree::<u64, Vec<u8>>("t").unwrap();
    let rows = (0..400u64).map(|i| (i, vec![i as u8; 200_000]));
    assert_eq!(tree.bulk_load(rows, BulkOptions::default()).unwrap(), 400);
    println!("grew {before} by {}", growth(before));
    assert_eq!(tree.get(&399).unwrap(), Some(vec![143; 200_000]));
}

/// Sixteen MiB of them waited, whatever the number was.
#[test]
fn large_values_that_are_loaded_wait_in_a_part_of_the_memory_number() {
    let (_dir, path) = place();
    let grown = grown("memory::child_that_loads_large_values", &path);
    println!("{grown} bytes");
    assert!(grown <= SMALL + BESIDES, "{grown} bytes");
}
