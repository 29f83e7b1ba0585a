//! Disks that are full, simulated: changes can be undone, and the store goes on.

use std::sync::Arc;

use millpond::internals::log::{Log, LogError, LogOptions};
use millpond::{Db, Durability, Error, Options, RawTree, Txn};
use millpond_base::Lsn;
use millpond_device::MemoryDevice;

use crate::byte_calls::TxnCalls;

const PAGE: usize = 4096;

fn options() -> Options {
    let options = Options::new().memory(8 << 20).page_size(PAGE as u32);
    options.durability(Durability::Async).lab(|lab| {
        lab.log_segment = Some(64 << 10);
        lab.background_merge = false;
    })
}

/// A store whose log, or whose data file, takes no more than this.
fn store(data: u64, log: u64) -> Db {
    let device = |bytes| Arc::new(MemoryDevice::with_capacity(bytes));
    Db::open_on_devices(device(data), device(log), options()).unwrap()
}

fn key(row: usize) -> [u8; 4] {
    (row as u32).to_be_bytes()
}

fn is_no_room(error: &Error) -> bool {
    error.to_string().contains("the log has no room for more changes")
}

/// Opens `count` transactions, which change rows in turn until the log has no room for more.
fn all_abort(count: usize, log: u64) {
    const ROWS: usize = 200;
    let db = store(u64::MAX, log);
    let tree = db.raw_tree("t").unwrap();
    let before = [7; 120];
    for row in 0..count * ROWS {
        assert!(!tree.put(&key(row), &before).unwrap());
        if row % 500 == 499 {
            db.checkpoint().unwrap();
        }
    }
    db.checkpoint().unwrap();
    let mut open: Vec<(Txn, usize)> = (0..count).map(|_| (db.begin().unwrap(), 0)).collect();
    let mut refused = 0;
    'rounds: for round in 0..ROWS {
        for (at, (tx, changes)) in open.iter_mut().enumerate() {
            match tx.put(&tree, &key(at * ROWS + round), &[round as u8; 120]) {
                Ok(existed) => assert!(existed),
                Err(error) if is_no_room(&error) => {
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("{error}"),
            }
            *changes += 1;
        }
        if refused > 0 {
            break 'rounds;
        }
    }
    assert!(refused > 0, "the log of {log} bytes was never full");
    let changed = open.iter().filter(|(_, changes)| *changes > 0).count();
    assert!(changed >= 24, "{changed} of {count} transactions changed something");
    for (at, (tx, _)) in open.into_iter().enumerate() {
        tx.abort().unwrap_or_else(|error| panic!("{at} of {count}, {log} bytes: {error}"));
    }
    let all = tree.iter().map(Result::unwrap);
    assert_eq!(all.filter(|(_, value)| value == &before).count(), count * ROWS);
    db.checkpoint().unwrap();
    assert!(tree.put(&key(0), b"after").unwrap());
    db.flush().unwrap();
}

#[test]
fn sixty_four_open_transactions_abort_while_the_log_is_full() {
    (600..1200).step_by(100).for_each(|log| all_abort(64, log << 10));
    all_abort(64, 3 << 20);
}

#[test]
fn two_hundred_and_fifty_six_open_transactions_abort_while_the_log_is_full() {
    all_abort(256, 2400 << 10);
    all_abort(256, 8 << 20);
}

#[test]
fn the_log_makes_the_room_that_is_needed_where_a_whole_step_does_not_fit() {
    // A new log has 128 KiB behind two blocks, and grows by as much.
    let device = Arc::new(MemoryDevice::with_capacity((128 + 8 + 48) << 10));
    let options = LogOptions { segment_bytes: 1 << 20, ..LogOptions::default() };
    let log = Log::create(device, [7; 16], Lsn(0), &options).unwrap();
    log.make_room(64 << 10).unwrap();
    let error = log.make_room(100 << 10).unwrap_err();
    assert!(matches!(error, LogError::NoRoom(_)), "{error}");
    log.close().unwrap();
}

/// A store whose full log an open transaction keeps from being used again.
fn pinned() -> (Db, RawTree, Txn) {
    let db = store(u64::MAX, 1 << 20);
    let tree = db.raw_tree("t").unwrap();
    let tx = db.begin().unwrap();
    tx.put(&tree, b"pinned", b"by this").unwrap();
    (db, tree, tx)
}

/// The call that `error` is of was refused, and nothing else is wrong with the store.
fn goes_on(db: &Db, tree: &RawTree, tx: Txn, error: &Error) {
    assert!(is_no_room(error), "{error}");
    tx.abort().unwrap();
    db.checkpoint().unwrap();
    tree.put(b"small", b"value").unwrap();
    db.flush().unwrap();
    assert!(tree.check().unwrap().violations.is_empty());
}

#[test]
fn a_large_value_that_the_log_has_no_room_for_is_refused_and_does_not_end_the_log() {
    let value = vec![1; 6 << 20];
    let (db, tree, tx) = pinned();
    goes_on(&db, &tree, tx, &tree.put(b"large", &value).unwrap_err());
    assert_eq!(tree.get(b"large").unwrap(), None);
    let (db, tree, tx) = pinned();
    let error = tree.put_from(b"large", value.len() as u64, &value[..]).unwrap_err();
    goes_on(&db, &tree, tx, &error);
    let (db, tree, tx) = pinned();
    let error = tx.put(&tree, b"large", &value).unwrap_err();
    goes_on(&db, &tree, tx, &error);
}

#[test]
fn a_bulk_load_that_the_log_has_no_room_for_is_refused_and_does_not_end_the_log() {
    let (db, tree, tx) = pinned();
    let other = db.raw_tree("other").unwrap();
    let rows = (0..100_000).map(|row| (key(row).to_vec(), vec![3; 60]));
    goes_on(&db, &tree, tx, &other.bulk_load(rows, Default::default()).unwrap_err());
}

#[test]
fn a_range_that_the_log_has_no_room_to_remove_is_refused_and_does_not_end_the_log() {
    let db = store(u64::MAX, 400 << 10);
    let tree = db.raw_tree("t").unwrap();
    let many = db.raw_tree("many").unwrap();
    for row in 0..6000 {
        many.put(&key(row), &[row as u8; 5000]).unwrap();
        if row % 16 == 15 {
            db.checkpoint().unwrap();
        }
    }
    let tx = db.begin().unwrap();
    tx.put(&tree, b"pinned", b"by this").unwrap();
    goes_on(&db, &tree, tx, &many.remove_range(..).unwrap_err());
}

const ROWS: usize = 1200;
const BEFORE: [u8; 300] = [5; 300];

/// Key of the `n`th row that others add behind `row`.
fn added(row: usize, n: u8) -> Vec<u8> {
    [&key(row)[..], &[n]].concat()
}

/// A store whose data file is full: a transaction has removed every row of which `step` is a
/// divisor, and what that left in the leaves is taken by rows that others added. Returns these.
fn full(step: usize) -> (Db, RawTree, Txn, Vec<Vec<u8>>) {
    let db = store(1 << 20, u64::MAX);
    let tree = db.raw_tree("t").unwrap();
    (0..ROWS).for_each(|row| assert!(!tree.put(&key(row), &BEFORE).unwrap()));
    let tx = db.begin().unwrap();
    for row in (0..ROWS).step_by(step) {
        assert!(tx.delete(&tree, &key(row)).unwrap());
    }
    let mut rows = Vec::new();
    for (n, len) in [300, 300, 300, 300, 150, 150, 50, 50, 10, 10].into_iter().enumerate() {
        let mut refused = 0;
        for row in 0..ROWS {
            let new = added(row, n as u8);
            match tree.put(&new, &vec![n as u8; len]) {
                Ok(existed) => assert!(!existed),
                Err(error) => {
                    assert!(error.to_string().contains("full"), "{error}");
                    refused += 1;
                    continue;
                }
            }
            rows.push(new);
        }
        assert!(refused > 0 || n == 0, "pass {n} fitted: the disk is not full");
    }
    (db, tree, tx, rows)
}

fn is_as_before(tree: &RawTree, step: usize) {
    for row in (0..ROWS).step_by(step) {
        assert_eq!(tree.get(&key(row)).unwrap().as_deref(), Some(&BEFORE[..]), "{row}");
    }
}

#[test]
fn an_abort_that_splits_a_few_leaves_ends_on_a_full_disk() {
    let (db, tree, tx, rows) = full(ROWS / 4);
    tx.abort().unwrap_or_else(|error| panic!("{error}"));
    is_as_before(&tree, ROWS / 4);
    assert_eq!(tree.len().unwrap(), (ROWS + rows.len()) as u64);
    assert!(tree.check().unwrap().violations.is_empty());
    drop(tree);
    db.close().unwrap();
}

#[test]
fn an_abort_that_finds_no_page_is_ended_by_the_store_once_there_is_room() {
    let (db, tree, tx, rows) = full(5);
    let error = tx.abort().unwrap_err();
    assert!(error.to_string().contains("full"), "{error}");
    for row in rows {
        assert!(tree.delete(&row).unwrap());
    }
    // Each read waits for the lock of the row.
    is_as_before(&tree, 5);
    assert_eq!(tree.len().unwrap(), ROWS as u64);
    assert!(tree.check().unwrap().violations.is_empty());
    drop(tree);
    db.close().unwrap();
}

#[test]
fn closing_a_store_ends_an_abort_that_found_no_page() {
    let (db, tree, tx, rows) = full(5);
    drop(tx);
    for row in rows {
        assert!(tree.delete(&row).unwrap());
    }
    drop(tree);
    db.close().unwrap();
}
