//! Snapshots among threads that write: the sums that they show are right.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use millpond::{Db, Error, Options, RawTree, Snapshot};
use millpond_device::MemoryDevice;

use crate::byte_calls::{SnapshotCalls, TxnCalls};

const ACCOUNTS: u32 = 60;
const SUM: u64 = ACCOUNTS as u64 * 1000;

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value[..8].try_into().unwrap())
}

/// A value that is large now and then, so that it lies in pages of its own.
fn value(amount: u64) -> Vec<u8> {
    let len = if amount.is_multiple_of(7) { 3000 } else { 8 };
    let mut value = amount.to_le_bytes().to_vec();
    value.resize(len, amount as u8);
    value
}

/// Moves some of what one account has to another, between trees, too. An account without money is
/// removed, one that gets some is made again.
fn transfer(db: &Db, trees: &[RawTree; 2], random: &mut fastrand::Rng) -> Result<(), Error> {
    let mut pick = || (&trees[random.usize(0..2)], random.u32(0..ACCOUNTS).to_be_bytes());
    let ((from, payer), (to, payee)) = (pick(), pick());
    let amount = random.u64(0..1500);
    let give_up = random.u8(0..10) == 0;
    let mut tx = db.begin()?;
    let work = |tx: &mut millpond::Txn| {
        let had = tx.get_for_update(from, &payer)?.map_or(0, |value| number(&value));
        let moved = amount.min(had);
        match had - moved {
            0 => drop(tx.delete(from, &payer)?),
            left => drop(tx.put(from, &payer, &value(left))?),
        }
        let has = tx.get_for_update(to, &payee)?.map_or(0, |value| number(&value));
        if has + moved > 0 {
            tx.put(to, &payee, &value(has + moved))?;
        }
        Ok(())
    };
    match work(&mut tx) {
        Ok(()) if give_up => tx.abort(),
        Ok(()) => tx.commit(),
        Err(error) => tx.abort().and(Err(error)),
    }
}

fn sum(snapshot: &Snapshot, trees: &[RawTree; 2], backwards: bool) -> u64 {
    let mut sum = 0;
    for tree in trees {
        let range = snapshot.iter(tree).unwrap();
        let add = |entry: Result<(Vec<u8>, Vec<u8>), Error>| {
            let (key, value) = entry.unwrap();
            assert!(value[8..].iter().all(|byte| *byte == number(&value) as u8));
            assert_eq!(snapshot.get(tree, &key).unwrap(), Some(value.clone()));
            number(&value)
        };
        sum +=
            if backwards { range.rev().map(add).sum::<u64>() } else { range.map(add).sum::<u64>() };
    }
    sum
}

fn run(db: &Db, rounds: u32) {
    let trees = [db.raw_tree("x").unwrap(), db.raw_tree("y").unwrap()];
    for i in 0..ACCOUNTS {
        trees[i as usize % 2].put(&i.to_be_bytes(), &value(1000)).unwrap();
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (trees, over) = (&trees, &over);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                while !over.load(Ordering::Relaxed) {
                    match transfer(db, trees, &mut random) {
                        Err(error) if !error.is_retriable() => panic!("{error}"),
                        _ => {}
                    }
                }
            });
        }
        let readers: Vec<_> = (0..2)
            .map(|reader| {
                let trees = &trees;
                scope.spawn(move || {
                    for round in 0..rounds {
                        let snapshot = db.snapshot().unwrap();
                        let first = sum(&snapshot, trees, round % 2 == reader);
                        assert_eq!(first, SUM, "round {round}");
                        if round % 5 == 0 {
                            assert_eq!(sum(&snapshot, trees, false), SUM, "once more");
                        }
                    }
                })
            })
            .collect();
        let done: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
        over.store(true, Ordering::Relaxed);
        done.into_iter().for_each(|reader| reader.unwrap());
    });
    assert_eq!(sum(&db.snapshot().unwrap(), &trees, false), SUM);
}

#[test]
fn what_snapshots_show_adds_up_while_others_write() {
    run(&Db::in_memory(Options::new().memory(32 << 20)).unwrap(), 150);
}

#[test]
fn what_snapshots_show_adds_up_with_a_log_and_few_frames() {
    let device = || Arc::new(MemoryDevice::new());
    let options = Options::new().memory(32 << 20).lab(|lab| lab.frames = Some(80));
    run(&Db::open_on_devices(device(), device(), options).unwrap(), 60);
}

/// Calls outside transactions swap two entries' values one after the other, so at each moment at
/// least one is new: a snapshot that sees the second swap sees the first one.
#[test]
fn snapshots_see_calls_in_their_order() {
    let db = Db::in_memory(Options::new().memory(16 << 20)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let key = |i: u32| (i * 1000).to_be_bytes();
    for i in 0..8 {
        tree.put(&key(i), &0u64.to_le_bytes()).unwrap();
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (tree, over, db) = (&tree, &over, &db);
        scope.spawn(move || {
            let mut round = 0u64;
            while !over.load(Ordering::Relaxed) {
                round += 1;
                for i in 0..8 {
                    tree.put(&key(i), &round.to_le_bytes()).unwrap();
                }
            }
        });
        let reader = scope.spawn(move || {
            for _ in 0..400 {
                let snapshot = db.snapshot().unwrap();
                let seen: Vec<u64> =
                    snapshot.iter(tree).unwrap().map(|entry| number(&entry.unwrap().1)).collect();
                assert!(seen.is_sorted_by(|a, b| a >= b), "{seen:?}");
                assert!(seen[0] - seen[7] <= 1, "{seen:?}");
            }
        });
        let done = reader.join();
        over.store(true, Ordering::Relaxed);
        done.unwrap();
    });
}
