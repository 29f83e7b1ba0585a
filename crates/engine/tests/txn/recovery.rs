//! Stores after their power failed.

use std::sync::Arc;

use millpond::{Db, Durability, Options, TxnOptions};
use millpond_device::{FaultyDevice, MemoryDevice};

use crate::byte_calls::TxnCalls;

fn options() -> Options {
    Options::new().memory(16 << 20).lab(|lab| lab.log_segment = Some(64 << 10))
}

struct World {
    data: Arc<FaultyDevice>,
    log: Arc<FaultyDevice>,
}

impl World {
    fn new() -> World {
        World::of(MemoryDevice::new(), MemoryDevice::new(), 1)
    }

    fn of(data: MemoryDevice, log: MemoryDevice, seed: u64) -> World {
        let device = |device| Arc::new(FaultyDevice::with_crashes(device, seed));
        World { data: device(data), log: device(log) }
    }

    fn open(&self) -> Db {
        Db::open_on_devices(self.data.clone(), self.log.clone(), options()).unwrap()
    }

    /// Returns the world that the power failure leaves.
    fn crash(&self, seed: u64) -> World {
        World::of(self.data.crash(seed).unwrap(), self.log.crash(seed + 1).unwrap(), seed)
    }
}

#[test]
fn a_durable_commit_is_there_after_a_crash_and_an_open_transaction_is_not() {
    let world = World::new();
    let db = world.open();
    let tree = db.raw_tree("tree").unwrap();
    for i in 0..500u32 {
        tree.put(&i.to_be_bytes(), &[i as u8; 50]).unwrap();
    }
    let tx = db.begin().unwrap();
    tx.put(&tree, b"large", &[5; 30_000]).unwrap();
    tx.delete(&tree, &7u32.to_be_bytes()).unwrap();
    tx.commit().unwrap();
    let open = db.begin().unwrap();
    for i in 0..300u32 {
        open.put(&tree, &i.to_be_bytes(), b"never").unwrap();
    }
    open.delete(&tree, b"large").unwrap();
    open.put(&tree, b"other", &[6; 10_000]).unwrap();
    db.flush().unwrap();
    for seed in 0..20 {
        let after = world.crash(seed * 10);
        let db = after.open();
        let tree = db.raw_tree("tree").unwrap();
        assert_eq!(tree.get(b"large").unwrap(), Some(vec![5; 30_000]));
        assert_eq!(tree.get(b"other").unwrap(), None);
        for i in 0..500u32 {
            let expected = (i != 7).then(|| vec![i as u8; 50]);
            assert_eq!(tree.get(&i.to_be_bytes()).unwrap(), expected, "key {i}, seed {seed}");
        }
        assert!(tree.check().unwrap().violations.is_empty());
        drop(tree);
        db.close().unwrap();
        // Closed as any other, and opened as any other.
        let db = after.open();
        assert_eq!(db.raw_tree("tree").unwrap().len().unwrap(), 500);
    }
    drop((open, tree, db));
}

#[test]
fn an_asynchronous_commit_is_lost_as_a_whole_or_not_at_all() {
    let world = World::new();
    let db = world.open();
    let tree = db.raw_tree("tree").unwrap();
    for i in 0..200u32 {
        let tx = db.begin_with(TxnOptions::default().durability(Durability::Async)).unwrap();
        tx.put(&tree, &i.to_be_bytes(), b"a").unwrap();
        tx.put(&tree, &(i + 1000).to_be_bytes(), b"b").unwrap();
        tx.commit().unwrap();
    }
    for seed in 0..20 {
        let db = world.crash(seed * 7).open();
        let Ok(tree) = db.open_tree("tree") else { continue };
        let there = |i: u32| tree.contains(&i.to_be_bytes()).unwrap();
        let count = (0..200).take_while(|i| there(*i)).count() as u32;
        for i in 0..200 {
            assert_eq!((there(i), there(i + 1000)), (i < count, i < count), "seed {seed}");
        }
    }
}

/// Writers of several threads against a device that takes pages far more slowly than the log takes
/// records.
#[test]
fn writers_do_not_run_away_from_checkpoints() {
    use millpond_device::{Device, MemoryDevice, SlowDevice, SlowProfile};
    const GAP: u64 = 1 << 20;
    let profile = SlowProfile { write_us: 300, channels: 1, ..SlowProfile::NVME };
    let data = Arc::new(SlowDevice::new(Arc::new(MemoryDevice::new()), profile, 1));
    let log = Arc::new(MemoryDevice::new());
    let options = Options::new().memory(16 << 20).durability(Durability::Async).log_gap(GAP);
    let options = options.lab(|lab| lab.log_segment = Some(64 << 10));
    let db = Db::open_on_devices(data, log.clone(), options).unwrap();
    let tree = db.raw_tree("tree").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3u32 {
            let (db, tree) = (&db, &tree);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread.into());
                for _ in 0..6000 {
                    let key = random.u32(0..20_000).to_be_bytes();
                    if thread == 0 {
                        tree.put(&key, &[1; 200]).unwrap();
                    } else {
                        let put = |tx: &mut millpond::Txn| tx.put(tree, &key, &[2; 200]);
                        db.transact(put).unwrap();
                    }
                }
            });
        }
    });
    // The log's file is not made shorter meanwhile, so its length tells of the worst moment; it is
    // made longer ahead of need. Without anything that holds writers up it gets 13 MiB.
    assert!(log.length() < GAP * 4, "{}", log.length());
    drop(tree);
    db.close().unwrap();
}

#[test]
fn checkpoints_let_the_log_be_used_again() {
    let world = World::new();
    let db = world.open();
    let tree = db.raw_tree("tree").unwrap();
    for round in 0..200u32 {
        for i in 0..100u32 {
            tree.put(&i.to_be_bytes(), &[round as u8; 100]).unwrap();
        }
        if round % 10 == 0 {
            db.checkpoint().unwrap();
        }
    }
    db.flush().unwrap();
    use millpond_device::Device;
    assert!(world.log.length() < 2 << 20, "{}", world.log.length());
    let db2 = world.crash(3).open();
    let tree2 = db2.open_tree("tree").unwrap();
    for i in 0..100u32 {
        assert_eq!(tree2.get(&i.to_be_bytes()).unwrap(), Some(vec![199; 100]));
    }
    drop((tree, db));
}
