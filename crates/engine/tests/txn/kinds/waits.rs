//! Waits between transactions, and the owner of a removed record's id.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use millpond::internals::heap::RecordId;
use millpond::{Db, Durability, Error, Heap, Isolation, Options, TxnOptions};
use millpond_device::{FaultyDevice, MemoryDevice};

use super::scene::*;

/// A crash between a commit and the release of what it removed leaves a reserved place, which is
/// given again.
#[test]
fn the_place_of_a_record_whose_removal_committed_before_a_crash_is_given_again() {
    let device = |bytes| Arc::new(FaultyDevice::with_crashes(bytes, 5));
    let (data, log) = (device(MemoryDevice::new()), device(MemoryDevice::new()));
    let db = Db::open_on_devices(data.clone(), log.clone(), small()).unwrap();
    let heap = db.raw_heap("heap").unwrap();
    // As many as fit on one page.
    let ids: Vec<_> = (0..8u8).map(|n| heap.append(&[n; 40]).unwrap()).collect();
    let before = db.begin().unwrap();
    ids.iter().for_each(|id| assert!(before.heap(&heap).delete(*id).unwrap()));
    // The records are in the log, and that of the commit is the last one.
    before.commit().unwrap();
    let images = (data.crash(9).unwrap(), log.crash(10).unwrap());
    let db = Db::open_on_devices(device(images.0), device(images.1), small()).unwrap();
    let heap = db.raw_heap("heap").unwrap();
    assert!(heap.is_empty().unwrap());
    let again: Vec<_> = (0..8u8).map(|n| heap.append(&[n; 40]).unwrap()).collect();
    assert!(again.iter().any(|id| ids.contains(id)), "{again:?}");
    assert!(db.check().unwrap().is_sound());
}

/// Appends as much as others have room for; returns the ids.
fn fill(heap: &Heap<Vec<u8>>, records: usize) -> Vec<RecordId> {
    (0..records).map(|_| heap.append(&[1; 30]).unwrap()).collect()
}

#[test]
fn the_id_of_a_removed_record_is_nobodys_before_the_commit_and_undo_restores_it() {
    for moves in [false, true] {
        let db = Db::in_memory(small()).unwrap();
        let heap = db.raw_heap("heap").unwrap();
        let ids = fill(&heap, 40);
        if moves {
            // Records that are forwarded to other pages.
            ids.iter().step_by(3).for_each(|id| _ = heap.update(*id, &[2; 200]).unwrap());
        }
        let before: Vec<_> = heap.records().unwrap().map(Result::unwrap).collect();
        let tx = db.begin().unwrap();
        let inside = tx.heap(&heap);
        ids.iter().for_each(|id| assert!(inside.delete(*id).unwrap()));
        ids.iter().for_each(|id| assert!(!inside.contains(*id).unwrap()));
        let own: Vec<_> = (0..20).map(|_| inside.append(&[3; 30]).unwrap()).collect();
        let others = fill(&heap, 200);
        let other = db.begin().unwrap();
        let other_ids: Vec<_> =
            (0..50).map(|_| other.heap(&heap).append(&[4; 30]).unwrap()).collect();
        for id in own.iter().chain(&others).chain(&other_ids) {
            assert!(!ids.contains(id), "{id:?} was given twice");
        }
        tx.abort().unwrap();
        other.abort().unwrap();
        others.iter().for_each(|id| assert!(heap.delete(*id).unwrap()));
        let after: Vec<_> = heap.records().unwrap().map(Result::unwrap).collect();
        assert_eq!(after, before);
        // After a commit they are given again.
        let tx = db.begin().unwrap();
        ids.iter().for_each(|id| assert!(tx.heap(&heap).delete(*id).unwrap()));
        tx.commit().unwrap();
        let again = fill(&heap, 40);
        assert!(again.iter().any(|id| ids.contains(id)));
        assert!(db.check().unwrap().is_sound());
    }
}

/// Does `work` on another thread, and checks that it waits until `release` is called.
fn waits<R: Send>(work: impl FnOnce() -> R + Send, release: impl FnOnce()) -> R {
    std::thread::scope(|scope| {
        let (done, is_done) = mpsc::channel();
        scope.spawn(move || done.send(work()));
        let early = is_done.recv_timeout(Duration::from_millis(40));
        assert!(early.is_err(), "it did not wait");
        release();
        is_done.recv().unwrap()
    })
}

#[test]
fn single_calls_wait_for_transactions_in_hash_indexes_and_heaps() {
    let db = Db::in_memory(small()).unwrap();
    let kinds = Kinds::of(&db);
    let Kinds { index, heap, .. } = &kinds;
    index.put(b"a", b"old").unwrap();
    let id = heap.append(b"old").unwrap();
    let change = || {
        let tx = db.begin().unwrap();
        tx.hash_index(index).put(b"a", b"new").unwrap();
        tx.heap(heap).update(id, b"new, and longer").unwrap();
        tx
    };
    // Reads see what is committed; scans do not even wait.
    let tx = change();
    assert_eq!(index.iter().next().unwrap().unwrap().1, b"old");
    assert_eq!(heap.records().unwrap().next().unwrap().unwrap().1, b"old");
    assert_eq!((index.len().unwrap(), heap.len().unwrap()), (1, 1));
    assert_eq!(waits(|| index.get(b"a").unwrap(), || tx.abort().unwrap()).unwrap(), b"old");
    let tx = change();
    let read = waits(|| heap.get(id).unwrap(), || tx.commit().unwrap());
    assert_eq!(read.unwrap(), b"new, and longer");
    // Writes.
    let tx = change();
    let swap = || index.compare_and_swap(b"a", Some(&b"new"[..]), Some(b"swapped")).unwrap();
    assert!(waits(swap, || tx.commit().unwrap()));
    let tx = change();
    assert!(waits(|| heap.delete(id).unwrap(), || tx.abort().unwrap()));
    assert_eq!(heap.get(id).unwrap(), None);
    // A call of the closure's own thread would wait for itself.
    db.transact(|tx| {
        tx.hash_index(index).put(b"b", b"1")?;
        let error = index.put(b"b", b"2").unwrap_err();
        assert!(error.is_own_transaction(), "{error}");
        Ok::<(), Error>(())
    })
    .unwrap();
}

#[test]
fn what_a_transaction_has_read_does_not_change_and_nothing_comes_between() {
    let db = Db::in_memory(small()).unwrap();
    let kinds = Kinds::of(&db);
    let Kinds { index, heap, .. } = &kinds;
    (0..100u32).for_each(|n| _ = index.put(&n.to_be_bytes(), &[1; 20]).unwrap());
    let ids = fill(heap, 50);
    let tx = db.begin().unwrap();
    assert_eq!(tx.hash_index(index).iter().count(), 100);
    assert!(waits(|| !index.put(b"new", b"1").unwrap(), || tx.abort().unwrap()));
    let tx = db.begin().unwrap();
    assert_eq!(tx.heap(heap).records().unwrap().rev().count(), 50);
    waits(|| heap.append(b"new").unwrap(), || tx.abort().unwrap());
    // An id that was seen to be free stays free.
    let next = heap.append(b"last").unwrap();
    assert!(heap.delete(next).unwrap());
    let tx = db.begin().unwrap();
    assert_eq!(tx.heap(heap).get(next).unwrap(), None);
    let others = fill(heap, 30);
    let other = db.begin().unwrap();
    let theirs: Vec<_> = (0..30).map(|_| other.heap(heap).append(b"x").unwrap()).collect();
    other.commit().unwrap();
    assert!(!others.contains(&next) && !theirs.contains(&next));
    assert_eq!(tx.heap(heap).get(next).unwrap(), None);
    tx.abort().unwrap();
    // With read committed, only what is written stays locked.
    let relaxed = TxnOptions::default().isolation(Isolation::ReadCommitted);
    let tx = db.begin_with(relaxed).unwrap();
    assert_eq!(tx.hash_index(index).iter().count(), 101);
    assert!(tx.heap(heap).contains(ids[0]).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            index.put(b"newer", b"1").unwrap();
            heap.delete(ids[0]).unwrap();
        });
    });
    assert_eq!(tx.hash_index(index).iter().count(), 102);
    tx.commit().unwrap();
}

#[test]
fn emptying_and_dropping_wait_for_transactions() {
    let db = Db::in_memory(small()).unwrap();
    let index = db.raw_hash_index("index").unwrap();
    let heap = db.raw_heap("heap").unwrap();
    index.put(b"a", b"1").unwrap();
    let ids = fill(&heap, 30);
    let begin = || {
        let tx = db.begin().unwrap();
        tx.hash_index(&index).put(b"b", b"2").unwrap();
        tx.heap(&heap).delete(ids[3]).unwrap();
        tx
    };
    let tx = begin();
    assert_eq!(waits(|| index.clear().unwrap(), || tx.abort().unwrap()), 1);
    let snapshot = db.snapshot().unwrap();
    let tx = begin();
    waits(|| heap.clear().unwrap(), || tx.commit().unwrap());
    assert!(heap.is_empty().unwrap());
    let then = snapshot.heap(&heap);
    assert_eq!((then.len().unwrap(), then.records().unwrap().rev().count()), (30, 30));
    assert_eq!(fill(&heap, 1)[0], RecordId(0), "ids begin at 0 again");
    assert_eq!(then.get(RecordId(0)).unwrap(), Some(vec![1; 30]));

    drop(snapshot);
    // Inside a transaction, one by one.
    let tx = db.begin().unwrap();
    tx.heap(&heap).clear().unwrap();
    assert_eq!(tx.hash_index(&index).clear().unwrap(), 1);
    assert!(tx.heap(&heap).is_empty().unwrap());
    tx.abort().unwrap();
    assert_eq!((heap.len().unwrap(), index.len().unwrap()), (1, 1));
    // A transaction that has read it keeps it from being dropped.
    let tx = db.begin().unwrap();
    assert!(tx.hash_index(&index).get(b"b").unwrap().is_some());
    drop(index);
    let kind = millpond::Structure::Hash;
    waits(|| db.drop_structure("index", kind).unwrap(), || tx.commit().unwrap());
    assert!(db.open_hash_index("index").is_err());
}

/// The changes are so many that the locks are exchanged for one on the whole heap. Ids of removed
/// records are still the transaction's.
#[test]
fn thousands_of_changes_in_one_transaction_are_undone() {
    let db = Db::in_memory(Options::new().memory(32 << 20)).unwrap();
    let kinds = Kinds::of(&db);
    let ids = fill(&kinds.heap, 12_000);
    (0..12_000u32).for_each(|n| _ = kinds.index.put(&n.to_be_bytes(), b"old").unwrap());
    let before = outside(&kinds);
    let tx = db.begin().unwrap();
    let (index, heap) = (tx.hash_index(&kinds.index), tx.heap(&kinds.heap));
    for (n, id) in (0..12_000u32).zip(&ids) {
        assert!(heap.delete(*id).unwrap());
        assert!(index.delete(&n.to_be_bytes()).unwrap());
        let new = heap.append(&[5; 20]).unwrap();
        assert!(!ids.contains(&new) || n > 100, "the place of a removed record was given");
    }
    assert_eq!((index.len().unwrap(), heap.len().unwrap()), (0, 12_000));
    tx.abort().unwrap();
    assert!(outside(&kinds) == before, "something is not as it was");
    assert!(db.check().unwrap().is_sound());
}

/// A scan of a transaction shows what the transaction writes meanwhile, and nothing twice.
#[test]
fn a_scan_in_a_transaction_goes_on_after_writes() {
    let db = Db::in_memory(small()).unwrap();
    let kinds = Kinds::of(&db);
    let ids = fill(&kinds.heap, 60);
    (0..200u32).for_each(|n| _ = kinds.index.put(&n.to_be_bytes(), b"old").unwrap());
    let tx = db.begin().unwrap();
    let (index, heap) = (tx.hash_index(&kinds.index), tx.heap(&kinds.heap));
    let mut seen = Vec::new();
    for entry in &index {
        let (key, value) = entry.unwrap();
        assert_eq!(value, b"old");
        assert!(index.delete(&key).unwrap());
        seen.push(key);
    }
    seen.sort();
    assert!((0..200u32).map(|n| n.to_be_bytes().to_vec()).eq(seen));
    let mut records = heap.records().unwrap();
    let (mut front, mut back) = (Vec::new(), Vec::new());
    while let Some(record) = records.next() {
        front.push(record.unwrap().0);
        let Some(record) = records.next_back() else { break };
        back.push(record.unwrap().0);
        heap.update(*front.last().unwrap(), &[2; 100]).unwrap();
    }
    front.extend(back.iter().rev());
    assert_eq!(front, ids);
    drop(records);
    tx.abort().unwrap();
}

/// A transaction of another store, or a snapshot, is refused; errors name the structure.
#[test]
fn structures_of_another_store_are_refused() {
    let (db, other) = (Db::in_memory(small()).unwrap(), Db::in_memory(small()).unwrap());
    let (index, heap) = (other.raw_hash_index("index").unwrap(), other.raw_heap("h").unwrap());
    let (tx, snapshot) = (db.begin().unwrap(), db.snapshot().unwrap());
    let is_other = |error| matches!(error, Error::OtherStore { .. });
    assert!(is_other(tx.hash_index(&index).put(b"a", b"1").unwrap_err()));
    assert!(is_other(tx.heap(&heap).append(b"a").unwrap_err()));
    assert!(is_other(snapshot.hash_index(&index).get(b"a").unwrap_err()));
    assert!(is_other(snapshot.heap(&heap).len().unwrap_err()));
    let long = vec![0; index.limits().entry_max + 1];
    let index = db.raw_hash_index("index").unwrap();
    let error = tx.hash_index(&index).put(b"", &long).unwrap_err();
    assert!(matches!(error, Error::HashWrite(_)), "{error}");
    // The lock's error names it.
    let waiting = TxnOptions::default().wait_max(Duration::from_millis(5));
    tx.hash_index(&index).put(b"a", b"1").unwrap();
    std::thread::scope(|scope| {
        let late = scope.spawn(|| {
            let tx = db.begin_with(waiting.durability(Durability::Async)).unwrap();
            let error = tx.hash_index(&index).put(b"a", b"2").unwrap_err();
            tx.abort().unwrap();
            error
        });
        let error = late.join().unwrap();
        assert!(error.is_timeout() && error.to_string().contains("'index'"), "{error}");
    });
    tx.abort().unwrap();
}

/// Checks run while transactions write to all kinds.
#[test]
fn a_check_waits_for_nobody_for_long_and_finds_nothing() {
    let db = Db::in_memory(small()).unwrap();
    let kinds = Kinds::of(&db);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = fastrand::Rng::with_seed(3);
            let mut model = Model::default();
            while !is_over.load(Ordering::Relaxed) {
                let (tx, mut now) = (db.begin().unwrap(), model.clone());
                (0..10).for_each(|_| change(&tx, &kinds, &mut now, &mut random));
                if random.bool() {
                    tx.commit().unwrap();
                    model = now;
                }
            }
        });
        for _ in 0..20 {
            let report = db.check_with(&mut |_| ControlFlow::Continue(())).unwrap();
            assert!(report.is_sound(), "{report:?}");
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
