//! Transactions whose undo does not fit into memory: what they take of it, and that they are rolled
//! back all the same.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use millpond::internals::io::spill_path;
use millpond::{Db, Error, Options, RawTree, Txn, error::TxnError};
use millpond_base::rounds::rounds;

use super::spilling::{causes, system_error};
use crate::byte_calls::{SnapshotCalls, TxnCalls};

const CHILD: &str = "MILLPOND_TEST_UNDO";
const ENDS: &str = "MILLPOND_TEST_UNDO_ENDS";
const ROWS: &str = "MILLPOND_TEST_UNDO_ROWS";

/// 64 MiB is the promise. Without a bound each change would take 58 bytes, and a process that does
/// nothing has about 20 MiB.
fn resident_max_allowed() -> u64 {
    rounds(36, 48) << 20
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    (folder, path)
}

fn options() -> Options {
    Options::new().memory(4 << 20).page_size(4096)
}

fn spilled(path: &Path) -> u64 {
    std::fs::metadata(spill_path(path)).map_or(0, |meta| meta.len())
}

fn resident_max() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

fn key(row: u64) -> [u8; 8] {
    // All over the tree.
    row.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// Not a test of its own: the child of the next one.
#[test]
fn child_that_inserts_many_rows_in_one_transaction() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let ends = std::env::var(ENDS).unwrap();
    let default = rounds(400_000, 1_000_000);
    let rows = std::env::var(ROWS).map_or(default, |rows| rows.parse::<u64>().unwrap());
    let db = Db::open(path, Options::new().memory(16 << 20)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    tree.put(b"before", b"value").unwrap();
    let tx = db.begin().unwrap();
    for row in 0..rows {
        tx.put(&tree, &row.to_be_bytes(), &row.to_le_bytes()).unwrap();
    }
    let (expected, most) = if ends == "commit" {
        tx.commit().unwrap();
        (rows, rows)
    } else {
        tx.abort().unwrap();
        (0, 1000)
    };
    assert_eq!(tree.get(b"before").unwrap().as_deref(), Some(&b"value"[..]));
    for row in (0..most).map(|row| row * (rows / most)) {
        let found = tree.get(&row.to_be_bytes()).unwrap();
        assert_eq!(found.is_some(), expected > 0);
        assert!(found.is_none_or(|value| value == row.to_le_bytes()));
    }
    assert_eq!(tree.iter().map(Result::unwrap).count() as u64, expected + 1);
    drop(tree);
    db.close().unwrap();
    println!("resident {} bytes", resident_max());
}

/// Bytes resident at most while a process of its own did that.
fn resident(ends: &str) -> u64 {
    let (_folder, path) = place();
    let name = "txn::undo::child_that_inserts_many_rows_in_one_transaction";
    let out = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, &path)
        .env(ENDS, ends)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{text}{errors}");
    assert!(!spill_path(&path).exists());
    let line = text.lines().find_map(|line| line.split_once("resident ")).unwrap().1;
    line.strip_suffix(" bytes").unwrap().parse().unwrap()
}

#[test]
fn many_inserts_commit_within_48_mebibytes() {
    let bytes = resident("commit");
    assert!(bytes <= resident_max_allowed(), "{bytes} bytes");
}

#[test]
fn many_inserts_abort_within_48_mebibytes() {
    let bytes = resident("abort");
    assert!(bytes <= resident_max_allowed(), "{bytes} bytes");
}

/// Inserts, deletes, replaces, changes parts of values and replaces large ones.
fn change(tx: &mut Txn, tree: &RawTree, model: &mut Model, rng: &mut fastrand::Rng) {
    let key = rng.u32(..4000).to_be_bytes().to_vec();
    match rng.u32(..100) {
        0 => {
            let value = vec![rng.u8(..); rng.usize(5_000..30_000)];
            tx.put(tree, &key, &value).unwrap();
            model.insert(key, value);
        }
        1..20 => {
            assert_eq!(tx.delete(tree, &key).unwrap(), model.remove(&key).is_some());
        }
        20..60 => {
            if let Some(value) = model.get_mut(&key) {
                value.iter_mut().skip(3).take(5).for_each(|byte| *byte = byte.wrapping_add(1));
                tx.put(tree, &key, value).unwrap();
            }
        }
        _ => {
            let value = vec![rng.u8(..); rng.usize(..100)];
            tx.put(tree, &key, &value).unwrap();
            model.insert(key, value);
        }
    }
}

fn agrees(tree: &RawTree, model: &Model) {
    let all: Vec<_> = tree.iter().map(Result::unwrap).collect();
    assert_eq!(all.len(), model.len());
    assert!(all.iter().zip(model).all(|(a, b)| (&a.0, &a.1) == b));
}

#[test]
fn savepoints_and_aborts_take_back_what_is_spilled() {
    for seed in 0..rounds(1, 4) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (_folder, path) = place();
        let db = Db::open(&path, options()).unwrap();
        let (tree, mut model, mut most) = (db.raw_tree("t").unwrap(), Model::new(), 0);
        for round in 0..3 {
            let (mut tx, mut now) = (db.begin().unwrap(), model.clone());
            let mut savepoints = vec![(tx.savepoint().unwrap(), now.clone())];
            for _ in 0..12 {
                for _ in 0..rng.u32(..5000) {
                    change(&mut tx, &tree, &mut now, &mut rng);
                }
                most = most.max(spilled(&path));
                if rng.u32(..3) == 0 {
                    savepoints.truncate(rng.usize(..savepoints.len()) + 1);
                    let (savepoint, then) = savepoints.last().unwrap();
                    tx.rollback_to(savepoint).unwrap();
                    now.clone_from(then);
                } else {
                    savepoints.push((tx.savepoint().unwrap(), now.clone()));
                }
            }
            // A reader meanwhile sees nothing of it, and has its undo read.
            let snapshot = db.snapshot().unwrap();
            let seen: Model = snapshot.iter(&tree).unwrap().map(Result::unwrap).collect();
            assert!(seen == model);
            if round == 1 {
                tx.abort().unwrap();
            } else {
                tx.commit().unwrap();
                model = now;
            }
            let seen: Model = snapshot.iter(&tree).unwrap().map(Result::unwrap).collect();
            drop(snapshot);
            assert!(round != 1 || seen == model);
            agrees(&tree, &model);
        }
        assert!(most > 100 << 10, "{most} bytes were spilled");
        tree.check().unwrap();
        // Of what was spilled nothing is left but the file's mark.
        assert_eq!(spilled(&path), 8);
        drop(tree);
        db.close().unwrap();
    }
}

/// Rows that a transaction can insert until its undo fits nowhere, which aborts it then.
fn rows_until_full(db: &Db) -> u64 {
    let tree = db.raw_tree("t").unwrap();
    tree.put(b"before", b"value").unwrap();
    let (tx, mut rows) = (db.begin().unwrap(), 0);
    let error = loop {
        match tx.put(&tree, &key(rows), &rows.to_le_bytes()) {
            Ok(_) => rows += 1,
            Err(error) => break error,
        }
    };
    let is_too_large = matches!(error, Error::Txn(TxnError::UndoTooLarge { .. }));
    assert!(is_too_large && !error.is_retriable(), "{error}");
    assert!(tx.put(&tree, b"one more", b"").is_err());
    // What was done stands, and can still be read and undone.
    assert!(tx.get(&tree, &key(rows - 1)).unwrap().is_some());
    assert!(tx.get(&tree, &key(rows)).unwrap().is_none());
    tx.abort().unwrap();
    assert_eq!(tree.iter().map(Result::unwrap).count(), 1);
    // The next one has all of the room again.
    let tx = db.begin().unwrap();
    for row in 0..rows {
        tx.put(&tree, &key(row), &row.to_le_bytes()).unwrap();
    }
    tx.commit().unwrap();
    assert_eq!(tree.iter().map(Result::unwrap).count() as u64, rows + 1);
    rows
}

#[test]
fn a_transaction_whose_undo_fits_nowhere_is_told_so_and_aborts() {
    let (_folder, path) = place();
    let db = Db::open(&path, options().spill_max(1 << 20)).unwrap();
    let rows = rows_until_full(&db);
    assert!(rows > 30_000 && spilled(&path) <= 1 << 20, "{rows}");
    db.close().unwrap();
}

#[test]
fn in_memory_what_transactions_change_takes_no_more_than_twice_the_memory_number() {
    let db = Db::in_memory(options()).unwrap();
    let rows = rows_until_full(&db);
    // Each takes 28 bytes to be undone, and some 50 for snapshots.
    assert!((100_000..200_000).contains(&rows), "{rows}");
    db.close().unwrap();
}

#[test]
fn an_undo_that_cannot_be_read_back_is_an_error_and_recovery_takes_the_transaction_back() {
    undo_behind(&|file, _| file.set_len(8).unwrap());
    // A drive changed a byte in each part of it.
    undo_behind(&|file, length| {
        (8..length).step_by(10_000).for_each(|at| file.write_all_at(&[0xEE], at).unwrap());
    });
}

fn undo_behind(damage: &dyn Fn(&std::fs::File, u64)) {
    let (_folder, path) = place();
    let db = Db::open(&path, options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    tree.put(b"before", b"value").unwrap();
    let tx = db.begin().unwrap();
    let rows = rounds(20_000, 50_000u64);
    for row in 0..rows {
        tx.put(&tree, &key(row), &row.to_le_bytes()).unwrap();
    }
    assert!(spilled(&path) > 10 * rows);
    let file = std::fs::OpenOptions::new().write(true).open(spill_path(&path)).unwrap();
    damage(&file, spilled(&path));
    let error = tx.abort().unwrap_err();
    assert!(matches!(error, Error::Txn(TxnError::UndoUnreadable(_))), "{error}");
    assert!(causes(&error).len() > 1, "{error:?}");
    drop(tree);
    let error = db.close().unwrap_err();
    assert!(matches!(error, Error::Unfinished { transactions: 1 }), "{error}");
    let db = Db::open(&path, options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let all: Vec<_> = tree.iter().map(Result::unwrap).collect();
    assert_eq!(all, [(b"before".to_vec(), b"value".to_vec())]);
    drop(tree);
    db.close().unwrap();
}

#[test]
fn a_large_value_that_does_not_fit_refuses_its_transaction_and_no_reader() {
    let db = Db::in_memory(options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let large = vec![7; 14 << 20];
    tree.put(b"large", &large).unwrap();
    let tx = db.begin().unwrap();
    tx.put(&tree, b"other", b"row").unwrap();
    for value in [None, Some(&b"small"[..])] {
        let error = match value {
            Some(value) => tx.put(&tree, b"large", value).unwrap_err(),
            None => tx.delete(&tree, b"large").unwrap_err(),
        };
        assert!(matches!(error, Error::Txn(TxnError::UndoTooLarge { .. })), "{error}");
        let snapshot = db.snapshot().unwrap();
        assert_eq!(snapshot.get(&tree, b"large").unwrap().as_deref(), Some(&large[..]));
        assert_eq!(snapshot.get(&tree, b"other").unwrap(), None);
    }
    // The transaction goes on without that change.
    assert_eq!(tx.get(&tree, b"large").unwrap().map(|value| value.len()), Some(large.len()));
    tx.commit().unwrap();
    assert_eq!(tree.iter().map(Result::unwrap).count(), 2);
    tree.check().unwrap();
    drop(tree);
    db.close().unwrap();
}

#[test]
fn large_values_that_a_transaction_removes_take_a_quarter_of_the_memory_at_most() {
    const ROWS: u64 = 20_000;
    let (_folder, path) = place();
    let db = Db::open(&path, options().memory(8 << 20)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let rows = (0..ROWS).map(|row| (row.to_be_bytes().to_vec(), vec![row as u8; 2000]));
    tree.bulk_load(rows, Default::default()).unwrap();
    let beside = db.raw_tree("beside").unwrap();
    beside.put(b"large", &[1; 9000]).unwrap();
    let mut tx = db.begin().unwrap();
    let delete = |row: u64, tx: &mut Txn| tx.delete(&tree, &row.to_be_bytes());
    let mut removed = 0;
    let error = loop {
        match delete(removed, &mut tx) {
            Ok(_) => removed += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Txn(TxnError::TooManyLarge { .. })), "{error}");
    assert!(!error.is_retriable() && error.to_string().contains("change less"), "{error}");
    // Of a transaction that has few of them, it is worth another try.
    let mut other = db.begin().unwrap();
    let error = delete(removed + 1, &mut other).unwrap_err();
    assert!(error.is_retriable() && error.to_string().contains("try again"), "{error}");
    other.abort().unwrap();
    // 128 bytes each.
    assert!((16_000..=16_384).contains(&removed), "{removed}");
    assert!(tx.get(&tree, &removed.to_be_bytes()).unwrap().is_some());
    assert!(beside.get(b"large").unwrap().is_some());
    tx.abort().unwrap();
    assert_eq!(tree.len().unwrap(), ROWS);
    let mut tx = db.begin().unwrap();
    (0..removed).for_each(|row| assert!(delete(row, &mut tx).unwrap()));
    tx.commit().unwrap();
    assert_eq!(tree.len().unwrap(), ROWS - removed);
    tree.check().unwrap();
    drop((tree, beside));
    db.close().unwrap();
}

/// Puts rows until one is refused.
fn until_refused(tx: &mut Txn, tree: &RawTree) -> (u64, Error) {
    let put = |row| tx.put(tree, &key(row), &[7; 100]).err().map(|error| (row, error));
    (0..1_000_000).find_map(put).expect("a row is refused")
}

#[test]
fn a_transaction_is_worth_another_try_if_others_have_most_of_the_room_for_undo() {
    let (_folder, path) = place();
    let in_memory = Db::in_memory(options()).unwrap();
    let with_file = Db::open(&path, options().spill_max(1 << 20)).unwrap();
    for db in [in_memory, with_file] {
        let (many, few) = (db.raw_tree("many").unwrap(), db.raw_tree("few").unwrap());
        let (mut large, mut small) = (db.begin().unwrap(), db.begin().unwrap());
        let (_, error) = until_refused(&mut large, &many);
        assert!(!error.is_retriable() && error.to_string().contains("change less"), "{error}");
        let (rows, error) = until_refused(&mut small, &few);
        assert!(matches!(error, Error::Txn(TxnError::UndoTooLarge { .. })), "{error}");
        assert!(error.is_retriable() && error.to_string().contains("try again"), "{error}");
        small.abort().unwrap();
        large.abort().unwrap();
        let small = db.begin().unwrap();
        for row in 0..2 * rows {
            small.put(&few, &key(row), &[7; 100]).unwrap();
        }
        small.commit().unwrap();
        assert_eq!(few.len().unwrap(), 2 * rows);
    }
}

#[test]
fn undo_that_cannot_be_spilled_has_the_error_of_the_system_as_a_source() {
    let (_folder, path) = place();
    let db = Db::open(&path, options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    std::fs::write(spill_path(&path), b"a letter to the owner").unwrap();
    let mut tx = db.begin().unwrap();
    let (_, error) = until_refused(&mut tx, &tree);
    assert_eq!(system_error(&error), Some(std::io::ErrorKind::AlreadyExists), "{error:?}");
    assert!(causes(&error)[0].contains("entity already exists"), "{error}");
}
