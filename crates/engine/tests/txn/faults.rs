//! A fixed story of transactions in which one operation of the storage fails, each in turn: a
//! write, a sync, a growth, of the data file or the log.
//!
//! Whatever fails: nothing panics and nothing hangs, and every error has its type. When the store
//! is opened again on sound storage, it is in one of the permitted states. That is the state of the
//! last commit acknowledged as durable, or a later one, never a part of one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use millpond::internals::admin::check::{CATALOG, CheckOptions, check_store};
use millpond::{Db, Durability, Error, Options, RawTree, Txn, TxnOptions, error::TxnError};

use millpond::internals::io::PageStore;
use millpond::internals::lock::LockError;
use millpond::internals::pool::PoolError;
use millpond_base::rounds::rounds;
use millpond_device::{Device, Fault, Faults, FaultyDevice, MemoryDevice, PowerSupply};

use Durability::{Async, Sync};

use crate::byte_calls::TxnCalls;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;
/// Rows of the trees `a` and `b`.
type State = [Rows; 2];

/// Frames of the pool: few make it write pages all the time.
const FRAMES: [u32; 3] = [24, 40, 150];

const NAMES: [&str; 2] = ["a", "b"];

/// Changes of one transaction: tree, key, value or none.
type Changes = Vec<(usize, Vec<u8>, Option<Vec<u8>>)>;

fn options(frames: u32) -> Options {
    Options::new().page_size(4096).lab(|lab| lab.background_merge = false).lab(|lab| {
        lab.frames = Some(frames);
        lab.batch = Some(2);
        lab.background_writer = false;
        lab.log_segment = Some(16 << 10);
    })
}

struct World {
    supply: PowerSupply,
    data: Arc<FaultyDevice>,
    log: Arc<FaultyDevice>,
}

impl World {
    fn new(data: MemoryDevice, log: MemoryDevice) -> World {
        let supply = PowerSupply::new();
        let (data, log) = (supply.device("data", data), supply.device("log", log));
        World { supply, data, log }
    }

    fn open(&self, frames: u32) -> Result<Db, Error> {
        Db::open_on_devices(self.data.clone(), self.log.clone(), options(frames))
    }

    /// Returns the world after the process dies and the machine goes on: every completed write is
    /// there.
    fn remains(&self) -> World {
        let copy = |device: &FaultyDevice| {
            let mut bytes = vec![0; device.length() as usize];
            device.read(0, &mut bytes).unwrap();
            MemoryDevice::from_bytes(&bytes)
        };
        // In this order: the log may know more than the data, not the other way round.
        let data = copy(&self.data);
        World::new(data, copy(&self.log))
    }

    /// Returns the world after a power failure at this moment.
    fn image(&self, seed: u64) -> World {
        let (supply, devices) = self.supply.images(seed);
        World { data: devices[0].clone(), log: devices[1].clone(), supply }
    }
}

/// The story as far as it has come.
struct Run<'a> {
    db: &'a Db,
    /// States that a crash may leave: the first is durable, the last is the present one.
    states: Vec<State>,
    errors: Vec<Error>,
    /// A transaction could not be undone: the keys that it changed stay locked.
    is_stuck: bool,
}

impl Run<'_> {
    fn now(&self) -> &State {
        self.states.last().unwrap()
    }

    fn applied(&self, changes: &Changes) -> State {
        let mut state = self.now().clone();
        for (tree, key, value) in changes {
            match value {
                Some(value) => state[*tree].insert(key.clone(), value.clone()),
                None => state[*tree].remove(key),
            };
        }
        state
    }

    /// Makes the changes in a transaction, the later half of them a second time after a rollback;
    /// returns whether it was acknowledged.
    fn transaction(&mut self, durability: Durability, commits: bool, changes: &Changes) -> bool {
        let done = self.try_transaction(durability, commits, changes);
        done.map_err(|error| self.errors.push(error)).is_ok()
    }

    fn try_transaction(
        &mut self,
        durability: Durability,
        commits: bool,
        changes: &Changes,
    ) -> Result<(), Error> {
        let trees = [self.db.open_tree("a")?, self.db.open_tree("b")?];
        let patience = Duration::from_millis(50);
        let options = TxnOptions::default().durability(durability).wait_max(patience);
        let mut tx = self.db.begin_with(options)?;
        let mut work = || {
            let half = changes.len() / 2;
            let mut savepoint = tx.savepoint().unwrap();
            for (i, part) in
                [&changes[..half], &changes[half..], &changes[half..]].iter().enumerate()
            {
                match i {
                    1 => savepoint = tx.savepoint().unwrap(),
                    2 => tx.rollback_to(&savepoint)?,
                    _ => {}
                }
                for (tree, key, value) in *part {
                    match value {
                        Some(value) => tx.put(&trees[*tree], key, value)?,
                        None => tx.delete(&trees[*tree], key)?,
                    };
                }
            }
            Ok(())
        };
        let worked: Result<(), Error> = work();
        if !commits || worked.is_err() {
            let ended = tx.abort();
            self.is_stuck |= ended.is_err();
            return worked.and(ended);
        }
        let committed = tx.commit();
        self.states.push(self.applied(changes));
        if committed.is_ok() && durability == Sync {
            self.states.drain(..self.states.len() - 1);
        }
        committed
    }

    /// One change outside transactions.
    fn put_alone(&mut self, tree: usize, key: &[u8], value: &[u8]) {
        if self.is_stuck {
            // It would wait for what stays locked.
            return;
        }
        let put = || self.db.open_tree(NAMES[tree])?.put(key, value);
        let done = put();
        // Whether a call that failed has done its work shows when one looks.
        let looked = self.db.open_tree(NAMES[tree]).and_then(|tree| tree.get(key));
        if done.is_ok() || looked.is_err() || looked.is_ok_and(|v| v.as_deref() == Some(value)) {
            let changes = vec![(tree, key.to_vec(), Some(value.to_vec()))];
            self.states.push(self.applied(&changes));
        }
        self.errors.extend(done.err());
    }

    fn note<T>(&mut self, result: Result<T, Error>) {
        self.errors.extend(result.err());
    }

    /// A tree that comes, is filled, and goes.
    fn pass_a_tree_by(&mut self) {
        let create = || {
            let tree = self.db.create_tree("passing")?;
            for i in 0..60u32 {
                tree.put(&i.to_be_bytes(), &[i as u8; 300])?;
            }
            tree.put(b"large", &[1; 20_000])?;
            Ok(())
        };
        let created: Result<(), Error> = create();
        self.note(created);
        let dropped = self.db.drop_tree("passing");
        if !matches!(dropped, Err(Error::NoTree { .. })) {
            self.note(dropped);
        }
    }

    fn tell(&mut self) {
        self.note(self.db.raw_tree("a").map(drop));
        self.note(self.db.raw_tree("b").map(drop));
        for i in 0..4u8 {
            self.transaction(Sync, true, &changes(i, 6));
            self.transaction(Async, true, &changes(i + 100, 3));
            self.transaction(Async, false, &changes(i + 50, 8));
        }
        self.note(self.db.checkpoint());
        self.pass_a_tree_by();
        for i in 0..3u8 {
            self.put_alone(0, &[b'k', i], &[i; 60]);
            self.put_alone(1, &[b'l', i], &[i; 7000]);
            self.transaction(Sync, i != 1, &changes(i + 3, 10));
        }
        self.note(self.db.checkpoint());
        self.transaction(Sync, true, &changes(9, 12));
        self.note(self.db.flush());
        self.transaction(Async, true, &changes(2, 12));
    }

    /// Verifies that all changes can be read, unless a small pool is full of changes that can no
    /// longer be written, since the log failed.
    fn look(&mut self, what: &str, frames: u32) {
        if self.is_stuck {
            return;
        }
        match contents(self.db) {
            Ok(found) => {
                assert!(self.now() == &found, "{what}: {}", difference(&found, &self.states));
            }
            Err(Error::Pool(PoolError::Log(_))) if frames < 100 => {}
            Err(error) => panic!("{what}: {error}"),
        }
    }
}

/// Changes to both trees, some of them large, some of them removing what is there.
fn changes(seed: u8, count: u8) -> Changes {
    let change = |i: u8| {
        let key = vec![b'k', (seed % 7).wrapping_mul(5).wrapping_add(i) % 24];
        let len = [30, 900, 9_000, 400, 15_000][usize::from((seed ^ i) % 5)];
        let value =
            (!seed.wrapping_add(i).is_multiple_of(6)).then(|| vec![seed.wrapping_add(i); len]);
        (usize::from(i % 2), key, value)
    };
    (0..count).map(change).collect()
}

fn contents(db: &Db) -> Result<State, Error> {
    let rows = |name: &str| match db.open_tree(name) {
        Ok(tree) => tree.iter().collect::<Result<Rows, Error>>(),
        Err(Error::NoTree { .. }) => Ok(Rows::new()),
        Err(error) => Err(error),
    };
    Ok([rows("a")?, rows("b")?])
}

fn difference(found: &State, states: &[State]) -> String {
    let rows = |rows: &Rows| {
        let row =
            |(key, value): (&Vec<u8>, &Vec<u8>)| format!("{key:?}:{}x{}", value.len(), value[0]);
        rows.iter().map(row).collect::<Vec<_>>().join(" ")
    };
    let each = |state: &State| format!("{}\n    | {}", rows(&state[0]), rows(&state[1]));
    let states: Vec<String> = states.iter().map(each).collect();
    format!("found\n  {}\nnot one of\n  {}", each(found), states.join("\n  "))
}

/// Opens what is left on storage that works, and says whether it is as it may be.
fn look_again(world: &World, states: &[State], what: &str) {
    let db = world.open(40).unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = contents(&db).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(states.contains(&found), "{what}: {}", difference(&found, states));
    // It works as any other, and is sound.
    let tree = db.raw_tree("a").unwrap();
    let tx = db.begin().unwrap();
    tx.put(&tree, b"after", b"all").unwrap();
    tx.commit().unwrap();
    drop(tree);
    db.close().unwrap_or_else(|error| panic!("{what}: {error}"));
    let store = PageStore::salvage_on(world.data.clone(), None).unwrap();
    let report = check_store(&store, CATALOG, &mut CheckOptions::default()).unwrap();
    assert!(report.is_sound(), "{what}: {:?}", report.problems);
}

/// Plays the story with its `nth` operation failing, and looks what is left. Returns whether there
/// was such an operation, and how many errors were seen.
fn play(nth: u64, fault: Fault, is_dropped: bool) -> (bool, usize) {
    let what = format!("{fault:?} at operation {nth}");
    let world = World::new(MemoryDevice::new(), MemoryDevice::new());
    world.supply.fail_at(nth, fault);
    let mut states = vec![State::default()];
    let mut errors = Vec::new();
    let frames = FRAMES[nth as usize % FRAMES.len()];
    match world.open(frames) {
        Err(error) => errors.push(error),
        Ok(db) => {
            let mut run = Run { db: &db, states, errors, is_stuck: false };
            run.tell();
            run.look(&what, frames);
            (states, errors) = (run.states, run.errors);
            if !is_dropped {
                look_again(&world.remains(), &states, &format!("{what}, process dead"));
                look_again(&world.image(nth), &states, &format!("{what}, power cut"));
            }
            let closed = db.close();
            if is_dropped && closed.is_ok() {
                // Everything is there then.
                states.drain(..states.len() - 1);
            }
        }
    }
    // Storage that fails is not storage that lies.
    let is_damage = |error: &&Error| matches!(error, Error::Pool(PoolError::Corrupt { .. }));
    assert!(!errors.iter().any(|error| is_damage(&error)), "{what}: {errors:?}");
    let has_struck = !world.supply.is_fault_due();
    if is_dropped {
        world.supply.spare();
        look_again(&world.remains(), &states, &format!("{what}, dropped"));
    }
    (has_struck, errors.len())
}

/// Most operations that the story has.
fn operations() -> u64 {
    let count = |frames: &u32| {
        let world = World::new(MemoryDevice::new(), MemoryDevice::new());
        let db = world.open(*frames).unwrap();
        let (states, errors) = (vec![State::default()], vec![]);
        let mut run = Run { db: &db, states, errors, is_stuck: false };
        run.tell();
        assert!(run.errors.is_empty(), "{:?}", run.errors);
        run.look("nothing failed", *frames);
        world.supply.operations()
    };
    FRAMES.iter().map(count).max().unwrap()
}

/// Every operation in turn, or one in `stride`, which are not the same for all kinds.
fn sweep(fault: Fault, is_dropped: bool, stride: usize) {
    let operations = operations();
    assert!(operations > 200, "{operations}");
    let (mut struck, mut errors) = (0, 0);
    for nth in (1..operations).step_by(stride) {
        let (has_struck, seen) = play(nth, fault, is_dropped);
        struck += u64::from(has_struck);
        errors += seen;
    }
    let enough = rounds(15, 40);
    assert!(struck > enough && errors > enough as usize, "{struck} {errors}");
}

#[test]
fn whatever_fails_what_was_durable_is_there_after_a_crash() {
    sweep(Fault::Error, false, rounds(5, 2));
}

#[test]
fn wherever_the_disk_is_full_what_was_durable_is_there_after_a_crash() {
    sweep(Fault::DiskFull, false, rounds(5, 2));
}

#[test]
fn whatever_fails_a_store_that_is_let_go_opens_again() {
    sweep(Fault::Error, true, rounds(7, 3));
    sweep(Fault::DiskFull, true, rounds(9, 5));
}

#[test]
fn a_log_that_failed_to_synchronise_takes_no_commit_any_more_and_reads_go_on() {
    let world = World::new(MemoryDevice::new(), MemoryDevice::new());
    let db = world.open(40).unwrap();
    let tree = db.raw_tree("tree").unwrap();
    let put = |value: &[u8]| {
        let tx = db.begin()?;
        tx.put(&tree, b"key", value)?;
        tx.commit()
    };
    put(b"durable").unwrap();
    world.log.fail_next_sync();
    let is_log = |error: Error| assert!(matches!(error, Error::Pool(PoolError::Log(_))), "{error}");
    is_log(put(b"in doubt").unwrap_err());
    for _ in 0..3 {
        is_log(put(b"lost").unwrap_err());
        is_log(tree.put(b"other", b"lost").unwrap_err());
        is_log(db.flush().unwrap_err());
        assert!(db.checkpoint().is_err());
        assert!(tree.get(b"key").unwrap().is_some());
        assert_eq!(tree.get(b"other").unwrap(), None);
    }
    let reader = db.begin().unwrap();
    assert!(reader.get(&tree, b"key").unwrap().is_some());
    reader.abort().unwrap();
    for (seed, world) in [world.remains(), world.image(1)].iter().enumerate() {
        let db = world.open(40).unwrap();
        let found = db.raw_tree("tree").unwrap().get(b"key").unwrap().unwrap();
        assert!(found == b"durable" || found == b"in doubt", "{seed}: {found:?}");
        db.close().unwrap();
    }
    drop(tree);
    assert!(db.close().is_err());
}

/// A store with more rows than frames, in which a transaction has changed some.
fn changed_beyond_memory(world: &World) -> (Db, RawTree) {
    let db = world.open(40).unwrap();
    let tree = db.raw_tree("a").unwrap();
    for i in 0..400u32 {
        tree.put(&i.to_be_bytes(), &[i as u8; 900]).unwrap();
    }
    tree.put(b"large", &[1; 15_000]).unwrap();
    (db, tree)
}

fn change(tx: &mut Txn, tree: &RawTree) {
    tx.put(tree, &7u32.to_be_bytes(), b"never").unwrap();
    tx.put(tree, b"large", b"never").unwrap();
    tx.delete(tree, &300u32.to_be_bytes()).unwrap();
    // Out of memory with what was changed.
    for i in 10..290u32 {
        assert!(tree.contains(&i.to_be_bytes()).unwrap());
    }
}

fn is_unchanged(tree: &RawTree) {
    for i in 0..400u32 {
        assert_eq!(tree.get(&i.to_be_bytes()).unwrap(), Some(vec![i as u8; 900]), "{i}");
    }
    assert_eq!(tree.get(b"large").unwrap(), Some(vec![1; 15_000]));
    assert!(tree.check().unwrap().violations.is_empty());
}

const READS_FAIL: Faults = Faults {
    read_error: 1.0,
    write_error: 0.0,
    sync_error: 0.0,
    torn_write: 0.0,
    lost_write: 0.0,
    bit_flip: 0.0,
    latency_us_max: 0,
};

#[test]
fn what_a_rollback_could_not_take_back_the_abort_does() {
    let world = World::new(MemoryDevice::new(), MemoryDevice::new());
    let (db, tree) = changed_beyond_memory(&world);
    let mut tx = db.begin().unwrap();
    let savepoint = tx.savepoint().unwrap();
    change(&mut tx, &tree);
    world.data.set_faults(READS_FAIL);
    tx.rollback_to(&savepoint).unwrap_err();
    world.data.set_faults(Faults::default());
    assert!(matches!(tx.get(&tree, b"any"), Err(Error::Txn(TxnError::Failed))));
    tx.abort().unwrap();
    is_unchanged(&tree);
    drop(tree);
    db.close().unwrap();
    is_unchanged(&world.open(100).unwrap().open_tree("a").unwrap());
}

#[test]
fn what_an_abort_could_not_take_back_a_recovery_does() {
    let world = World::new(MemoryDevice::new(), MemoryDevice::new());
    let (db, tree) = changed_beyond_memory(&world);
    let mut tx = db.begin().unwrap();
    change(&mut tx, &tree);
    world.data.set_faults(READS_FAIL);
    tx.abort().unwrap_err();
    world.data.set_faults(Faults::default());
    // It stays locked, for which nobody waits, and the store is not taken for one that was closed.
    let other = db.begin_with(TxnOptions::default().wait_max(Duration::MAX)).unwrap();
    let error = other.get(&tree, b"large").unwrap_err();
    let is_stranded = matches!(error, Error::Txn(TxnError::Lock(LockError::Stranded { .. })));
    assert!(is_stranded && !error.is_retriable(), "{error}");
    assert!(error.to_string().contains("tree 'a'"), "{error}");
    assert!(other.get(&tree, b"any").unwrap().is_none());
    other.abort().unwrap();
    db.checkpoint().unwrap();
    drop(tree);
    assert!(matches!(db.close(), Err(Error::Unfinished { transactions: 1 })));
    let db = world.open(100).unwrap();
    is_unchanged(&db.open_tree("a").unwrap());
    db.close().unwrap();
}
