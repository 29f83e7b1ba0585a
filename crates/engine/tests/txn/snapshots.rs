//! Snapshots: their contents, their cost to others, and their loss. One thread does everything: a
//! thread that waited for another would wait for ever.

use millpond::internals::btree::BulkOptions;
use millpond::{Db, Error, KeyRange, Options, RawTree, Snapshot, error::TxnError};
use millpond_device::MemoryDevice;

use crate::byte_calls::{SnapshotCalls, TxnCalls};

fn memory() -> Db {
    Db::in_memory(Options::new().memory(16 << 20)).unwrap()
}

/// A store that keeps no more for snapshots than its share of the memory.
fn thrifty() -> Db {
    Db::in_memory(Options::new().memory(16 << 20).spill_max(0)).unwrap()
}

fn logged() -> Db {
    let device = || std::sync::Arc::new(MemoryDevice::new());
    let options = Options::new().memory(16 << 20);
    Db::open_on_devices(device(), device(), options).unwrap()
}

fn both() -> [Db; 2] {
    [memory(), logged()]
}

fn all(snapshot: &Snapshot, tree: &RawTree) -> Vec<(Vec<u8>, Vec<u8>)> {
    let there: Vec<_> = snapshot.iter(tree).unwrap().map(Result::unwrap).collect();
    let mut back = Vec::new();
    let mut range = snapshot.iter(tree).unwrap();
    while let Some((key, value)) = range.next_entry_back().unwrap() {
        back.push((key.to_vec(), value.to_vec()));
    }
    back.reverse();
    assert_eq!(there, back, "both ways");
    for (key, value) in &there {
        assert_eq!(snapshot.get(tree, key).unwrap().as_ref(), Some(value));
    }
    there
}

fn entry(key: &str, value: &str) -> (Vec<u8>, Vec<u8>) {
    (key.into(), value.into())
}

fn put(tree: &RawTree, key: &str, value: &str) {
    tree.put(key.as_bytes(), value.as_bytes()).unwrap();
}

#[test]
fn a_snapshot_sees_what_was_committed_and_nothing_later() {
    for db in both() {
        let tree = db.raw_tree("t").unwrap();
        put(&tree, "b", "1");
        put(&tree, "d", "1");
        put(&tree, "f", "1");
        let before = [entry("b", "1"), entry("d", "1"), entry("f", "1")];
        let first = db.snapshot().unwrap();
        put(&tree, "a", "2");
        put(&tree, "d", "2");
        tree.delete(b"f").unwrap();
        put(&tree, "g", "2");
        let second = db.snapshot().unwrap();
        let between = [entry("a", "2"), entry("b", "1"), entry("d", "2"), entry("g", "2")];
        tree.delete(b"d").unwrap();
        put(&tree, "f", "3");
        tree.update_in_place(b"b", |value| value[0] = b'3').unwrap();
        assert!(tree.compare_and_swap(b"g", Some(b"2"), None).unwrap());
        assert_eq!(all(&first, &tree), before);
        assert_eq!(all(&second, &tree), between);
        drop(first);
        assert_eq!(all(&second, &tree), between);
        let third = db.snapshot().unwrap();
        let after = [entry("a", "2"), entry("b", "3"), entry("f", "3")];
        assert_eq!(all(&third, &tree), after);
        drop(second);
        drop(third);
        assert_eq!(all(&db.snapshot().unwrap(), &tree), after);
    }
}

#[test]
fn a_snapshot_sees_nothing_of_transactions_under_way_and_waits_for_none() {
    for db in both() {
        let tree = db.raw_tree("t").unwrap();
        let large = vec![7; 20_000];
        for key in ["a", "b", "c"] {
            put(&tree, key, "before");
        }
        tree.put(b"large", &large).unwrap();
        let mut tx = db.begin().unwrap();
        tx.put(&tree, b"a", b"during").unwrap();
        tx.put(&tree, b"a", b"again!").unwrap();
        tx.delete(&tree, b"b").unwrap();
        tx.put(&tree, b"b", b"anew").unwrap();
        tx.put(&tree, b"new", b"during").unwrap();
        tx.delete(&tree, b"large").unwrap();
        // It begins within the transaction, which goes on.
        let within = db.snapshot().unwrap();
        let expected = [entry("a", "before"), entry("b", "before"), entry("c", "before")];
        let check = |snapshot: &Snapshot| {
            let seen = all(snapshot, &tree);
            assert_eq!(seen[..3], expected);
            assert_eq!(seen[3..], [(b"large".to_vec(), large.clone())]);
        };
        check(&within);
        let savepoint = tx.savepoint().unwrap();
        tx.delete(&tree, b"c").unwrap();
        tx.put(&tree, b"large", &[1; 9000]).unwrap();
        let later = db.snapshot().unwrap();
        check(&later);
        tx.rollback_to(&savepoint).unwrap();
        check(&within);
        tx.put(&tree, b"c", b"at last").unwrap();
        tx.commit().unwrap();
        check(&within);
        check(&later);
        let after = db.snapshot().unwrap();
        let expected = [
            entry("a", "again!"),
            entry("b", "anew"),
            entry("c", "at last"),
            entry("new", "during"),
        ];
        assert_eq!(all(&after, &tree), expected);
    }
}

#[test]
fn what_is_taken_back_was_never_seen() {
    for db in both() {
        let tree = db.raw_tree("t").unwrap();
        put(&tree, "a", "1");
        put(&tree, "b", "1");
        let expected = [entry("a", "1"), entry("b", "1")];
        let early = db.snapshot().unwrap();
        let tx = db.begin().unwrap();
        tx.put(&tree, b"a", b"2").unwrap();
        tx.delete(&tree, b"b").unwrap();
        tx.put(&tree, b"c", b"2").unwrap();
        let within = db.snapshot().unwrap();
        tx.abort().unwrap();
        let after = db.snapshot().unwrap();
        for snapshot in [&early, &within, &after] {
            assert_eq!(all(snapshot, &tree), expected);
        }
    }
}

#[test]
fn trees_that_are_filled_and_emptied_as_a_whole_stay_as_they_were() {
    for db in both() {
        let (tree, other) = (db.raw_tree("t").unwrap(), db.raw_tree("o").unwrap());
        let empty = db.snapshot().unwrap();
        let rows = (0..1000u32).map(|i| (i.to_be_bytes().to_vec(), vec![i as u8; 100]));
        tree.bulk_load(rows, BulkOptions::default()).unwrap();
        assert!(all(&empty, &tree).is_empty());
        let full = db.snapshot().unwrap();
        put(&other, "x", "y");
        let middle =
            KeyRange::of::<Vec<u8>, &[u8]>(&100u32.to_be_bytes()[..]..&900u32.to_be_bytes()[..]);
        assert_eq!(tree.remove_range(&middle).unwrap(), 800);
        let thin = db.snapshot().unwrap();
        tree.clear().unwrap();
        let none = db.snapshot().unwrap();
        tree.bulk_load([entry("z", "z")], BulkOptions::default()).unwrap();
        assert!(all(&empty, &tree).is_empty() && all(&none, &tree).is_empty());
        assert!(all(&full, &other).is_empty());
        let keys = |snapshot| -> Vec<u32> {
            let key = |(key, _): (Vec<u8>, _)| u32::from_be_bytes(key.try_into().unwrap());
            all(snapshot, &tree).into_iter().map(key).collect()
        };
        assert!(keys(&full).into_iter().eq(0..1000));
        assert!(keys(&thin).into_iter().eq((0..100).chain(900..1000)));
        assert_eq!(all(&db.snapshot().unwrap(), &tree), [entry("z", "z")]);
    }
}

#[test]
fn a_forgotten_snapshot_is_lost_with_an_error_that_names_it_and_writers_go_on() {
    let db = thrifty();
    let tree = db.raw_tree("t").unwrap();
    let value = |i: u32| vec![i as u8; 1000];
    for i in 0..2000u32 {
        tree.put(&i.to_be_bytes(), &value(i)).unwrap();
    }
    let forgotten = db.snapshot().unwrap();
    let line = line!() - 1;
    let mut range = forgotten.iter(&tree).unwrap();
    assert!(range.next().is_some());
    for i in 0..2000u32 {
        tree.put(&i.to_be_bytes(), &value(i + 1)).unwrap();
    }
    let lost = forgotten.get(&tree, &0u32.to_be_bytes()).unwrap_err();
    assert!(matches!(&lost, Error::Txn(TxnError::SnapshotLost { .. })), "{lost}");
    let here = format!("{}:{line}:", file!().rsplit('/').next().unwrap());
    assert!(lost.to_string().contains(&here), "{lost}");
    assert!(range.any(|entry| entry.is_err()), "ranges tell, too");
    // Another one is as good as any.
    let next = db.snapshot().unwrap();
    tree.delete(&7u32.to_be_bytes()).unwrap();
    assert_eq!(next.get(&tree, &7u32.to_be_bytes()).unwrap(), Some(value(8)));
    assert_eq!(all(&next, &tree).len(), 2000);
}

#[test]
fn a_range_that_loses_its_snapshot_says_so_once_with_its_caller_and_is_over() {
    let db = thrifty();
    let tree = db.raw_tree("t").unwrap();
    for i in 0..2000u32 {
        tree.put(&i.to_be_bytes(), &[1; 1000]).unwrap();
    }
    let (mut lost, mut next) = (Vec::new(), 10_000u32);
    for row in &tree {
        match row {
            Ok(_) => {
                for _ in 0..20 {
                    tree.put(&(next % 2000).to_be_bytes(), &[2; 1000]).unwrap();
                    tree.put(&next.to_be_bytes(), &[2; 1000]).unwrap();
                    next += 1;
                }
            }
            Err(error) => lost.push(error),
        }
        assert!(next < 100_000, "it goes on for ever");
    }
    let [Error::Txn(TxnError::SnapshotLost { caller, .. })] = &lost[..] else { panic!("{lost:?}") };
    assert!(caller.contains("snapshots.rs"), "{caller}");
}

#[test]
fn hot_keys_take_memory_once_per_snapshot() {
    let db = memory();
    let tree = db.raw_tree("t").unwrap();
    let snapshots: Vec<_> = (0..10u32)
        .map(|round| {
            // Far more than there is memory for, if all of it were kept.
            for i in 0..2000u32 {
                tree.put(b"hot", &vec![round as u8; 1000 + i as usize % 3]).unwrap();
            }
            tree.put(b"hot", &[round as u8]).unwrap();
            db.snapshot().unwrap()
        })
        .collect();
    for (round, snapshot) in snapshots.iter().enumerate() {
        assert_eq!(snapshot.get(&tree, b"hot").unwrap(), Some(vec![round as u8]));
    }
}

/// Each of them failed with "no snapshot can begin".
#[test]
fn in_memory_a_transaction_that_changed_much_disturbs_no_reader() {
    let db = memory();
    let (tree, other) = (db.raw_tree("t").unwrap(), db.raw_tree("other").unwrap());
    for i in 0..6000u32 {
        tree.put(&i.to_be_bytes(), &[1; 500]).unwrap();
    }
    other.put(b"key", b"value").unwrap();
    let tx = db.begin().unwrap();
    for i in 0..6000u32 {
        tx.tree(&tree).update_in_place(&i.to_be_bytes(), |value| value[..8].fill(2)).unwrap();
    }
    let row = other.iter().next().unwrap().unwrap();
    assert_eq!(row, (b"key".to_vec(), b"value".to_vec()));
    assert!(!other.is_empty().unwrap() && !tree.is_empty().unwrap());
    assert_eq!(tree.first().unwrap().unwrap().1, [1; 500]);
    assert!(tree.iter().all(|row| row.unwrap().1 == [1; 500]));
    assert_eq!(all(&db.snapshot().unwrap(), &tree).len(), 6000);
    tx.commit().unwrap();
    assert_eq!(tree.first().unwrap().unwrap().1[..8], [2; 8]);
}

#[test]
fn in_memory_what_runs_out_fails_the_large_transaction_and_no_reader() {
    let db = memory();
    let tree = db.raw_tree("t").unwrap();
    for i in 0..40_000u32 {
        tree.put(&i.to_be_bytes(), &[1; 900]).unwrap();
    }
    let tx = db.begin().unwrap();
    let update =
        |i: u32| tx.tree(&tree).update_in_place(&i.to_be_bytes(), |value| value[..8].fill(2));
    let refused = (0..40_000u32).map(update).find_map(Result::err).unwrap();
    assert!(matches!(refused, Error::Txn(TxnError::UndoTooLarge { .. })), "{refused}");
    assert_eq!(tree.iter().filter(|row| row.as_ref().unwrap().1[0] == 1).count(), 40_000);
    tx.abort().unwrap();
    let stats = db.stats();
    assert!(stats.undo_bytes == 0 && stats.spilled_bytes <= 8, "{}", stats.spilled_bytes);
}

#[test]
fn ranges_outside_transactions_show_what_is_committed() {
    for db in both() {
        let tree = db.raw_tree("t").unwrap();
        let large = vec![9; 6000];
        for i in 0..600u32 {
            let value = if i % 50 == 0 { large.clone() } else { vec![1; 40] };
            tree.put(&i.to_be_bytes(), &value).unwrap();
        }
        let expected: Vec<_> = tree.iter().map(Result::unwrap).collect();
        assert_eq!(expected.len(), 600);
        // At each place of a range, from both ends, a transaction begins to write all over.
        for stop in [0usize, 1, 7, 49, 50, 51, 333, 599] {
            let mut range = tree.iter();
            let (mut there, mut back) = (Vec::new(), Vec::new());
            for i in 0..stop {
                if i % 3 == 0 {
                    back.push(range.next_back().unwrap().unwrap());
                } else {
                    there.push(range.next().unwrap().unwrap());
                }
            }
            let tx = db.begin().unwrap();
            for i in 0..600u32 {
                match i % 3 {
                    0 => tx.put(&tree, &i.to_be_bytes(), b"dirty").map(drop).unwrap(),
                    1 => tx.delete(&tree, &i.to_be_bytes()).map(drop).unwrap(),
                    _ => tx
                        .put(&tree, &[&i.to_be_bytes()[..], b"+"].concat(), b"")
                        .map(drop)
                        .unwrap(),
                }
            }
            assert_eq!(tree.len().unwrap(), 600, "they are counted as they are read");
            there.extend(range.map(Result::unwrap));
            there.extend(back.into_iter().rev());
            assert_eq!(there, expected, "{stop}");
            tx.abort().unwrap();
        }
    }
}

/// Reader of a value's bytes that queries the store before it returns the first piece.
struct Asking<'a>(&'a Db, &'a RawTree, std::io::Repeat, bool);

impl std::io::Read for Asking<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if !std::mem::replace(&mut self.3, true) {
            assert_eq!(self.1.iter().count(), 1);
            assert_eq!(all(&self.0.snapshot().unwrap(), self.1), [entry("a", "1")]);
        }
        self.2.read(out)
    }
}

#[test]
fn a_value_may_come_from_a_source_that_reads_the_same_store() {
    for db in both() {
        let tree = db.raw_tree("t").unwrap();
        put(&tree, "a", "1");
        // Somebody writes, so that ranges are of snapshots.
        let tx = db.begin().unwrap();
        tx.put(&tree, b"x", b"y").unwrap();
        for len in [10, 30_000] {
            let source = Asking(&db, &tree, std::io::repeat(7), false);
            tree.put_from(b"b", len, source).unwrap();
            assert_eq!(tree.get(b"b").unwrap(), Some(vec![7; len as usize]));
            tree.delete(b"b").unwrap();
        }
        tx.abort().unwrap();
    }
}

#[test]
fn a_range_that_outlives_its_memory_still_shows_one_moment() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path().join("s"), Options::new().memory(16 << 20)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    for i in 0..3000u32 {
        tree.put(&i.to_be_bytes(), &[1; 500]).unwrap();
    }
    let tx = db.begin().unwrap();
    tx.put(&tree, b"x", b"y").unwrap();
    let mut range = tree.iter();
    assert_eq!(range.next().unwrap().unwrap().0, 0u32.to_be_bytes());
    for i in 0..3000u32 {
        tree.put(&i.to_be_bytes(), &[2; 500]).unwrap();
    }
    let rest: Vec<_> = range.map(Result::unwrap).collect();
    assert!(rest.into_iter().eq((1..3000u32).map(|i| (i.to_be_bytes().to_vec(), vec![1; 500]))));
    tx.abort().unwrap();
}

#[test]
fn snapshots_need_locks_and_their_own_store() {
    let db = Db::in_memory(Options::new().memory(16 << 20).lab(|lab| lab.locks = false)).unwrap();
    let refused = db.snapshot().unwrap_err();
    assert!(matches!(refused, Error::Txn(TxnError::NoSnapshots)), "{refused}");
    let (one, other) = (memory(), memory());
    let (snapshot, tree) = (one.snapshot().unwrap(), other.raw_tree("t").unwrap());
    assert!(matches!(snapshot.get(&tree, b"a"), Err(Error::OtherStore { .. })));
    let mut rows = snapshot.iter(&tree).unwrap();
    assert!(matches!(rows.next(), Some(Err(Error::OtherStore { .. }))));
}

#[test]
fn typed_trees_are_read_as_well() {
    let db = memory();
    let tree = db.tree::<u32, String>("t").unwrap();
    tree.insert(&1, "one").unwrap();
    tree.insert(&2, "two").unwrap();
    let snapshot = db.snapshot().unwrap();
    tree.insert(&2, "zwei").unwrap();
    tree.delete(&1).unwrap();
    let then = snapshot.tree(&tree);
    assert_eq!(then.get(&2).unwrap().as_deref(), Some("two"));
    let all: Vec<_> = then.range(0u32..).map(Result::unwrap).collect();
    assert_eq!(all, [(1, "one".to_string()), (2, "two".to_string())]);
}

#[test]
fn a_snapshot_that_finds_no_memory_for_what_others_have_changed_is_worth_another_try() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new().memory(4 << 20).page_size(4096).spill_max(0);
    let db = Db::open(folder.path().join("s"), options).unwrap();
    let tree = db.raw_tree("t").unwrap();
    for i in 0..1000u32 {
        tree.put(&i.to_be_bytes(), &[1; 900]).unwrap();
    }
    let mut open: Vec<_> = (0..16).map(|_| db.begin().unwrap()).collect();
    for (at, tx) in (0u32..).zip(&mut open) {
        for i in 0..50 {
            tx.put(&tree, &(at * 50 + i).to_be_bytes(), &[2; 900]).unwrap();
        }
    }
    let error = db.snapshot().unwrap_err();
    assert!(matches!(error, Error::Txn(TxnError::SnapshotTooLarge { .. })), "{error}");
    assert!(error.is_retriable(), "{error}");
    open.into_iter().for_each(|tx| tx.abort().unwrap());
    assert_eq!(all(&db.snapshot().unwrap(), &tree).len(), 1000);
}
