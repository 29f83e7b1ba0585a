//! A log whose disk is full: which calls are refused, which have room, and how writes go on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use millpond::{Db, Durability, Error, ErrorKind, Options, RawTree};
use millpond_device::{FaultyDevice, MemoryDevice};

const SEGMENT: u64 = 64 << 10;

/// Time for a checkpoint in the background, which takes some milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

struct World {
    log: Arc<FaultyDevice>,
    db: Db,
    tree: RawTree,
}

impl World {
    fn new(segment: u64, memory: u64) -> World {
        let device = || Arc::new(FaultyDevice::new(Arc::new(MemoryDevice::new()), 1));
        let (data, log) = (device(), device());
        let options = Options::new().memory(memory).page_size(4096);
        let options = options.durability(Durability::Async).lab(|lab| {
            lab.background_merge = false;
            lab.log_segment = Some(segment);
        });
        let db = Db::open_on_devices(data, log.clone(), options).unwrap();
        let tree = db.raw_tree("t").unwrap();
        World { log, db, tree }
    }

    fn put(&self, row: u32, value: u8) -> Result<(), Error> {
        self.tree.put(&row.to_be_bytes(), &[value; 1000]).map(drop)
    }

    /// Puts rows until the log, whose disk is full, refuses even the shortest.
    fn put_until_refused(&self) {
        for length in [1000, 1] {
            let mut random = fastrand::Rng::with_seed(7);
            let put = |row: u32| {
                let value: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
                self.tree.put(&(row % 500).to_be_bytes(), &value).err()
            };
            let error = (0..100_000).find_map(put).unwrap();
            assert!(is_no_room(&error), "{error}");
        }
    }

    /// The log takes records, and makes them durable.
    fn check_log(&self) {
        self.db.flush().unwrap_or_else(|error| panic!("the log has ended: {error}"));
    }
}

fn is_no_room(error: &Error) -> bool {
    error.kind() == ErrorKind::DiskFull && !error.to_string().contains("nothing more")
}

#[test]
fn shrinking_leaves_the_log_the_room_that_an_open_transaction_needs_to_be_undone() {
    let world = World::new(SEGMENT, 8 << 20);
    (0..2000).for_each(|row| world.put(row, 1).unwrap());
    world.db.checkpoint().unwrap();
    let tx = world.db.begin().unwrap();
    for row in 0..2000_u32 {
        tx.tree(&world.tree).put(&row.to_be_bytes(), &[2; 1000]).unwrap();
    }
    world.db.shrink().unwrap();
    world.log.limit_room(0);
    tx.abort().unwrap_or_else(|error| panic!("{error}"));
    world.check_log();
    for row in 0..2000_u32 {
        assert_eq!(world.tree.get(&row.to_be_bytes()).unwrap(), Some(vec![1; 1000]), "{row}");
    }
}

#[test]
fn a_checkpoint_is_taken_and_the_store_shrinks_while_the_log_has_no_room_for_a_change() {
    for frees in [|db: &Db| db.checkpoint(), |db: &Db| db.shrink().map(drop)] {
        let world = World::new(SEGMENT, 8 << 20);
        // It keeps the log, so that no checkpoint in the background makes room.
        let tx = world.db.begin().unwrap();
        tx.tree(&world.tree).put(b"kept", b"1").unwrap();
        (0..1000).for_each(|row| world.put(row, 1).unwrap());
        world.log.limit_room(0);
        world.put_until_refused();
        frees(&world.db).unwrap_or_else(|error| panic!("{error}"));
        world.check_log();
        drop(tx);
    }
}

#[test]
fn writes_go_on_by_themselves_when_a_checkpoint_frees_the_log_of_a_full_disk() {
    let world = World::new(SEGMENT, 8 << 20);
    (0..4000).for_each(|row| world.put(row, 1).unwrap());
    world.log.limit_room(0);
    world.put_until_refused();
    for row in 0..20_000 {
        let begun = Instant::now();
        while let Err(error) = world.put(row % 4000, 3) {
            assert!(is_no_room(&error), "{error}");
            assert!(begun.elapsed() < PATIENCE, "no checkpoint has made room for row {row}");
            std::thread::yield_now();
        }
    }
    world.check_log();
}

#[test]
fn refusals_take_no_checkpoint_while_a_transaction_keeps_the_log_and_one_afterwards() {
    let world = World::new(SEGMENT, 8 << 20);
    let tx = world.db.begin().unwrap();
    tx.tree(&world.tree).put(b"kept", b"1").unwrap();
    world.log.limit_room(0);
    world.put_until_refused();
    let before = world.db.stats().checkpoints;
    (0..200_000).for_each(|row| assert!(world.put(row % 500, 9).is_err()));
    assert_eq!(world.db.stats().checkpoints, before);
    tx.abort().unwrap();
    let begun = Instant::now();
    while world.put(0, 9).is_err() {
        assert!(begun.elapsed() < PATIENCE, "no checkpoint has made room");
        std::thread::yield_now();
    }
}

#[test]
fn trees_are_refused_while_the_log_has_no_room_and_the_log_goes_on() {
    let world = World::new(SEGMENT, 8 << 20);
    let tx = world.db.begin().unwrap();
    tx.tree(&world.tree).put(b"kept", b"1").unwrap();
    world.log.limit_room(0);
    let made = (0..5000).map(|n| world.db.raw_tree(&format!("a tree {n}")).map(drop));
    let error = made.into_iter().find_map(Result::err).expect("no tree is refused");
    assert!(is_no_room(&error), "{error}");
    world.check_log();
    tx.abort().unwrap();
    assert!(world.db.raw_tree("a tree 0").is_ok(), "what is there needs no room");
}

#[test]
fn a_tree_of_many_pages_is_dropped_or_refused_on_a_full_disk_and_the_log_goes_on() {
    let world = World::new(16 << 10, 8 << 20);
    let large = world.db.raw_tree("large").unwrap();
    for row in 0..20_000_u32 {
        large.put(&row.to_be_bytes(), &[1; 1000]).unwrap();
    }
    drop(large);
    world.db.checkpoint().unwrap();
    let tx = world.db.begin().unwrap();
    tx.tree(&world.tree).put(b"kept", b"1").unwrap();
    world.log.limit_room(0);
    world.put_until_refused();
    tx.tree(&world.tree).put(b"more", b"1").unwrap_err();
    let dropped = world.db.drop_tree("large");
    assert!(dropped.as_ref().err().is_none_or(is_no_room), "{dropped:?}");
    world.check_log();
    tx.abort().unwrap();
    world.check_log();
}

#[test]
fn large_values_that_a_commit_leaves_behind_do_not_end_the_log_of_a_full_disk() {
    let world = World::new(16 << 10, 64 << 20);
    for row in 0..40_u32 {
        world.tree.put(&row.to_be_bytes(), &vec![1; 1 << 20]).unwrap();
    }
    world.db.checkpoint().unwrap();
    let tx = world.db.begin().unwrap();
    world.log.limit_room(0);
    let gone = (0..40_u32).map(|row| tx.tree(&world.tree).delete(&row.to_be_bytes()));
    let refused = gone.into_iter().find_map(Result::err);
    assert!(refused.as_ref().is_none_or(is_no_room), "{refused:?}");
    for (length, least) in [(1000, 1000), (1, 1_000_000)] {
        let value = vec![1; length];
        let put = |n: u32| tx.tree(&world.tree).put(&(least + n).to_be_bytes(), &value).err();
        let error = (0..200_000).find_map(put).expect("no write is refused");
        assert!(is_no_room(&error), "{error}");
    }
    tx.commit().unwrap_or_else(|error| panic!("{error}"));
    world.check_log();
}

#[test]
fn a_checkpoint_with_much_to_say_has_room_on_a_full_disk() {
    let world = World::new(16 << 10, 8 << 20);
    for n in 0..8000 {
        let tree = world.db.raw_tree(&format!("{n}")).unwrap();
        tree.put(b"k", b"v").unwrap();
    }
    world.db.checkpoint().unwrap();
    let tx = world.db.begin().unwrap();
    tx.tree(&world.tree).put(b"kept", b"1").unwrap();
    world.log.limit_room(0);
    world.put_until_refused();
    world.db.checkpoint().unwrap_or_else(|error| panic!("{error}"));
    world.check_log();
    tx.abort().unwrap();
    world.check_log();
}
