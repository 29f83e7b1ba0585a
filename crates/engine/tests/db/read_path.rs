//! A test that reading in memory writes to no frame: header, policy line or page.
//!
//! What threads share about a page lies in its frame, so a read that wrote there would move a cache
//! line from core to core, for the root above all. Here a process of its own loads a store, makes
//! the memory of all frames read-only, and reads: a write would kill it.

use std::env;
use std::ops::Bound;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use millpond::Options;
use millpond::internals::pool::PoolStrategy;
use millpond::internals::store::Builder;
use millpond::internals::store::combinations::SwizzledAny;
use millpond_device::MemoryDevice;

const ROWS: u32 = 20_000;
const THIS: &str = "db::read_path::reading_in_memory_writes_to_no_frame";

/// Loads a store in a combination that runs `policy`, and reads; with `writes`, writes at the end.
fn read_only<M: PoolStrategy>(policy: &str, writes: bool) {
    let mut options =
        Options::new().memory(32 << 20).policy(policy).lab(|lab| lab.background_merge = false);
    options.lab.background_writer = false;
    let store = Builder::device(Arc::new(MemoryDevice::new()), &options).open::<M>().unwrap();
    let tree = store.tree("t").unwrap();
    let key = |row: u32| (row.wrapping_mul(2_654_435_761)).to_be_bytes();
    for row in 0..ROWS {
        tree.btree().upsert(&key(row), &[7; 100]).unwrap();
    }
    let read = || {
        for row in 0..ROWS {
            assert_eq!(tree.btree().get(&key(row), <[u8]>::len).unwrap(), Some(100));
        }
        for row in (0..ROWS).step_by(20) {
            let keys: Vec<_> = (row..row + 20).map(key).collect();
            let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
            let mut values = vec![None; keys.len()];
            tree.btree().get_many(&keys, &mut values).unwrap();
            assert!(values.iter().flatten().count() == keys.len());
        }
        let mut rows = 0;
        let all = (Bound::Unbounded, Bound::Unbounded);
        tree.btree()
            .scan(all.0, all.1, |_, _| {
                rows += 1;
                true
            })
            .unwrap();
        assert_eq!(rows, ROWS);
    };
    // What a policy notes once for each page is noted now.
    read();
    store.pool().forbid_writes(true).unwrap();
    std::thread::scope(|scope| {
        (0..2).for_each(|_| {
            scope.spawn(read);
        });
    });
    if writes {
        tree.btree().upsert(&key(1), &[8; 100]).unwrap();
    }
    store.pool().forbid_writes(false).unwrap();
}

/// Reads with that policy in a process of its own.
fn run(policy: &str, writes: bool) -> ExitStatus {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args([THIS, "--exact", "--test-threads=1"]).env("READ_PATH_POLICY", policy);
    if writes {
        child.env("READ_PATH_WRITES", "1");
    }
    child.output().unwrap().status
}

#[test]
fn reading_in_memory_writes_to_no_frame() {
    if let Ok(policy) = env::var("READ_PATH_POLICY") {
        let writes = env::var("READ_PATH_WRITES").is_ok();
        return read_only::<SwizzledAny>(&policy, writes);
    }
    for policy in ["watt", "lean-evict", "random", "clock", "lru", "arc"] {
        let status = run(policy, false);
        assert!(status.success(), "{policy}: a read wrote to a frame ({status})");
    }
    // SIGSEGV or SIGBUS.
    let caught = run("watt", true).signal();
    assert!(caught.is_some_and(|signal| [11, 7].contains(&signal)), "a write is seen: {caught:?}");
}
