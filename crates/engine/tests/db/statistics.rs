//! Statistics of a store: counts, times and reports, whichever interface is called.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use millpond::{Db, Durability, EvictionMode, Options, Published, Stats, TxnOptions};
use millpond_device::{MemoryDevice, PowerSupply};

use super::{place, tiny};

fn options() -> Options {
    Options::new().memory(16 << 20).lab(|lab| lab.latency_sample_period = 1)
}

/// Returns the statistics of `db` that `work` adds.
fn during(db: &Db, work: impl FnOnce()) -> Stats {
    let before = db.stats();
    work();
    db.stats().since(&before)
}

fn calls(stats: &Stats) -> (u64, u64, u64, u64, u64) {
    (stats.gets, stats.puts, stats.deletes, stats.scans, stats.scan_rows)
}

#[test]
fn calls_are_counted_alike_by_themselves_in_transactions_and_in_snapshots() {
    let db = Db::in_memory(options()).unwrap();
    let (tree, index) = (db.raw_tree("t").unwrap(), db.raw_hash_index("h").unwrap());
    let heap = db.raw_heap("r").unwrap();
    // The same calls, by themselves and in a transaction.
    macro_rules! use_all {
        ($tree:expr, $index:expr, $heap:expr) => {{
            let (tree, index, heap) = ($tree, $index, $heap);
            for key in [b"a", b"b", b"c"] {
                assert_eq!(tree.insert(key, b"1").unwrap(), None);
            }
            assert!(tree.compare_and_swap(b"a", Some(b"1"), Some(b"2")).unwrap());
            assert!(tree.get(b"a").unwrap().is_some() && tree.contains(b"b").unwrap());
            assert!(tree.remove(b"b").unwrap().is_some() && tree.pop_last().unwrap().is_some());
            assert_eq!(tree.iter().count(), 1);
            assert_eq!(tree.remove(b"a").unwrap().unwrap(), b"2");
            assert_eq!(index.insert(b"k", b"v").unwrap(), None);
            assert!(index.get(b"k").unwrap().is_some() && index.remove(b"k").unwrap().is_some());
            let id = heap.append(b"record").unwrap();
            assert!(heap.get(id).unwrap().is_some() && heap.remove(id).unwrap().is_some());
        }};
    }
    let alone = during(&db, || use_all!(&tree, &index, &heap));
    let inside = during(&db, || {
        let tx = db.begin().unwrap();
        use_all!(tx.tree(&tree), tx.hash_index(&index), tx.heap(&heap));
        tx.commit().unwrap();
    });
    assert_eq!(calls(&alone), (4, 6, 5, 1, 1));
    assert_eq!(calls(&inside), calls(&alone));
    assert_eq!((inside.commits, inside.aborts, alone.commits), (1, 0, 0));
    assert_eq!((inside.get_time.count, inside.put_time.count), (4, 6));
    assert_eq!((inside.delete_time.count, inside.commit_time.count), (5, 1));

    tree.put(b"a", b"1").unwrap();
    index.put(b"k", b"v").unwrap();
    let seen = during(&db, || {
        let snapshot = db.snapshot().unwrap();
        assert!(snapshot.tree(&tree).get(b"a").unwrap().is_some());
        assert!(snapshot.hash_index(&index).get(b"k").unwrap().is_some());
        assert_eq!(snapshot.tree(&tree).iter().count(), 1);
        assert_eq!(db.stats().open_snapshots, 1);
    });
    assert_eq!((calls(&seen), seen.snapshots, seen.open_snapshots), ((2, 0, 0, 1, 1), 1, 0));
}

#[test]
fn an_abort_is_counted_with_its_reason() {
    let db = Db::in_memory(options()).unwrap();
    let tree = db.tree::<u32, u32>("t").unwrap();
    tree.put(&1, &1).unwrap();
    let asked = during(&db, || {
        db.begin().unwrap().abort().unwrap();
        let dropped = db.begin().unwrap();
        dropped.tree(&tree).put(&1, &2).unwrap();
        assert_eq!(db.stats().active_transactions, 1);
        drop(dropped);
    });
    let reasons = |stats: &Stats| {
        (stats.aborts, stats.aborts_deadlock, stats.aborts_timeout, stats.aborts_error)
    };
    assert_eq!((reasons(&asked), asked.active_transactions), ((2, 0, 0, 0), 0));

    let late = during(&db, || {
        let holder = db.begin().unwrap();
        holder.tree(&tree).put(&1, &2).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let brief = TxnOptions::default().wait_max(Duration::from_millis(20));
                let tx = db.begin_with(brief).unwrap();
                assert!(tx.tree(&tree).get(&1).unwrap_err().is_timeout());
            });
        });
        holder.commit().unwrap();
    });
    assert_eq!((reasons(&late), late.commits, late.lock_timeouts), ((1, 0, 1, 0), 1, 1));
    assert_eq!((late.lock_waits, late.lock_time.count), (1, 1));
    assert!(late.lock_time.max_ns >= 20_000_000, "{:?}", late.lock_time);

    let circle = during(&db, || {
        let both = std::sync::Barrier::new(2);
        let lost: Vec<bool> = std::thread::scope(|scope| {
            let threads = [(1, 2), (2, 1)].map(|(first, second)| {
                let (db, tree, both) = (&db, &tree, &both);
                scope.spawn(move || {
                    let tx = db.begin().unwrap();
                    tx.tree(tree).put(&first, &7).unwrap();
                    both.wait();
                    let lost = tx.tree(tree).put(&second, &7).is_err();
                    if !lost {
                        tx.commit().unwrap();
                    }
                    lost
                })
            });
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(lost.iter().filter(|lost| **lost).count(), 1);
    });
    assert_eq!((reasons(&circle), circle.commits, circle.deadlocks), ((1, 1, 0, 0), 1, 1));

    let wrong = during(&db, || {
        let other = Db::in_memory(options()).unwrap();
        let foreign = other.tree::<u32, u32>("t").unwrap();
        let mut tx = db.begin().unwrap();
        // What was undone is no reason any more, what fails afterwards is.
        let savepoint = tx.savepoint().unwrap();
        assert!(tx.tree(&db.raw_tree("u").unwrap()).put(&[1; 5000], b"").is_err());
        tx.rollback_to(&savepoint).unwrap();
        assert!(tx.tree(&foreign).get(&1).is_err());
        tx.abort().unwrap();
        let tx = db.begin().unwrap();
        assert!(tx.tree(&db.raw_tree("u").unwrap()).put(&[1; 5000], b"").is_err());
        tx.abort().unwrap();
    });
    assert_eq!(reasons(&wrong), (2, 0, 0, 1));
}

#[test]
fn log_and_checkpoints_are_counted_and_timed() {
    let (_dir, path) = place();
    let db = Db::open(&path, options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let commit = |n: u32| {
        let tx = db.begin_with(TxnOptions::default().durability(Durability::Sync)).unwrap();
        tx.tree(&tree).put(&n.to_be_bytes(), &[7; 100]).unwrap();
        tx.commit().unwrap();
    };
    let mut commits = 0;
    let stats = during(&db, || {
        let before = db.stats().log_waits;
        // The log's own thread may be faster with some of them.
        while commits < 10 || db.stats().log_waits == before {
            commit(commits);
            commits += 1;
        }
    });
    assert_eq!((stats.commits, stats.commit_time.count), (commits.into(), commits.into()));
    assert!(stats.log_waits >= 1 && stats.log_time.count == stats.log_waits, "{stats}");
    assert!(stats.log_bytes > 1000 && stats.log_bytes_written >= stats.log_bytes, "{stats}");
    assert!(stats.log_records >= 20 && stats.log_flushes >= 1, "{stats}");
    assert!(stats.log_syncs >= stats.log_flushes, "{stats}");
    assert!(stats.log_sync_time.count >= stats.log_flushes, "{stats}");
    assert_eq!((stats.waiting_for_log, stats.checkpoint_failures), (0, 0));
    let before = db.stats().log_unforgotten;
    let stats = during(&db, || db.checkpoint().unwrap());
    assert_eq!((stats.checkpoints, stats.checkpoint_time.count), (1, 1));
    assert!(stats.log_unforgotten < before, "{before} before, {} after", stats.log_unforgotten);
    drop(tree);
    db.close().unwrap();
    let published = Published::read(&path).unwrap().stats;
    assert_eq!(published.commits, u64::from(commits));
    assert!(published.log_bytes > 1000 && published.checkpoints >= 2);
}

#[test]
fn a_commit_that_fails_is_not_counted_as_one() {
    let supply = PowerSupply::new();
    let [data, log] = ["data", "log"].map(|name| supply.device(name, MemoryDevice::new()));
    let db = Db::open_on_devices(data, log, options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    db.flush().unwrap();
    let stats = during(&db, || {
        let tx = db.begin_with(TxnOptions::default().durability(Durability::Sync)).unwrap();
        tx.tree(&tree).put(b"k", b"v").unwrap();
        supply.cut();
        assert!(tx.commit().is_err());
    });
    assert_eq!((stats.commits, stats.puts), (0, 1));
}

#[test]
fn what_snapshots_and_transactions_keep_is_a_gauge() {
    let (_dir, path) = place();
    let db = Db::open(&path, options().memory(64 << 20)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let write = |byte: u8| {
        for n in 0..2000u32 {
            tree.put(&n.to_be_bytes(), &[byte; 100]).unwrap();
        }
    };
    write(1);
    assert_eq!((db.stats().version_bytes, db.stats().spilled_bytes), (0, 0));
    let snapshot = db.snapshot().unwrap();
    write(2);
    assert!(db.stats().version_bytes > 2000 * 100, "{}", db.stats());
    drop(snapshot);
    assert_eq!((db.stats().version_bytes, db.stats().open_snapshots), (0, 0));
    let tx = db.begin().unwrap();
    for n in 0..20_000u32 {
        tx.tree(&tree).put(&(n % 2000).to_be_bytes(), &[n as u8; 100]).unwrap();
    }
    // The newest chunk of it is not charged yet, and what does not fit is in the spill file.
    let kept = db.stats();
    assert!(kept.undo_bytes > 0 && kept.undo_bytes + kept.spilled_bytes > 10_000 * 100, "{kept}");
    assert!(db.stats().lock_bytes > 0 && db.stats().log_unforgotten > 2000 * 100);
    tx.abort().unwrap();
    assert_eq!(db.stats().active_transactions, 0);
}

/// A closure of the user lingers under a page's latch, and another thread wants it.
#[test]
fn a_thread_that_waits_is_counted_timed_and_seen() {
    let db = Db::in_memory(options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    tree.put(b"k", b"value").unwrap();
    tree.put(b"neighbour", b"value").unwrap();
    let (entered, is_entered) = mpsc::channel();
    let (go, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    let stats = during(&db, || {
        let before = db.stats().latch_waits;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let linger = |_: &mut [u8]| {
                    entered.send(()).unwrap();
                    wait.lock().unwrap().recv().unwrap();
                };
                assert!(tree.update_in_place(b"k", linger).unwrap().is_some());
            });
            is_entered.recv().unwrap();
            // Not the same key: its lock is held, too.
            let reader = scope.spawn(|| tree.get(b"neighbour").unwrap().unwrap());
            while db.stats().latch_waits == before {
                std::thread::yield_now();
            }
            go.send(()).unwrap();
            assert_eq!(reader.join().unwrap(), b"value");
        });
    });
    assert!(stats.latch_conflicts >= 1 && stats.latch_waits >= 1, "{stats}");
    assert_eq!(stats.latch_time.count, stats.latch_waits);
    assert_eq!(stats.waiting_for_latch, 0);

    // Who waits for a lock is seen while it does.
    let holder = db.begin().unwrap();
    holder.tree(&tree).put(b"k", b"other").unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let tx = db.begin().unwrap();
            let found = tx.tree(&tree).get(b"k").unwrap();
            tx.commit().unwrap();
            found
        });
        while db.stats().waiting_for_lock == 0 {
            std::thread::yield_now();
        }
        holder.commit().unwrap();
        assert_eq!(waiter.join().unwrap().unwrap(), b"other");
    });
    assert_eq!(db.stats().waiting_for_lock, 0);
}

#[test]
fn evictions_and_reads_are_counted_by_kind() {
    let (_dir, path) = place();
    // Nobody but this thread makes frames, and waits.
    let options = tiny(64).lab(|lab| {
        lab.eviction = EvictionMode::Worker;
        (lab.background_writer, lab.background_merge) = (false, false);
    });
    let db = Db::open(&path, options).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let stats = during(&db, || {
        for n in 0..3000u32 {
            tree.put(&n.wrapping_mul(2_654_435_761).to_be_bytes(), &[1; 40]).unwrap();
        }
        for _ in 0..2 {
            assert_eq!(tree.iter().count(), 3000);
        }
    });
    assert!(stats.evictions > 100, "{stats}");
    assert_eq!(stats.evictions_worker, stats.evictions, "{stats}");
    assert!(stats.evictions_scanned <= stats.evictions, "{stats}");
    assert!(stats.reads_ahead <= stats.reads && stats.reads > 0, "{stats}");
    assert_eq!(stats.free_frame_waits, stats.free_frame_time.count, "{stats}");
    assert!(stats.free_frame_waits > 0, "{stats}");
}
