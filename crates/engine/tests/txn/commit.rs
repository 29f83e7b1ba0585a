//! Commit, abort, savepoints, isolation, in a store that is not interrupted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use millpond::{Db, Error, Isolation, Options, TxnOptions};
use millpond_device::{FaultyDevice, MemoryDevice};

use crate::byte_calls::TxnCalls;

fn options() -> Options {
    Options::new().memory(16 << 20)
}

fn logged() -> Db {
    let (data, log) = (Arc::new(MemoryDevice::new()), Arc::new(MemoryDevice::new()));
    Db::open_on_devices(data, log, options()).unwrap()
}

fn stores() -> Vec<Db> {
    vec![logged(), Db::in_memory(options()).unwrap()]
}

#[test]
fn what_is_committed_stays_and_what_is_aborted_has_never_been() {
    for db in stores() {
        let (a, b) = (db.raw_tree("a").unwrap(), db.raw_tree("b").unwrap());
        a.put(b"kept", b"old").unwrap();
        a.put(b"gone", &[7; 9000]).unwrap();
        let tx = db.begin().unwrap();
        assert!(tx.put(&a, b"kept", b"new value").unwrap());
        assert!(!tx.put(&b, b"fresh", &[9; 20_000]).unwrap());
        assert!(tx.delete(&a, b"gone").unwrap());
        assert_eq!(tx.get(&a, b"gone").unwrap(), None);
        tx.abort().unwrap();
        assert_eq!(a.get(b"kept").unwrap().as_deref(), Some(&b"old"[..]));
        assert_eq!(a.get(b"gone").unwrap(), Some(vec![7; 9000]));
        assert_eq!(b.get(b"fresh").unwrap(), None);

        let tx = db.begin().unwrap();
        tx.put(&a, b"kept", b"new").unwrap();
        tx.put(&b, b"fresh", &[9; 20_000]).unwrap();
        tx.delete(&a, b"gone").unwrap();
        tx.commit().unwrap();
        assert_eq!(a.get(b"kept").unwrap().as_deref(), Some(&b"new"[..]));
        assert_eq!(a.get(b"gone").unwrap(), None);
        assert_eq!(b.get(b"fresh").unwrap(), Some(vec![9; 20_000]));
        assert!(a.check().unwrap().violations.is_empty());
        assert!(b.check().unwrap().violations.is_empty());
        drop((a, b));
        db.close().unwrap();
    }
}

#[test]
fn a_transaction_goes_back_to_its_savepoints() {
    for db in stores() {
        let tree = db.raw_tree("tree").unwrap();
        let mut tx = db.begin().unwrap();
        tx.put(&tree, b"1", b"one").unwrap();
        let first = tx.savepoint().unwrap();
        tx.put(&tree, b"1", b"eins").unwrap();
        tx.put(&tree, b"2", &[2; 5000]).unwrap();
        let second = tx.savepoint().unwrap();
        tx.delete(&tree, b"2").unwrap();
        tx.delete(&tree, b"1").unwrap();
        tx.rollback_to(&second).unwrap();
        assert_eq!(tx.get(&tree, b"1").unwrap().as_deref(), Some(&b"eins"[..]));
        assert_eq!(tx.get(&tree, b"2").unwrap(), Some(vec![2; 5000]));
        tx.rollback_to(&first).unwrap();
        assert_eq!(tx.get(&tree, b"1").unwrap().as_deref(), Some(&b"one"[..]));
        assert_eq!(tx.get(&tree, b"2").unwrap(), None);
        assert!(tx.rollback_to(&second).is_err(), "it lay behind the first");
        tx.rollback_to(&first).unwrap();
        let other = db.begin().unwrap().savepoint().unwrap();
        assert!(tx.rollback_to(&other).is_err());
        tx.commit().unwrap();
        assert_eq!(tree.get(b"1").unwrap().as_deref(), Some(&b"one"[..]));
        assert_eq!(tree.len().unwrap(), 1);
    }
}

#[test]
fn a_transaction_that_is_dropped_is_aborted() {
    for db in stores() {
        let tree = db.raw_tree("tree").unwrap();
        let tx = db.begin().unwrap();
        tx.put(&tree, b"key", b"value").unwrap();
        drop(tx);
        assert_eq!(tree.get(b"key").unwrap(), None);
        let tx = db.begin().unwrap();
        tx.put(&tree, b"key", b"value").unwrap();
        tx.commit().unwrap();
        assert!(tree.contains(b"key").unwrap());
    }
}

#[test]
fn nobody_sees_what_is_not_committed() {
    for db in stores() {
        let tree = db.raw_tree("tree").unwrap();
        tree.put(b"key", b"old").unwrap();
        let (is_over, begun) = (AtomicBool::new(false), Barrier::new(3));
        let tx = db.begin().unwrap();
        tx.put(&tree, b"key", b"new").unwrap();
        let waits = db.stats().lock_waits;
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                begun.wait();
                let seen = tree.get(b"key").unwrap();
                assert!(is_over.load(Ordering::SeqCst), "it had to wait");
                seen
            });
            let writer = scope.spawn(|| {
                begun.wait();
                tree.put(b"key", b"last").unwrap();
                assert!(is_over.load(Ordering::SeqCst), "it had to wait");
            });
            begun.wait();
            // Until both wait, or one that does not is done.
            let is_done = || reader.is_finished() || writer.is_finished();
            while db.stats().lock_waits < waits + 2 && !is_done() {
                std::thread::yield_now();
            }
            is_over.store(true, Ordering::SeqCst);
            tx.abort().unwrap();
            let seen = reader.join().unwrap().unwrap();
            assert!(seen == b"old" || seen == b"last", "{seen:?}");
            writer.join().unwrap();
        });
        assert_eq!(tree.get(b"key").unwrap().as_deref(), Some(&b"last"[..]));
    }
}

/// Two writers, of which each changes keys to an odd value and then commits an even one, or aborts;
/// readers outside transactions.
#[test]
fn reads_beside_writers_see_even_values_only() {
    const KEYS: u64 = 200;
    for db in stores() {
        let tree = db.raw_tree("tree").unwrap();
        for key in 0..KEYS {
            tree.put(&key.to_be_bytes(), &0u64.to_le_bytes()).unwrap();
        }
        let is_over = AtomicBool::new(false);
        let write = |seed| {
            let mut rng = fastrand::Rng::with_seed(seed);
            for _ in 0..400 {
                let tx = db.begin().unwrap();
                // Two writers of two keys each in the order of the keys: no deadlock.
                let key = rng.u64(1..KEYS);
                for key in [key - 1, key] {
                    let key = key.to_be_bytes();
                    tx.put(&tree, &key, &(rng.u64(..) | 1).to_le_bytes()).unwrap();
                    tx.put(&tree, &key, &(rng.u64(..) & !1).to_le_bytes()).unwrap();
                    tx.put(&tree, &key, &(rng.u64(..) | 1).to_le_bytes()).unwrap();
                }
                if rng.bool() {
                    tx.abort().unwrap();
                    continue;
                }
                for key in [key - 1, key] {
                    let value = (rng.u64(..) & !1).to_le_bytes();
                    tx.put(&tree, &key.to_be_bytes(), &value).unwrap();
                }
                tx.commit().unwrap();
            }
        };
        let read = |seed| {
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut reads = 0u64;
            while !is_over.load(Ordering::SeqCst) || reads < 1000 {
                let value = tree.get(&rng.u64(..KEYS).to_be_bytes()).unwrap().unwrap();
                assert_eq!(u64::from_le_bytes(value.try_into().unwrap()) % 2, 0);
                reads += 1;
            }
        };
        std::thread::scope(|scope| {
            let (read, write) = (&read, &write);
            let readers = [1, 2].map(|seed| scope.spawn(move || read(seed)));
            let writers = [3, 4].map(|seed| scope.spawn(move || write(seed)));
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            is_over.store(true, Ordering::SeqCst);
            readers.into_iter().for_each(|reader| reader.join().unwrap());
        });
    }
}

#[test]
fn of_two_that_wait_for_each_other_one_is_told_and_may_try_again() {
    for db in stores() {
        let tree = db.raw_tree("tree").unwrap();
        let (one, two) = (db.begin().unwrap(), db.begin().unwrap());
        one.put(&tree, b"a", b"1").unwrap();
        two.put(&tree, b"b", b"2").unwrap();
        one.leave_thread();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                one.put(&tree, b"b", b"1").unwrap();
                one.commit().unwrap();
            });
            let error = two.put(&tree, b"a", b"2").unwrap_err();
            assert!(error.is_retriable(), "{error}");
            two.abort().unwrap();
            first.join().unwrap();
        });
        assert_eq!(tree.get(b"b").unwrap().as_deref(), Some(&b"1"[..]));
    }
}

#[test]
fn transact_tries_again_until_all_increments_are_made() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 60;
    for db in stores() {
        let counts = db.tree::<u32, u64>("counts").unwrap();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (db, counts) = (&db, &counts);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let keys = [(thread + round) as u32 % 3, round as u32 % 3];
                        db.transact(|tx| {
                            for key in keys {
                                let counts = tx.tree(counts);
                                let count = counts.get(&key)?.unwrap_or(0);
                                counts.put(&key, &(count + 1))?;
                            }
                            Ok::<_, Error>(())
                        })
                        .unwrap();
                    }
                });
            }
        });
        let sum: u64 = counts.iter().map(|row| row.unwrap().1).sum();
        assert_eq!(sum, 2 * THREADS * ROUNDS);
    }
}

#[test]
fn a_range_that_was_read_gets_no_phantoms_unless_reads_are_only_committed() {
    for db in stores() {
        let tree = db.raw_tree("tree").unwrap();
        tree.put(b"b", b"1").unwrap();
        for (isolation, waits) in
            [(Isolation::Serializable, true), (Isolation::ReadCommitted, false)]
        {
            let tx = db.begin_with(TxnOptions::default().isolation(isolation)).unwrap();
            let before = tx.range(&tree, &b"a"[..]..&b"z"[..]).unwrap().len();
            let brief = TxnOptions::default().wait_max(Duration::from_millis(20));
            let other = db.begin_with(brief).unwrap();
            let key = if waits { b"c" } else { b"d" };
            assert_eq!(other.put(&tree, key, b"2").is_err(), waits);
            other.commit().unwrap();
            let after = tx.range(&tree, &b"a"[..]..&b"z"[..]).unwrap().len();
            assert_eq!(before == after, waits);
        }
    }
}

#[test]
fn a_commit_whose_sync_failed_says_what_may_be_lost_and_that_no_try_helps() {
    let log = Arc::new(FaultyDevice::new(Arc::new(MemoryDevice::new()), 1));
    let db = Db::open_on_devices(Arc::new(MemoryDevice::new()), log.clone(), options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let tx = db.begin().unwrap();
    tx.put(&tree, b"heron", b"1").unwrap();
    log.fail_next_sync();
    let error = tx.commit().unwrap_err();
    let text = error.to_string();
    assert!(text.contains("this process also reads commits that may be lost"), "{text}");
    assert!(text.contains("open the store again") && !text.contains("try again"), "{text}");
    assert!(!error.is_retriable(), "{text}");
    assert_eq!(tree.get(b"heron").unwrap().as_deref(), Some(&b"1"[..]), "as the text says");
}
