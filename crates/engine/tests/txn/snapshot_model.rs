//! Random transactions, calls and snapshots against plain maps: at every moment a snapshot is what
//! the map of committed entries was when it began.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use millpond::{Db, KeyRange, Options, RawTree, Savepoint, Snapshot, Txn};
use millpond_device::MemoryDevice;

use crate::byte_calls::{SnapshotCalls, TxnCalls};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
/// Values by key; `None`: removed.
type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

const WRITERS: u32 = 3;

struct Writer {
    tx: Txn,
    /// Changes that take effect if the transaction commits.
    changes: Changes,
    savepoint: Option<(Savepoint, Changes)>,
}

struct Model {
    random: fastrand::Rng,
    db: Db,
    tree: RawTree,
    committed: Map,
    writers: Vec<Option<Writer>>,
    snapshots: Vec<(Snapshot, Map)>,
}

impl Model {
    fn new(seed: u64, logged: bool) -> Model {
        let options = Options::new().memory(8 << 20).page_size(4096);
        let device = || Arc::new(MemoryDevice::new());
        let db = match logged {
            true => Db::open_on_devices(device(), device(), options).unwrap(),
            false => Db::in_memory(options).unwrap(),
        };
        let (tree, random) = (db.raw_tree("t").unwrap(), fastrand::Rng::with_seed(seed));
        let writers = (0..WRITERS).map(|_| None).collect();
        let (committed, snapshots) = (Map::new(), Vec::new());
        Model { random, db, tree, committed, writers, snapshots }
    }

    /// A key that only `writer` writes, or, of the last one, only calls outside transactions.
    fn key(&mut self, writer: u32) -> Vec<u8> {
        let (writers, i) = (WRITERS + 1, self.random.u32(0..150));
        format!("{:05}", i * writers + writer).into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        let (len, byte) = match self.random.u8(0..20) {
            0 => (self.random.usize(2000..9000), self.random.u8(..)),
            _ => (self.random.usize(80..84), self.random.u8(0..4)),
        };
        vec![byte; len]
    }

    fn write(&mut self, number: u32) {
        let (key, value) = (self.key(number), self.value());
        let delete = self.random.u8(0..4) == 0;
        let db = &self.db;
        let writer = self.writers[number as usize].get_or_insert_with(|| Writer {
            tx: db.begin().unwrap(),
            changes: BTreeMap::new(),
            savepoint: None,
        });
        if delete {
            writer.tx.delete(&self.tree, &key).unwrap();
            writer.changes.insert(key, None);
        } else {
            writer.tx.put(&self.tree, &key, &value).unwrap();
            writer.changes.insert(key, Some(value));
        }
    }

    fn turn(&mut self, number: u32) {
        let kind = self.random.u8(0..16);
        let Some(mut writer) = self.writers[number as usize].take() else { return };
        match kind {
            0..3 => {
                writer.tx.commit().unwrap();
                for (key, value) in writer.changes {
                    match value {
                        Some(value) => drop(self.committed.insert(key, value)),
                        None => drop(self.committed.remove(&key)),
                    }
                }
                return;
            }
            3 => return writer.tx.abort().unwrap(),
            4 => writer.savepoint = Some((writer.tx.savepoint().unwrap(), writer.changes.clone())),
            5 | 6 => {
                if let Some((savepoint, changes)) = writer.savepoint.take() {
                    writer.tx.rollback_to(&savepoint).unwrap();
                    writer.changes = changes;
                }
            }
            _ => {}
        }
        self.writers[number as usize] = Some(writer);
    }

    fn call(&mut self) {
        let (key, value) = (self.key(WRITERS), self.value());
        match self.random.u8(0..4) {
            0 => {
                self.tree.delete(&key).unwrap();
                self.committed.remove(&key);
            }
            1 => {
                if self.tree.insert_if_absent(&key, &value).unwrap() {
                    self.committed.insert(key, value);
                }
            }
            _ => {
                self.tree.put(&key, &value).unwrap();
                self.committed.insert(key, value);
            }
        }
    }

    fn snapshots(&mut self) {
        match self.random.u8(0..3) {
            0 if self.snapshots.len() < 5 => {
                let snapshot = self.db.snapshot().unwrap();
                self.snapshots.push((snapshot, self.committed.clone()));
            }
            1 if !self.snapshots.is_empty() => {
                let which = self.random.usize(0..self.snapshots.len());
                self.snapshots.swap_remove(which);
            }
            _ => {}
        }
    }

    fn bound(&mut self) -> Bound<Vec<u8>> {
        let writer = self.random.u32(0..=WRITERS);
        let key = self.key(writer);
        match self.random.u8(0..3) {
            0 => Bound::Included(key),
            1 => Bound::Excluded(key),
            _ => Bound::Unbounded,
        }
    }

    fn check(&mut self) {
        let range = KeyRange { start: self.bound(), end: self.bound() };
        let writer = self.random.u32(0..=WRITERS);
        let key = self.key(writer);
        for (snapshot, map) in &self.snapshots {
            assert_eq!(snapshot.get(&self.tree, &key).unwrap().as_ref(), map.get(&key));
            let expected = map.iter().filter(|(key, _)| range.contains(key));
            let expected: Vec<_> = expected.map(|(k, v)| (k.clone(), v.clone())).collect();
            let mut entries = snapshot.tree(&self.tree).into_range(&range);
            let (mut there, mut back) = (Vec::new(), Vec::new());
            let ends = self.random.u8(0..4);
            loop {
                let from_front = match ends {
                    0 => true,
                    1 => false,
                    _ => self.random.bool(),
                };
                let next = if from_front { entries.next() } else { entries.next_back() };
                let Some(next) = next else { break };
                if from_front { &mut there } else { &mut back }.push(next.unwrap());
            }
            there.extend(back.into_iter().rev());
            assert_eq!(there, expected, "{range:?}");
        }
        // What is read outside of all of them is what is committed now.
        let all = self.tree.range(&range).map(Result::unwrap);
        let committed = self.committed.iter().filter(|(key, _)| range.contains(key));
        assert!(all.eq(committed.map(|(k, v)| (k.clone(), v.clone()))));
    }
}

fn run(seed: u64, logged: bool) {
    let mut model = Model::new(seed, logged);
    for _ in 0..3000 {
        let number = model.random.u32(0..WRITERS);
        match model.random.u8(0..20) {
            0..9 => model.write(number),
            9..12 => model.turn(number),
            12..16 => model.call(),
            16..18 => model.snapshots(),
            _ => model.check(),
        }
    }
    model.snapshots.clear();
    for writer in model.writers.into_iter().flatten() {
        writer.tx.abort().unwrap();
    }
    let all = model.tree.iter().map(Result::unwrap);
    assert!(all.eq(model.committed));
    assert!(model.tree.check().unwrap().violations.is_empty());
}

#[test]
fn snapshots_are_what_was_committed_when_they_began() {
    for seed in 0..6 {
        println!("seed {seed}");
        run(seed, seed % 2 == 0);
    }
}
