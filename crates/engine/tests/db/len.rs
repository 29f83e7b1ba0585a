//! The number of entries of a tree, which the store counts: in every place where it is asked for,
//! and across all that changes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fastrand::Rng;
use millpond::internals::stats::counters::Counter;
use millpond::{BulkOptions, Db, Durability, Error, Options, RawTree, TxnOptions};
use millpond_device::{Device, MemoryDevice};

fn options() -> Options {
    // What merges makes references, too.
    Options::new().memory(16 << 20).lab(|lab| lab.background_merge = false)
}

fn key(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

/// Counts by a walk.
fn walked(tree: &RawTree) -> u64 {
    tree.count(&b""[..]..).unwrap()
}

/// References to pages that a call makes.
fn references(db: &Db, call: impl FnOnce()) -> u64 {
    let before = db.stats().counter(Counter::References);
    call();
    db.stats().counter(Counter::References) - before
}

#[test]
fn a_length_is_that_of_the_place_where_it_is_asked_for() {
    let db = Db::in_memory(options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    for n in 0..10 {
        tree.put(&key(n), b"v").unwrap();
    }
    tree.put(&key(3), b"another").unwrap();
    assert!(tree.insert(&key(3), b"v").unwrap().is_some() && !tree.delete(&key(77)).unwrap());
    let before = db.snapshot().unwrap();
    let mut tx = db.begin().unwrap();
    let inside = tx.tree(&tree);
    inside.put(&key(20), b"v").unwrap();
    inside.put(&key(21), &[7; 20_000]).unwrap();
    inside.delete(&key(0)).unwrap();
    let savepoint = tx.savepoint().unwrap();
    inside.delete(&key(1)).unwrap();
    inside.delete(&key(2)).unwrap();
    let amid = db.snapshot().unwrap();
    assert_eq!((inside.len().unwrap(), tree.len().unwrap()), (9, 10));
    tx.rollback_to(&savepoint).unwrap();
    assert_eq!((tx.tree(&tree).len().unwrap(), tree.len().unwrap()), (11, 10));
    for snapshot in [&before, &amid] {
        assert_eq!(snapshot.tree(&tree).len().unwrap(), 10);
    }
    tx.commit().unwrap();
    let after = db.snapshot().unwrap();
    tree.delete(&key(20)).unwrap();
    assert_eq!(tree.pop_first().unwrap().unwrap().0, key(1));
    let seen = [&before, &amid, &after].map(|snapshot| snapshot.tree(&tree).len().unwrap());
    assert_eq!((seen, tree.len().unwrap(), walked(&tree)), ([10, 10, 11], 9, 9));
    let tx = db.begin().unwrap();
    tx.tree(&tree).delete(&key(5)).unwrap();
    tx.abort().unwrap();
    assert_eq!(tree.len().unwrap(), 9);
}

#[test]
fn a_length_reads_no_page() {
    let db = Db::in_memory(options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let rows = (0..50_000).map(|n| (key(n).to_vec(), vec![1; 10]));
    tree.bulk_load(rows, BulkOptions::default()).unwrap();
    let snapshot = db.snapshot().unwrap();
    let tx = db.begin().unwrap();
    let all = [
        references(&db, || assert_eq!(tree.len().unwrap(), 50_000)),
        references(&db, || assert_eq!(snapshot.tree(&tree).len().unwrap(), 50_000)),
        references(&db, || assert_eq!(tx.tree(&tree).len().unwrap(), 50_000)),
    ];
    assert_eq!(all, [0; 3]);
    assert!(references(&db, || assert_eq!(walked(&tree), 50_000)) > 100);
}

fn devices() -> [Arc<dyn Device>; 2] {
    [(); 2].map(|()| Arc::new(MemoryDevice::new()) as Arc<dyn Device>)
}

/// Everything that changes many entries at once.
fn change_much(db: &Db, tree: &RawTree) -> u64 {
    let size = |n| if n % 500 == 7 { 9_000 } else { 20 };
    let rows = (0..3_000).map(|n| (key(n).to_vec(), vec![2; size(n)]));
    tree.bulk_load(rows, BulkOptions::default()).unwrap();
    assert_eq!(tree.len().unwrap(), 3_000);
    tree.remove_range(&key(100)[..]..&key(1_100)[..]).unwrap();
    assert_eq!(tree.len().unwrap(), 2_000);
    tree.retain(|key, _| key[7] % 2 == 0).unwrap();
    assert_eq!(tree.len().unwrap(), 1_000);
    let tx = db.begin().unwrap();
    tx.tree(tree).remove_range(&key(2_000)[..]..).unwrap();
    assert_eq!(tx.tree(tree).len().unwrap(), 500);
    assert_eq!(tree.len().unwrap(), 1_000);
    tx.commit().unwrap();
    assert_eq!((tree.len().unwrap(), walked(tree)), (500, 500));
    while !tree.compact(64).unwrap() {}
    db.shrink().unwrap();
    tree.len().unwrap()
}

#[test]
fn lengths_outlive_a_close_and_what_changes_many_entries() {
    let folder = tempfile::tempdir().unwrap();
    for has_log in [true, false] {
        let path = folder.path().join(format!("{has_log}.mp"));
        let options = options().lab(|lab| lab.log = has_log);
        let db = Db::open(&path, options.clone()).unwrap();
        let len = change_much(&db, &db.raw_tree("t").unwrap());
        db.raw_tree("gone").unwrap().put(b"k", b"v").unwrap();
        db.drop_tree("gone").unwrap();
        db.close().unwrap();
        let db = Db::open(&path, options.clone()).unwrap();
        let tree = db.raw_tree("t").unwrap();
        let first = references(&db, || assert_eq!(tree.len().unwrap(), len));
        // Without a log it is counted once.
        assert_eq!(first == 0, has_log);
        assert_eq!(references(&db, || assert_eq!(tree.len().unwrap(), len)), 0);
        // The next tree has the id of the one that was dropped.
        let again = db.raw_tree("again").unwrap();
        assert_eq!(again.len().unwrap(), 0);
        tree.clear().unwrap();
        assert_eq!((tree.len().unwrap(), walked(&tree)), (0, 0));
        assert!(db.check().unwrap().is_sound());
        drop((tree, again));
        db.close().unwrap();
    }
}

#[test]
fn a_store_that_was_changed_without_its_log_is_counted_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.mp");
    for (has_log, len) in [(true, 1), (false, 2), (true, 3), (true, 4)] {
        let db = Db::open(&path, options().lab(|lab| lab.log = has_log)).unwrap();
        let tree = db.raw_tree("t").unwrap();
        tree.put(&key(len), b"v").unwrap();
        assert_eq!(tree.len().unwrap(), len);
        drop(tree);
        db.close().unwrap();
    }
    let db = Db::open(&path, options().read_only(true)).unwrap();
    assert_eq!(db.open_tree("t").unwrap().len().unwrap(), 4);
}

/// Inserts, removes, commits and aborts, some of them outside transactions.
fn work(db: &Db, tree: &RawTree, thread: u64, turns: u64) -> Result<(), Error> {
    let mut random = Rng::with_seed(thread);
    for turn in 0..turns {
        let some = |random: &mut Rng| key(random.u64(0..60) * 8 + thread);
        if random.u8(..4) == 0 {
            let key = some(&mut random);
            if random.bool() {
                tree.put(&key, b"v")?
            } else {
                tree.delete(&key)?
            };
            continue;
        }
        let mut tx = db.begin_with(TxnOptions::default().durability(Durability::Async))?;
        let inside = tx.tree(tree);
        for _ in 0..random.u32(1..6) {
            let key = some(&mut random);
            if random.bool() {
                inside.put(&key, &[1; 30])?
            } else {
                inside.delete(&key)?
            };
        }
        let savepoint = tx.savepoint().unwrap();
        inside.put(&some(&mut random), b"gone")?;
        if random.bool() {
            tx.rollback_to(&savepoint)?;
        }
        if turn % 3 == 0 {
            tx.abort()?
        } else {
            tx.commit()?
        };
    }
    Ok(())
}

/// Threads change a tree while checkpoints are taken and lengths are compared, then the process is
/// taken for dead: what is recovered has the length that it counts.
#[test]
fn lengths_are_right_while_others_write_and_after_a_crash() {
    const THREADS: u64 = 3;
    for round in 0..4 {
        let [data, log] = devices();
        let options = options().log_gap(256 << 10);
        let db = Db::open_on_devices(data, log, options.clone()).unwrap();
        let tree = db.raw_tree("t").unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let (db, tree, is_over) = (&db, &tree, &is_over);
            let workers: Vec<_> = (0..THREADS)
                .map(|n| scope.spawn(move || work(db, tree, n, 400 + round).unwrap()))
                .collect();
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    db.checkpoint().unwrap();
                    assert!(tree.len().unwrap() <= 60 * THREADS);
                    let snapshot = db.snapshot().unwrap();
                    let view = snapshot.tree(tree);
                    assert_eq!(view.len().unwrap(), view.count(&b""[..]..).unwrap());
                    assert!(db.check().unwrap().is_sound());
                }
            });
            workers.into_iter().for_each(|worker| worker.join().unwrap());
            is_over.store(true, Ordering::SeqCst);
        });
        let left = db.begin().unwrap();
        left.tree(&tree).put(b"left", b"v").unwrap();
        left.tree(&tree).remove_range(&key(5)[..]..&key(50)[..]).unwrap();
        let len = tree.len().unwrap();
        // A copy is what a crash leaves: a transaction is under way.
        let targets = devices();
        db.backup_to_devices(
            &targets[0],
            &targets[1],
            &mut |_| std::ops::ControlFlow::Continue(()),
        )
        .unwrap();
        left.abort().unwrap();
        assert_eq!((tree.len().unwrap(), walked(&tree)), (len, len));
        let [data, log] = targets;
        let recovered = Db::open_on_devices(data, log, options).unwrap();
        assert_eq!(recovered.recovery().unwrap().losers, 1);
        let tree = recovered.raw_tree("t").unwrap();
        assert_eq!((tree.len().unwrap(), walked(&tree)), (len, len));
    }
}
