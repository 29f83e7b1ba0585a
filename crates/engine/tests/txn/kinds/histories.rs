//! Random transactions, alone, among threads and before a crash, beside a model.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use millpond::internals::heap::RecordId;
use millpond::{Db, Error, RawTree, Snapshot, Txn};
use millpond_device::{FaultyDevice, MemoryDevice};

use super::scene::*;

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
                    0 => points.push((tx.savepoint().unwrap(), now.clone())),
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
                    tx.tree(&kinds.tree).get(key).unwrap(),
                    tx.hash_index(&kinds.index).get(key).unwrap(),
                    tx.heap(&kinds.heap).get(id).unwrap(),
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
                        snapshot.tree(&kinds.tree).get(key).unwrap(),
                        snapshot.hash_index(&kinds.index).get(key).unwrap(),
                        snapshot.heap(&kinds.heap).get(id).unwrap(),
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
    let (tree, index) = (tx.tree(&kinds.tree), tx.hash_index(&kinds.index));
    let (heap, ids) = (tx.heap(&kinds.heap), tx.tree(ids));
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

/// Sums seen by a transaction, a snapshot and plain scans stay the same, while others move amounts
/// between all kinds, abort, and lose deadlocks.
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
    for entry in tx.tree(&kinds.tree).iter() {
        sum += amount(&entry?.1);
    }
    for entry in tx.hash_index(&kinds.index).iter() {
        sum += amount(&entry?.1);
    }
    for record in tx.heap(&kinds.heap).records()? {
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
        let (point, then) = (loser.savepoint().unwrap(), lost.clone());
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
