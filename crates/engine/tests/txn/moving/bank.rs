//! Shrinking beside writers, readers, snapshots and backups.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use millpond::{Db, Error, RawTree, error::BackupError};
use millpond_device::{Device, MemoryDevice};

use super::scene::{Rows, all_of, build, fill, is_built, is_tight, options, sound};
use crate::byte_calls::{SnapshotCalls, TxnCalls};

const ACCOUNTS: u32 = 300;

/// Moves money between accounts, whose rows are large now and then, and tears holes into the file.
fn work(db: &Db, seed: u64, rounds: u32) {
    let mut random = fastrand::Rng::with_seed(seed);
    let accounts = db.open_tree("accounts").unwrap();
    let junk = format!("junk {seed}");
    for round in 0..rounds {
        let heap = db.raw_heap("heap").unwrap();
        let index = db.raw_hash_index("index").unwrap();
        let tree = db.raw_tree(&junk).unwrap();
        let mut ids = Vec::new();
        for i in 0..300u32 {
            tree.put(&i.to_be_bytes(), &[1; 700]).unwrap();
            let key = (seed as u32 * 1000 + i).to_be_bytes();
            index.put(&key, &[round as u8; 60]).unwrap();
            ids.push(heap.append(&[seed as u8; 80]).unwrap());
            if i % 3 == 0 {
                transfer(db, &accounts, &mut random);
            }
        }
        drop(tree);
        db.drop_tree(&junk).unwrap();
        for (i, id) in (0..300u32).zip(ids) {
            let key = (seed as u32 * 1000 + i).to_be_bytes();
            assert_eq!(index.get(&key).unwrap(), Some(vec![round as u8; 60]));
            assert_eq!(heap.get(id).unwrap(), Some(vec![seed as u8; 80]));
            if i % 10 != 0 {
                assert!(index.delete(&key).unwrap() && heap.delete(id).unwrap());
            }
        }
    }
}

fn money(row: &[u8]) -> u64 {
    u64::from_le_bytes(row[..8].try_into().unwrap())
}

fn row(money: u64, random: &mut fastrand::Rng) -> Vec<u8> {
    let len = if random.u8(0..10) == 0 { random.usize(2000..9000) } else { 200 };
    let mut row = vec![money as u8; len];
    row[..8].copy_from_slice(&money.to_le_bytes());
    row
}

fn transfer(db: &Db, accounts: &RawTree, random: &mut fastrand::Rng) {
    let (from, to) = (random.u32(0..ACCOUNTS), random.u32(0..ACCOUNTS));
    if from == to {
        return;
    }
    let (old, new) = (from.to_be_bytes(), to.to_be_bytes());
    db.transact(|tx| {
        let a = money(&tx.get_for_update(accounts, &old)?.unwrap());
        let b = money(&tx.get_for_update(accounts, &new)?.unwrap());
        let amount = random.u64(0..=a);
        tx.put(accounts, &old, &row(a - amount, random))?;
        tx.put(accounts, &new, &row(b + amount, random))?;
        Ok::<_, millpond::Error>(())
    })
    .unwrap();
}

fn open_bank(data: Arc<dyn Device>, log: Arc<dyn Device>) -> Db {
    let db = Db::open_on_devices(data, log, options(90)).unwrap();
    fill(&db, "gone", 4000);
    let accounts = db.raw_tree("accounts").unwrap();
    for account in 0..ACCOUNTS {
        accounts.put(&account.to_be_bytes(), &row(100, &mut fastrand::Rng::with_seed(1))).unwrap();
    }
    drop(accounts);
    db.drop_tree("gone").unwrap();
    db
}

fn total(rows: &Rows) -> u64 {
    assert_eq!(rows.len() as u32, ACCOUNTS);
    rows.values().map(|row| money(row)).sum()
}

#[test]
fn pages_move_beside_readers_writers_and_snapshots() {
    let (data, log) = (Arc::new(MemoryDevice::new()), Arc::new(MemoryDevice::new()));
    let db = open_bank(data.clone(), log);
    let over = AtomicBool::new(false);
    let mut moved = 0;
    std::thread::scope(|scope| {
        let writers = [1, 2].map(|seed| {
            scope.spawn({
                let db = &db;
                move || work(db, seed, 8)
            })
        });
        let readers = [
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let snapshot = db.snapshot().unwrap();
                    let accounts = db.open_tree("accounts").unwrap();
                    let (mut rows, mut range) = (Rows::new(), snapshot.iter(&accounts).unwrap());
                    while let Some((key, value)) = range.next_entry().unwrap() {
                        rows.insert(key.to_vec(), value.to_vec());
                    }
                    assert_eq!(total(&rows), 100 * u64::from(ACCOUNTS));
                }
            }),
            scope.spawn(|| {
                let mut random = fastrand::Rng::with_seed(9);
                let accounts = db.open_tree("accounts").unwrap();
                while !over.load(Ordering::Relaxed) {
                    let key = random.u32(0..ACCOUNTS).to_be_bytes();
                    let row = accounts.get(&key).unwrap().unwrap();
                    assert!(row[8..].iter().all(|byte| *byte == money(&row) as u8));
                }
            }),
        ];
        while !writers.iter().all(|writer| writer.is_finished()) {
            moved += db.shrink().unwrap().pages_moved;
        }
        over.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
    let shrunk = db.shrink().unwrap();
    moved += shrunk.pages_moved;
    is_tight(&*data, &db, &shrunk);
    assert!(moved > 10, "{moved}");
    assert_eq!(total(&all_of(&db.open_tree("accounts").unwrap())), 100 * u64::from(ACCOUNTS));
    db.close().unwrap();
    sound(data, "closed");
}

/// Opens a backup and looks whether the money is all there.
fn is_backup(data: Arc<dyn Device>, log: Arc<dyn Device>) {
    let db = Db::open_on_devices(data.clone(), log, options(80)).unwrap();
    assert_eq!(total(&all_of(&db.open_tree("accounts").unwrap())), 100 * u64::from(ACCOUNTS));
    db.shrink().unwrap();
    db.close().unwrap();
    sound(data, "a backup");
}

#[test]
fn backups_are_whole_that_are_taken_while_pages_move() {
    let device = || -> Arc<dyn Device> { Arc::new(MemoryDevice::new()) };
    let data = device();
    let db = open_bank(data.clone(), device());
    let (mut backups, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| work(&db, 1, 10));
        let copier = scope.spawn({
            let (db, device) = (&db, &device);
            move || {
                let mut made = 0;
                loop {
                    let (data, log) = (device(), device());
                    db.backup_to_devices(&data, &log, &mut |_| ControlFlow::Continue(())).unwrap();
                    is_backup(data, log);
                    made += 1;
                    if writer.is_finished() {
                        return made;
                    }
                }
            }
        });
        while !copier.is_finished() {
            match db.shrink() {
                Ok(_) => {}
                Err(Error::Backup(BackupError::UnderWay)) => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
        backups += copier.join().unwrap();
    });
    println!("{backups} backups, {refused} times refused");
    assert!(backups > 0);
    assert_eq!(db.shrink().unwrap().pages_left, 0);
    db.close().unwrap();
    sound(data, "closed");
}

#[test]
fn a_backup_that_begins_amid_shrinking_has_what_moves_from_then_on() {
    let device = || -> Arc<dyn Device> { Arc::new(MemoryDevice::new()) };
    let (data, copy, copy_log) = (device(), device(), device());
    let db = Db::open_on_devices(data.clone(), device(), options(80)).unwrap();
    let records = build(&db, 4000, 1200);
    let (begun, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let mut copier = None;
        let mut may_go_on = Some(may_go_on);
        let result = db.shrink_with(&mut |_| {
            if let Some(may_go_on) = may_go_on.take() {
                // Between its checkpoint and its first page, pages move.
                let (db, begun, copy, copy_log) = (&db, begun.clone(), &copy, &copy_log);
                copier = Some(scope.spawn(move || {
                    db.backup_to_devices(copy, copy_log, &mut |progress| {
                        if progress.done == 0 {
                            let _ = begun.send(());
                            let _ = may_go_on.recv();
                        }
                        ControlFlow::Continue(())
                    })
                }));
                has_begun.recv().unwrap();
            }
            ControlFlow::Continue(())
        });
        assert!(matches!(result, Err(Error::Backup(BackupError::UnderWay))), "{result:?}");
        drop(go_on);
        copier.unwrap().join().unwrap().unwrap();
    });
    for (data, log) in [(copy, Some(copy_log)), (data, None)] {
        let db = match log {
            Some(log) => &Db::open_on_devices(data.clone(), log, options(80)).unwrap(),
            None => &db,
        };
        is_built(db, 1200, &records, "copied");
        let shrunk = db.shrink().unwrap();
        is_tight(&*data, db, &shrunk);
        is_built(db, 1200, &records, "shrunk");
    }
}
