//! Transactions and snapshots over a tree, a hash index and a heap together.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use millpond::internals::heap::RecordId;
use millpond::internals::io::{FaultyDevice, MemoryDevice};
use millpond::{
    Db, Durability, Error, Isolation, Options, RawHashIndex, RawHeap, RawTree, Snapshot, Txn,
    TxnOptions,
};

/// Few and small pages, so that everything splits, moves and is evicted all the time.
fn small() -> Options {
    Options::new().page_size(512).lab(|lab| {
        lab.tiny_pages = true;
        lab.frames = Some(150);
        lab.batch = Some(2);
    })
}

struct Kinds {
    tree: RawTree,
    index: RawHashIndex,
    heap: RawHeap,
}

impl Kinds {
    fn of(db: &Db) -> Kinds {
        Kinds {
            tree: db.raw_tree("tree").unwrap(),
            index: db.raw_hash_index("index").unwrap(),
            heap: db.raw_heap("heap").unwrap(),
        }
    }
}

type Bytes = Vec<u8>;

/// What the three hold.
#[derive(Clone, Default, PartialEq, Debug)]
struct Model {
    tree: BTreeMap<Bytes, Bytes>,
    index: BTreeMap<Bytes, Bytes>,
    heap: BTreeMap<u64, Bytes>,
}

fn outside(kinds: &Kinds) -> Model {
    Model {
        tree: kinds.tree.iter().map(Result::unwrap).collect(),
        index: kinds.index.iter().map(Result::unwrap).collect(),
        heap: kinds.heap.records().unwrap().map(Result::unwrap).map(|(id, r)| (id.0, r)).collect(),
    }
}

fn inside(tx: &Txn, kinds: &Kinds) -> Model {
    let records = tx.raw_heap(&kinds.heap);
    Model {
        tree: tx.raw_tree(&kinds.tree).iter().map(Result::unwrap).collect(),
        index: tx.raw_hash_index(&kinds.index).iter().map(Result::unwrap).collect(),
        heap: records.records().unwrap().map(Result::unwrap).map(|(id, r)| (id.0, r)).collect(),
    }
}

fn shown(snapshot: &Snapshot, kinds: &Kinds, backwards: bool) -> Model {
    let (index, heap) = (snapshot.raw_hash_index(&kinds.index), snapshot.raw_heap(&kinds.heap));
    let records = heap.records().unwrap();
    let records: Vec<_> = if backwards { records.rev().collect() } else { records.collect() };
    Model {
        tree: snapshot.raw_tree(&kinds.tree).iter().map(Result::unwrap).collect(),
        index: index.iter().map(Result::unwrap).collect(),
        heap: records.into_iter().map(Result::unwrap).map(|(id, r)| (id.0, r)).collect(),
    }
}

fn some_id(random: &mut fastrand::Rng, model: &Model) -> RecordId {
    let ids: Vec<u64> = model.heap.keys().copied().collect();
    RecordId(random.choice(ids).unwrap_or(random.u64(..1 << 20)))
}

fn some_value(random: &mut fastrand::Rng) -> Bytes {
    vec![random.u8(..); random.usize(..90)]
}

/// One change in a transaction, checked against the model.
fn change(tx: &Txn, kinds: &Kinds, model: &mut Model, random: &mut fastrand::Rng) {
    let (key, value) = (random.u16(..600).to_be_bytes().to_vec(), some_value(random));
    let (tree, index) = (tx.raw_tree(&kinds.tree), tx.raw_hash_index(&kinds.index));
    let (heap, id) = (tx.raw_heap(&kinds.heap), some_id(random, model));
    match random.u8(..14) {
        0 | 1 => {
            assert_eq!(tree.insert(&key, &value).unwrap(), model.tree.insert(key, value));
        }
        2 => assert_eq!(tree.remove(&key).unwrap(), model.tree.remove(&key)),
        3 | 4 => {
            assert_eq!(index.insert(&key, &value).unwrap(), model.index.insert(key, value));
        }
        5 => {
            let was = model.index.insert(key.clone(), value.clone()).is_some();
            assert_eq!(index.put(&key, &value).unwrap(), was);
        }
        6 => assert_eq!(index.remove(&key).unwrap(), model.index.remove(&key)),
        7 => {
            let is_new = !model.index.contains_key(&key);
            assert_eq!(index.insert_if_absent(&key, &value).unwrap(), is_new);
            model.index.entry(key).or_insert(value);
        }
        8 => {
            index.update_in_place(&key, |value| value.fill(7)).unwrap();
            model.index.entry(key).and_modify(|value| value.fill(7));
        }
        9 | 10 => {
            let id = heap.append(&value).unwrap();
            assert_eq!(model.heap.insert(id.0, value), None, "{id:?} is used");
        }
        11 => assert_eq!(heap.remove(id).unwrap(), model.heap.remove(&id.0)),
        12 => {
            let is_there = model.heap.contains_key(&id.0);
            assert_eq!(heap.update(id, &value).unwrap(), is_there);
            model.heap.entry(id.0).and_modify(|record| record.clone_from(&value));
        }
        _ => {
            heap.update_in_place(id, |record| record.fill(9)).unwrap();
            model.heap.entry(id.0).and_modify(|record| record.fill(9));
        }
    }
}

/// Point reads of a transaction or a snapshot agree with the model, also of what is not there.
fn points_agree(model: &Model, random: &mut fastrand::Rng, look: impl Fn(&[u8], RecordId) -> Seen) {
    for _ in 0..20 {
        let (key, id) = (random.u16(..600).to_be_bytes(), some_id(random, model));
        let expect = [
            model.tree.get(&key[..]).cloned(),
            model.index.get(&key[..]).cloned(),
            model.heap.get(&id.0).cloned(),
        ];
        assert_eq!(look(&key, id), expect, "{key:?} {id:?}");
    }
}

type Seen = [Option<Bytes>; 3];

#[test]
fn transactions_savepoints_and_snapshots_agree_with_a_model_in_all_kinds() {
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let db = Db::in_memory(small()).unwrap();
        let kinds = Kinds::of(&db);
        let mut model = Model::default();
        let mut snapshots: Vec<(Snapshot, Model)> = Vec::new();
        for round in 0..120 {
            let (mut tx, mut now) = (db.begin().unwrap(), model.clone());
            let mut points = Vec::new();
            for _ in 0..random.usize(1..30) {
                match random.u8(..12) {
                    0 => points.push((tx.savepoint(), now.clone())),
                    1 if !points.is_empty() => {
                        let at = random.usize(..points.len());
                        points.truncate(at + 1);
                        let (point, then) = &points[at];
                        tx.rollback_to(point).unwrap();
                        now = then.clone();
                    }
                    2 if random.u8(..4) == 0 && snapshots.len() < 4 => {
                        // Also of what this transaction has changed already.
                        snapshots.push((db.snapshot().unwrap(), model.clone()));
                    }
                    _ => change(&tx, &kinds, &mut now, &mut random),
                }
            }
            points_agree(&now, &mut random, |key, id| {
                [
                    tx.raw_tree(&kinds.tree).get(key).unwrap(),
                    tx.raw_hash_index(&kinds.index).get(key).unwrap(),
                    tx.raw_heap(&kinds.heap).get(id).unwrap(),
                ]
            });
            if round % 8 == 0 {
                assert_eq!(inside(&tx, &kinds), now, "seed {seed}, round {round}, inside");
                // Nobody else sees it yet.
                assert_eq!(outside(&kinds), model, "seed {seed}, round {round}, outside");
            }
            if random.u8(..3) == 0 {
                tx.abort().unwrap();
            } else {
                tx.commit().unwrap();
                model = now;
            }
            assert_eq!(outside(&kinds), model, "seed {seed}, round {round}");
            for (snapshot, then) in &snapshots {
                points_agree(then, &mut random, |key, id| {
                    [
                        snapshot.raw_tree(&kinds.tree).get(key).unwrap(),
                        snapshot.raw_hash_index(&kinds.index).get(key).unwrap(),
                        snapshot.raw_heap(&kinds.heap).get(id).unwrap(),
                    ]
                });
                let backwards = random.bool();
                assert_eq!(&shown(snapshot, &kinds, backwards), then, "seed {seed}, {round}");
            }
            if random.u8(..6) == 0 && !snapshots.is_empty() {
                snapshots.swap_remove(random.usize(..snapshots.len()));
            }
        }
        drop(snapshots);
        let report = db.check().unwrap();
        assert!(report.is_sound(), "{report:?}");
        assert_eq!(kinds.heap.len().unwrap(), model.heap.len() as u64);
    }
}

const ACCOUNTS: u32 = 24;
const SUM: u64 = 3 * ACCOUNTS as u64 * 1000;

fn amount(value: &[u8]) -> u64 {
    u64::from_le_bytes(value[..8].try_into().unwrap())
}

/// An amount, in a value whose length changes with it.
fn account(amount: u64) -> Bytes {
    let mut value = amount.to_le_bytes().to_vec();
    value.resize(8 + (amount % 61) as usize, amount as u8);
    value
}

/// A transfer between two accounts of any kinds. An account of the heap that is empty is removed
/// and, in the same transaction, a new one with nothing appended: ids are given and freed.
fn transfer(
    tx: &Txn,
    kinds: &Kinds,
    ids: &RawTree,
    random: &mut fastrand::Rng,
) -> Result<(), Error> {
    let (tree, index) = (tx.raw_tree(&kinds.tree), tx.raw_hash_index(&kinds.index));
    let (heap, ids) = (tx.raw_heap(&kinds.heap), tx.raw_tree(ids));
    let mut pick = || (random.u8(..3), random.u32(..ACCOUNTS).to_be_bytes());
    let (payer, payee) = (pick(), pick());
    let id = |key: &[u8; 4]| -> Result<RecordId, Error> {
        let id = ids.get_for_update(key)?.unwrap();
        Ok(RecordId(u64::from_le_bytes(id.try_into().unwrap())))
    };
    let get = |(kind, key): &(u8, [u8; 4])| -> Result<u64, Error> {
        let value = match kind {
            0 => tree.get_for_update(key)?,
            1 => index.get_for_update(key)?,
            _ => heap.get_for_update(id(key)?)?,
        };
        Ok(amount(&value.unwrap()))
    };
    let mut new_record = random.u8(..3) == 0;
    let mut set = |(kind, key): &(u8, [u8; 4]), now: u64| -> Result<(), Error> {
        match kind {
            0 => tree.put(key, &account(now)).map(drop),
            1 => index.put(key, &account(now)).map(drop),
            _ if std::mem::take(&mut new_record) => {
                assert!(heap.delete(id(key)?)?);
                let id = heap.append(&account(now))?;
                ids.put(key, &id.0.to_le_bytes()).map(drop)
            }
            _ => {
                assert!(heap.update(id(key)?, &account(now))?);
                Ok(())
            }
        }
    };
    let has = get(&payer)?;
    let moved = has.min(7 + u64::from(payer.1[3]) * 13);
    set(&payer, has - moved)?;
    let has = get(&payee)?;
    set(&payee, has + moved)
}

fn sum_of(model: &Model) -> u64 {
    let of_keys = model.tree.values().chain(model.index.values()).chain(model.heap.values());
    of_keys.map(|value| amount(value)).sum()
}

/// What a transaction, a snapshot and plain scans show adds up, while others move amounts between
/// all kinds, abort, and lose deadlocks.
#[test]
fn sums_over_all_kinds_are_conserved_among_threads() {
    let db = Db::in_memory(small()).unwrap();
    let (kinds, ids) = (Kinds::of(&db), db.raw_tree("ids").unwrap());
    for account_number in 0..ACCOUNTS {
        let key = account_number.to_be_bytes();
        kinds.tree.put(&key, &account(1000)).unwrap();
        kinds.index.put(&key, &account(1000)).unwrap();
        let id = kinds.heap.append(&account(1000)).unwrap();
        ids.put(&key, &id.0.to_le_bytes()).unwrap();
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (db, kinds, ids, is_over) = (&db, &kinds, &ids, &is_over);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                while !is_over.load(Ordering::Relaxed) {
                    let gives_up = random.u8(..5) == 0;
                    let done: Result<(), Option<Error>> = db
                        .transact(|tx| {
                            transfer(tx, kinds, ids, &mut random)?;
                            if gives_up { Err(GiveUp(None)) } else { Ok(()) }
                        })
                        .map_err(|GiveUp(error)| error);
                    assert!(matches!(done, Ok(()) | Err(None)), "{done:?}");
                }
            });
        }
        for round in 0..60 {
            let snapshot = db.snapshot().unwrap();
            let first = shown(&snapshot, &kinds, round % 2 == 0);
            assert_eq!(sum_of(&first), SUM, "round {round}");
            assert_eq!(first.heap.len(), ACCOUNTS as usize);
            assert_eq!(shown(&snapshot, &kinds, round % 2 == 1), first, "round {round}");
            drop(snapshot);
            // A plain scan shows what is there all the time, once.
            assert_eq!(kinds.index.iter().count(), ACCOUNTS as usize);
            if round % 20 == 0 {
                let seen = db.transact(|tx| sum_in(tx, &kinds));
                if let Ok(seen) = seen {
                    assert_eq!(seen, SUM, "round {round}, in a transaction");
                }
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(sum_of(&outside(&kinds)), SUM);
    assert!(db.check().unwrap().is_sound());
}

struct GiveUp(Option<Error>);

impl From<Error> for GiveUp {
    fn from(error: Error) -> GiveUp {
        GiveUp(Some(error))
    }
}

fn sum_in(tx: &Txn, kinds: &Kinds) -> Result<u64, Error> {
    let mut sum = 0;
    for entry in tx.raw_tree(&kinds.tree).iter() {
        sum += amount(&entry?.1);
    }
    for entry in tx.raw_hash_index(&kinds.index).iter() {
        sum += amount(&entry?.1);
    }
    for record in tx.raw_heap(&kinds.heap).records()? {
        sum += amount(&record?.1);
    }
    Ok(sum)
}

/// The losers of a crash are undone in all kinds, and what was committed stays: recovery finds the
/// structures by their owner ids.
#[test]
fn recovery_undoes_losers_in_all_kinds() {
    for seed in 0..12 {
        let mut random = fastrand::Rng::with_seed(seed);
        let device = |bytes| Arc::new(FaultyDevice::with_crashes(bytes, seed));
        let (data, log) = (device(MemoryDevice::new()), device(MemoryDevice::new()));
        let db = Db::open_on_devices(data.clone(), log.clone(), small()).unwrap();
        let kinds = Kinds::of(&db);
        let mut model = Model::default();
        for _ in 0..15 {
            let tx = db.begin().unwrap();
            (0..20).for_each(|_| change(&tx, &kinds, &mut model, &mut random));
            tx.commit().unwrap();
        }
        if seed % 2 == 0 {
            db.checkpoint().unwrap();
        }
        // A loser that was rolled back in part, so that there are CLRs.
        let mut loser = db.begin().unwrap();
        let mut lost = model.clone();
        (0..40).for_each(|_| change(&loser, &kinds, &mut lost, &mut random));
        let (point, then) = (loser.savepoint(), lost.clone());
        (0..40).for_each(|_| change(&loser, &kinds, &mut lost, &mut random));
        loser.rollback_to(&point).unwrap();
        lost = then;
        (0..10).for_each(|_| change(&loser, &kinds, &mut lost, &mut random));
        // Others use the room that the loser has freed, as far as they get it.
        let filled: Vec<_> = (0..60).map(|_| kinds.heap.append(&some_value(&mut random))).collect();
        for id in filled {
            assert!(kinds.heap.delete(id.unwrap()).unwrap());
        }
        db.flush().unwrap();
        for crash in 0..3 {
            let at = seed * 100 + crash;
            let (data, log) = (data.crash(at).unwrap(), log.crash(at + 1).unwrap());
            let db = Db::open_on_devices(device(data), device(log), small()).unwrap();
            let kinds = Kinds::of(&db);
            assert_eq!(outside(&kinds), model, "seed {seed}, crash {crash}");
            let report = db.check().unwrap();
            assert!(report.is_sound(), "seed {seed}, crash {crash}: {report:?}");
            // It goes on as if nothing had happened.
            let (tx, mut now) = (db.begin().unwrap(), model.clone());
            (0..100).for_each(|_| change(&tx, &kinds, &mut now, &mut random));
            tx.commit().unwrap();
            assert_eq!(outside(&kinds), now);
        }
        std::mem::forget(loser);
    }
}

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
    ids.iter().for_each(|id| assert!(before.raw_heap(&heap).delete(*id).unwrap()));
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
fn fill(heap: &RawHeap, records: usize) -> Vec<RecordId> {
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
        let inside = tx.raw_heap(&heap);
        ids.iter().for_each(|id| assert!(inside.delete(*id).unwrap()));
        ids.iter().for_each(|id| assert!(!inside.contains(*id).unwrap()));
        let own: Vec<_> = (0..20).map(|_| inside.append(&[3; 30]).unwrap()).collect();
        let others = fill(&heap, 200);
        let other = db.begin().unwrap();
        let other_ids: Vec<_> =
            (0..50).map(|_| other.raw_heap(&heap).append(&[4; 30]).unwrap()).collect();
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
        ids.iter().for_each(|id| assert!(tx.raw_heap(&heap).delete(*id).unwrap()));
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
        tx.raw_hash_index(index).put(b"a", b"new").unwrap();
        tx.raw_heap(heap).update(id, b"new, and longer").unwrap();
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
    let swap = || index.compare_and_swap(b"a", Some(b"new"), Some(b"swapped")).unwrap();
    assert!(waits(swap, || tx.commit().unwrap()));
    let tx = change();
    assert!(waits(|| heap.delete(id).unwrap(), || tx.abort().unwrap()));
    assert_eq!(heap.get(id).unwrap(), None);
    // A call of the transaction's own thread would wait for itself.
    let tx = db.begin().unwrap();
    tx.raw_hash_index(index).put(b"b", b"1").unwrap();
    let error = index.put(b"b", b"2").unwrap_err();
    assert!(error.is_own_transaction(), "{error}");
    tx.abort().unwrap();
}

#[test]
fn what_a_transaction_has_read_does_not_change_and_nothing_comes_between() {
    let db = Db::in_memory(small()).unwrap();
    let kinds = Kinds::of(&db);
    let Kinds { index, heap, .. } = &kinds;
    (0..100u32).for_each(|n| _ = index.put(&n.to_be_bytes(), &[1; 20]).unwrap());
    let ids = fill(heap, 50);
    let tx = db.begin().unwrap();
    assert_eq!(tx.raw_hash_index(index).iter().count(), 100);
    assert!(waits(|| !index.put(b"new", b"1").unwrap(), || tx.abort().unwrap()));
    let tx = db.begin().unwrap();
    assert_eq!(tx.raw_heap(heap).records().unwrap().rev().count(), 50);
    waits(|| heap.append(b"new").unwrap(), || tx.abort().unwrap());
    // An id that was seen to be free stays free.
    let next = heap.append(b"last").unwrap();
    assert!(heap.delete(next).unwrap());
    let tx = db.begin().unwrap();
    assert_eq!(tx.raw_heap(heap).get(next).unwrap(), None);
    let others = fill(heap, 30);
    let other = db.begin().unwrap();
    let theirs: Vec<_> = (0..30).map(|_| other.raw_heap(heap).append(b"x").unwrap()).collect();
    other.commit().unwrap();
    assert!(!others.contains(&next) && !theirs.contains(&next));
    assert_eq!(tx.raw_heap(heap).get(next).unwrap(), None);
    tx.abort().unwrap();
    // With read committed, only what is written stays locked.
    let relaxed = TxnOptions::default().isolation(Isolation::ReadCommitted);
    let tx = db.begin_with(relaxed).unwrap();
    assert_eq!(tx.raw_hash_index(index).iter().count(), 101);
    assert!(tx.raw_heap(heap).contains(ids[0]).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            index.put(b"newer", b"1").unwrap();
            heap.delete(ids[0]).unwrap();
        });
    });
    assert_eq!(tx.raw_hash_index(index).iter().count(), 102);
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
        tx.raw_hash_index(&index).put(b"b", b"2").unwrap();
        tx.raw_heap(&heap).delete(ids[3]).unwrap();
        tx
    };
    let tx = begin();
    assert_eq!(waits(|| index.clear().unwrap(), || tx.abort().unwrap()), 1);
    let snapshot = db.snapshot().unwrap();
    let tx = begin();
    waits(|| heap.clear().unwrap(), || tx.commit().unwrap());
    assert!(heap.is_empty().unwrap());
    let then = snapshot.raw_heap(&heap);
    assert_eq!((then.len().unwrap(), then.records().unwrap().rev().count()), (30, 30));
    assert_eq!(fill(&heap, 1)[0], RecordId(0), "ids begin at 0 again");
    assert_eq!(then.get(RecordId(0)).unwrap(), Some(vec![1; 30]));
    drop(then);
    drop(snapshot);
    // Inside a transaction, one by one.
    let tx = db.begin().unwrap();
    tx.raw_heap(&heap).clear().unwrap();
    assert_eq!(tx.raw_hash_index(&index).clear().unwrap(), 1);
    assert!(tx.raw_heap(&heap).is_empty().unwrap());
    tx.abort().unwrap();
    assert_eq!((heap.len().unwrap(), index.len().unwrap()), (1, 1));
    // A transaction that has read it keeps it from being dropped.
    let tx = db.begin().unwrap();
    assert!(tx.raw_hash_index(&index).get(b"b").unwrap().is_some());
    drop(index);
    let kind = millpond::Structure::Hash;
    waits(|| db.drop_structure("index", kind).unwrap(), || tx.commit().unwrap());
    assert!(db.open_hash_index("index").is_err());
}

/// So many that the locks are exchanged for one on the whole heap: ids of removed records are still
/// the transaction's.
#[test]
fn thousands_of_changes_in_one_transaction_are_undone() {
    let db = Db::in_memory(Options::new().memory(32 << 20)).unwrap();
    let kinds = Kinds::of(&db);
    let ids = fill(&kinds.heap, 12_000);
    (0..12_000u32).for_each(|n| _ = kinds.index.put(&n.to_be_bytes(), b"old").unwrap());
    let before = outside(&kinds);
    let tx = db.begin().unwrap();
    let (index, heap) = (tx.raw_hash_index(&kinds.index), tx.raw_heap(&kinds.heap));
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
    let (index, heap) = (tx.raw_hash_index(&kinds.index), tx.raw_heap(&kinds.heap));
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
    assert!(is_other(tx.raw_hash_index(&index).put(b"a", b"1").unwrap_err()));
    assert!(is_other(tx.raw_heap(&heap).append(b"a").unwrap_err()));
    assert!(is_other(snapshot.raw_hash_index(&index).get(b"a").unwrap_err()));
    assert!(is_other(snapshot.raw_heap(&heap).len().unwrap_err()));
    let long = vec![0; index.limits().entry_max + 1];
    let index = db.raw_hash_index("index").unwrap();
    let error = tx.raw_hash_index(&index).put(b"", &long).unwrap_err();
    assert!(matches!(error, Error::HashWrite(_)), "{error}");
    // The lock's error names it.
    let waiting = TxnOptions::default().wait_max(Duration::from_millis(5));
    tx.raw_hash_index(&index).put(b"a", b"1").unwrap();
    std::thread::scope(|scope| {
        let late = scope.spawn(|| {
            let tx = db.begin_with(waiting.durability(Durability::Async)).unwrap();
            let error = tx.raw_hash_index(&index).put(b"a", b"2").unwrap_err();
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
