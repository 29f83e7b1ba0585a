//! Versions that do not fit into memory: what snapshots see when nearly all is in the spill file,
//! and what is left of that file.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use millpond::internals::io::spill_path;
use millpond::{Db, Error, Options, RawTree, Snapshot, error::TxnError};
use millpond_base::rounds::rounds;

use crate::byte_calls::{SnapshotCalls, TxnCalls};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Versions get the least memory that there is: 128 KiB.
fn options() -> Options {
    Options::new().memory(4 << 20).page_size(4096)
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    (folder, path)
}

fn spilled(path: &Path) -> u64 {
    std::fs::metadata(spill_path(path)).map_or(0, |meta| meta.len())
}

fn agrees(snapshot: &Snapshot, tree: &RawTree, model: &Model, rng: &mut fastrand::Rng) {
    let seen: Vec<_> = snapshot.iter(tree).unwrap().map(Result::unwrap).collect();
    assert_eq!(seen.len(), model.len());
    assert!(seen.iter().zip(model).all(|(a, b)| (&a.0, &a.1) == b));
    let mut range = snapshot.iter(tree).unwrap();
    for (key, value) in model.iter().rev() {
        assert_eq!(range.next_entry_back().unwrap(), Some((&key[..], &value[..])));
    }
    assert!(range.next_entry_back().unwrap().is_none());
    for _ in 0..20 {
        let (a, b) = (rng.u32(..3000), rng.u32(..3000));
        let (low, high) = (a.min(b).to_be_bytes().to_vec(), a.max(b).to_be_bytes().to_vec());
        assert_eq!(snapshot.get(tree, &low).unwrap().as_ref(), model.get(&low));
        let part = snapshot.range(tree, &low[..]..&high[..]).unwrap();
        let expected = model.range(low.clone()..high.clone());
        assert!(part.map(Result::unwrap).eq(expected.map(|(k, v)| (k.clone(), v.clone()))));
    }
}

fn change(tree: &RawTree, model: &mut Model, rng: &mut fastrand::Rng) {
    let key = rng.u32(..3000).to_be_bytes().to_vec();
    if rng.u32(..5) == 0 {
        tree.delete(&key).unwrap();
        model.remove(&key);
    } else {
        let most = if rng.u32(..200) == 0 { 9000 } else { 700 };
        let value = vec![rng.u8(..); rng.usize(..most)];
        tree.put(&key, &value).unwrap();
        model.insert(key, value);
    }
}

/// Changes whole values, parts of values, and large ones in a transaction; commits or aborts it.
fn transact(db: &Db, tree: &RawTree, model: &mut Model, rng: &mut fastrand::Rng) {
    let (tx, mut after) = (db.begin().unwrap(), model.clone());
    for _ in 0..rng.u32(..1500) {
        let key = rng.u32(..3000).to_be_bytes().to_vec();
        match rng.u32(..4) {
            0 => {
                tx.delete(tree, &key).unwrap();
                after.remove(&key);
            }
            1 => {
                // The same length: the undo is of the bytes that differ.
                let byte = rng.u8(..);
                if let Some(value) = after.get_mut(&key) {
                    value.iter_mut().skip(3).take(5).for_each(|b| *b = byte);
                    tx.put(tree, &key, value).unwrap();
                }
            }
            _ => {
                let value = vec![rng.u8(..); rng.usize(..600)];
                tx.put(tree, &key, &value).unwrap();
                after.insert(key, value);
            }
        }
    }
    // What is under way is seen by nobody.
    if rng.bool() {
        agrees(&db.snapshot().unwrap(), tree, model, rng);
    }
    if rng.bool() {
        tx.commit().unwrap();
        *model = after;
    } else {
        tx.abort().unwrap();
    }
}

#[test]
fn snapshots_agree_with_a_model_when_nearly_all_versions_are_spilled() {
    for seed in 0..rounds(1, 2) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (_folder, path) = place();
        let db = Db::open(&path, options()).unwrap();
        let (tree, mut model) = (db.raw_tree("t").unwrap(), Model::new());
        let (mut snapshots, mut most) = (Vec::<(Snapshot, Model)>::new(), 0);
        for _ in 0..rounds(6, 16) {
            for _ in 0..rng.u32(..1500) {
                change(&tree, &mut model, &mut rng);
            }
            transact(&db, &tree, &mut model, &mut rng);
            most = most.max(spilled(&path));
            if snapshots.len() < 6 {
                snapshots.push((db.snapshot().unwrap(), model.clone()));
            } else {
                snapshots.swap_remove(rng.usize(..6));
            }
            if let Some((snapshot, then)) = rng.choice(&snapshots) {
                agrees(snapshot, &tree, then, &mut rng);
            }
        }
        for (snapshot, then) in &snapshots {
            agrees(snapshot, &tree, then, &mut rng);
        }
        assert!(most > 1 << 20, "seed {seed}: {most} bytes were spilled");
        snapshots.clear();
        assert!(spilled(&path) < 100, "what no snapshot needs is given back");
        drop((tree, db));
        assert!(!spill_path(&path).exists(), "a closed store has none");
    }
}

#[test]
fn a_large_transaction_of_somebody_else_lets_no_range_fail() {
    let (_folder, path) = place();
    let db = Db::open(&path, options()).unwrap();
    let (large, small) = (db.raw_tree("large").unwrap(), db.raw_tree("small").unwrap());
    small.put(b"heron", b"1").unwrap();
    for i in 0..5000u32 {
        large.put(&i.to_be_bytes(), &[1; 300]).unwrap();
    }
    let tx = db.begin().unwrap();
    for i in 0..10_000u32 {
        tx.put(&large, &i.to_be_bytes(), &[2; 300]).unwrap();
    }
    assert_eq!(small.iter().map(Result::unwrap).count(), 1);
    assert_eq!(small.first().unwrap().unwrap().0, b"heron");
    assert!(!small.is_empty().unwrap());
    assert_eq!(large.range(..).map(Result::unwrap).count(), 5000);
    let snapshot = db.snapshot().unwrap();
    tx.commit().unwrap();
    let seen = snapshot.iter(&large).unwrap().map(Result::unwrap);
    assert!(seen.eq((0..5000u32).map(|i| (i.to_be_bytes().to_vec(), vec![1; 300]))));
    assert_eq!(large.iter().map(Result::unwrap).count(), 10_000);
}

#[test]
fn a_loop_that_puts_new_keys_into_what_it_walks_through_ends() {
    let (_folder, path) = place();
    let db = Db::open(&path, options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    for i in 0..2000u32 {
        tree.put(&i.to_be_bytes(), &[1; 500]).unwrap();
    }
    let mut next = 2000u32;
    for row in &tree {
        row.unwrap();
        for _ in 0..3 {
            tree.put(&next.to_be_bytes(), &[1; 500]).unwrap();
            tree.put(&(next % 2000).to_be_bytes(), &[2; 500]).unwrap();
            next += 1;
        }
        assert!(next < 20_000, "it goes on for ever");
    }
    assert!(next >= 8000);
    assert!(spill_path(&path).exists());
}

#[test]
fn a_full_spill_file_loses_the_oldest_snapshot_and_nothing_else() {
    let (_folder, path) = place();
    let db = Db::open(&path, options().spill_max(300 << 10)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let fill = |from: u32, byte: u8| {
        for i in from..from + 500 {
            tree.put(&i.to_be_bytes(), &[byte; 900]).unwrap();
        }
    };
    (0..4).for_each(|part| fill(part * 500, 1));
    let oldest = db.snapshot().unwrap();
    (0..4).for_each(|part| fill(part * 500, 2));
    let lost = oldest.get(&tree, &[0; 4]).unwrap_err();
    assert!(matches!(&lost, Error::Txn(TxnError::SnapshotLost { .. })), "{lost}");
    assert!(lost.to_string().contains("spill_max"), "{lost}");
    let mut rows = oldest.iter(&tree).unwrap();
    assert!(rows.next().is_some_and(|row| row.is_err()), "a range returns it");
    assert!(rows.next().is_none(), "once, and is over");
    drop(rows);
    let next = db.snapshot().unwrap();
    // More than fits memory, less than fits the file.
    for i in 0..200u32 {
        tree.put(&i.to_be_bytes(), &[3; 900]).unwrap();
    }
    assert_eq!(
        next.iter(&tree).unwrap().map(Result::unwrap).filter(|row| row.1[0] == 2).count(),
        2000
    );
    assert!(spilled(&path) <= 300 << 10);
}

/// The texts of an error and of its causes, none of which an earlier one has said.
pub fn causes(error: &dyn std::error::Error) -> Vec<String> {
    let mut texts = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        assert!(!texts.iter().any(|said| said.contains(&text)), "{text}, said twice: {texts:?}");
        texts.push(text);
        cause = error.source();
    }
    texts
}

/// The system's error among the causes of an error.
pub fn system_error(error: &(dyn std::error::Error + 'static)) -> Option<std::io::ErrorKind> {
    let mut all = std::iter::successors(Some(error), |error| error.source());
    all.find_map(|error| Some(error.downcast_ref::<std::io::Error>()?.kind()))
}

/// The advice was a larger file, whatever had failed: here, what `break_spilling` did to the store
/// at this path.
fn loses_a_snapshot(path: &Path, break_spilling: &dyn Fn(&Path), short: &str, long: &str) {
    let db = Db::open(path, options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let fill = |byte: u8| {
        for i in 0..2000u32 {
            tree.put(&i.to_be_bytes(), &[byte; 900]).unwrap();
        }
    };
    fill(1);
    break_spilling(path);
    let snapshot = db.snapshot().unwrap();
    fill(2);
    let lost = snapshot.get(&tree, &[0; 4]).unwrap_err();
    assert!(matches!(lost, Error::Txn(TxnError::SnapshotLost { .. })), "{lost}");
    assert!(lost.to_string().contains(short), "{lost}");
    assert!(!lost.to_string().contains("spill_max"), "{lost}");
    assert!(system_error(&lost).is_some(), "{lost:?}");
    let causes = causes(&lost);
    assert!(causes[1].contains(&*spill_path(path).to_string_lossy()), "{causes:?}");
    assert!(causes.last().unwrap().contains(long), "{causes:?}");
}

#[test]
fn a_lost_snapshot_names_what_kept_its_versions_from_being_spilled() {
    let (_folder, path) = place();
    let letter = |path: &Path| std::fs::write(spill_path(path), b"a letter").unwrap();
    loses_a_snapshot(&path, &letter, "entity already exists", "File exists");

    let (folder, _) = place();
    let old = folder.path().join("old");
    std::fs::create_dir(&old).unwrap();
    let rename = |_: &Path| std::fs::rename(&old, folder.path().join("new")).unwrap();
    loses_a_snapshot(&old.join("s"), &rename, "entity not found", "No such file or directory");

    // The log's name has 255 bytes, and the spill file's would have 257.
    let path = folder.path().join("n".repeat(251));
    loses_a_snapshot(&path, &|_| {}, "invalid filename", "File name too long");
}

#[test]
fn a_snapshot_whose_versions_a_drive_changed_is_told_so_and_gives_no_wrong_row() {
    let (_folder, path) = place();
    let db = Db::open(&path, options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let fill = |byte: u8| {
        for i in 0..4000u32 {
            tree.put(&i.to_be_bytes(), &[byte; 500]).unwrap();
        }
    };
    fill(1);
    let snapshot = db.snapshot().unwrap();
    fill(2);
    let length = spilled(&path);
    assert!(length > 500_000, "{length}");
    let file = std::fs::OpenOptions::new().write(true).open(spill_path(&path)).unwrap();
    (8..length).step_by(3_000).for_each(|at| file.write_all_at(&[0xEE], at).unwrap());
    let (mut right, mut errors) = (0, Vec::new());
    for row in snapshot.iter(&tree).unwrap() {
        match row {
            Ok((_, value)) => {
                assert_eq!(value, [1; 500]);
                right += 1;
            }
            Err(error) => errors.push(error),
        }
    }
    assert!(right < 4000 && errors.len() == 1, "{right} rows, {errors:?}");
    assert!(matches!(&errors[0], Error::Txn(TxnError::SnapshotUnreadable { .. })), "{errors:?}");
    let causes = causes(&errors[0]);
    assert!(causes.len() == 2 && causes[1].contains("bytes at offset"), "{causes:?}");
    drop(snapshot);
    let next = db.snapshot().unwrap();
    assert_eq!(next.iter(&tree).unwrap().filter(Result::is_ok).count(), 4000);
}

#[test]
fn what_a_crash_left_of_a_spill_file_is_removed_when_the_store_is_opened() {
    let (_folder, path) = place();
    drop(Db::open(&path, options()).unwrap());
    std::fs::write(spill_path(&path), b"MPSPILL1 and more").unwrap();
    let db = Db::open(&path, options()).unwrap();
    assert!(!spill_path(&path).exists());
    drop(db);
}

#[test]
fn sums_are_the_same_in_all_snapshots_while_threads_change_and_spill() {
    const ACCOUNTS: u64 = 400;
    let (_folder, path) = place();
    let db = Db::open(&path, options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let value = |amount: u64| {
        let mut value = amount.to_le_bytes().to_vec();
        value.resize(900, 7);
        value
    };
    let amount = |value: &[u8]| u64::from_le_bytes(value[..8].try_into().unwrap());
    for i in 0..ACCOUNTS {
        tree.put(&i.to_be_bytes(), &value(1000)).unwrap();
    }
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|seed| {
                let (db, tree) = (&db, &tree);
                scope.spawn(move || {
                    let mut rng = fastrand::Rng::with_seed(seed);
                    for _ in 0..1500 {
                        let (a, b) = (rng.u64(..ACCOUNTS), rng.u64(..ACCOUNTS));
                        let (low, high) = (a.min(b).to_be_bytes(), a.max(b).to_be_bytes());
                        if low == high {
                            continue;
                        }
                        let options = millpond::TxnOptions::default();
                        let tx =
                            db.begin_with(options.durability(millpond::Durability::Async)).unwrap();
                        let from = amount(&tx.get_for_update(tree, &low).unwrap().unwrap());
                        let to = amount(&tx.get_for_update(tree, &high).unwrap().unwrap());
                        let moved = from.min(rng.u64(..50));
                        tx.put(tree, &low, &value(from - moved)).unwrap();
                        tx.put(tree, &high, &value(to + moved)).unwrap();
                        if rng.u32(..8) == 0 { tx.abort() } else { tx.commit() }.unwrap();
                    }
                })
            })
            .collect();
        let mut held = Vec::new();
        while writers.iter().any(|writer| !writer.is_finished()) {
            held.push(db.snapshot().unwrap());
            for snapshot in held.iter().rev().take(3).chain(held.first()) {
                let rows = snapshot.iter(&tree).unwrap().map(Result::unwrap);
                assert_eq!(rows.map(|row| amount(&row.1)).sum::<u64>(), ACCOUNTS * 1000);
            }
            if held.len() > 5 {
                held.remove(2);
            }
        }
        assert!(spill_path(&path).exists());
    });
}
