//! `close` with handles left: the files are free at once, and the remaining handles return
//! `Closed`.

use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use millpond::{Db, Error, ErrorKind, Options, Published, Tree};
use millpond_base::rounds::rounds;
use millpond_device::{Device, MemoryDevice};

use super::{assert_sound, place, tiny};
use crate::byte_calls::TxnCalls;

/// Keys of each thread.
const KEYS: u64 = 120;
const THREADS: u64 = 3;

fn options() -> Options {
    tiny(48)
}

fn closed<R: std::fmt::Debug>(what: &str, done: Result<R, Error>) {
    let kind = done.as_ref().map(|_| ()).map_err(Error::kind);
    assert_eq!(kind, Err(ErrorKind::Closed), "{what}: {done:?}");
}

#[test]
fn a_store_that_was_closed_opens_at_once_whatever_handles_are_left() {
    let (_dir, path) = place();
    for round in 0..rounds(6, 60u64) {
        let db = Db::open(&path, options()).unwrap();
        let tree = db.tree::<u64, u64>("t").unwrap();
        let (index, heap) = (db.raw_hash_index("index").unwrap(), db.raw_heap("heap").unwrap());
        for key in 0..400 {
            tree.put(&key, &(key + round)).unwrap();
        }
        let (snapshot, mut rows) = (db.snapshot().unwrap(), tree.iter());
        rows.next().unwrap().unwrap();
        let mut tx = (round % 2 == 0).then(|| db.begin().unwrap());
        if let Some(tx) = &tx {
            (0..300).for_each(|key| assert!(tx.tree(&tree).put(&key, &0).is_ok()));
        }
        let other = db.clone();
        db.close().unwrap();
        // Nobody has let go of anything.
        let again = Db::open(&path, options()).unwrap();
        assert_eq!(again.recovery().is_some(), tx.is_some(), "what was under way is undone");
        let now = again.tree::<u64, u64>("t").unwrap();
        for key in 0..400 {
            assert_eq!(now.get(&key).unwrap(), Some(key + round));
            now.put(&key, &u64::MAX).unwrap();
        }
        again.checkpoint().unwrap();
        for key in 0..400 {
            closed("get", tree.get(&key));
            closed("snapshot get", snapshot.tree(&tree).get(&key));
        }
        closed("put", tree.put(&1, &1));
        closed("cursor", rows.find(|row| row.is_err()).unwrap());
        closed("hash get", index.get(b"k"));
        closed("append", heap.append(b"k"));
        closed("tree", other.tree::<u64, u64>("t"));
        if let Some(tx) = tx.take() {
            closed("tx get", tx.tree(&tree).get(&1));
            if round % 4 == 0 { closed("commit", tx.commit()) } else { tx.abort().unwrap() }
        }
        other.close().unwrap();
        drop(rows);
        drop((tree, index, heap, snapshot));
        // What the old handles let go of was theirs.
        assert!(!Published::read(&path).unwrap().is_closed, "the store is open");
        (0..400).for_each(|key| assert_eq!(now.get(&key).unwrap(), Some(u64::MAX)));
        drop(now);
        again.close().unwrap();
        assert_sound(&path);
    }
}

/// A large transaction has its before images in the spill file, whose name the next store takes.
#[test]
fn a_store_that_is_opened_beside_the_handles_of_a_closed_one_keeps_its_spill_file() {
    let (dir, path) = place();
    let spill = dir.path().join("store.mill-spill");
    let fill = |db: &Db| {
        let (tx, tree) = (db.begin().unwrap(), db.raw_tree("t").unwrap());
        (0..40_000u32).for_each(|key| {
            tx.put(&tree, &key.to_be_bytes(), &[7; 100]).unwrap();
        });
        tx
    };
    let large = Options::new().memory(4 << 20);
    let db = Db::open(&path, large.clone()).unwrap();
    let old = fill(&db);
    assert!(spill.exists());
    db.close().unwrap();
    assert!(!spill.exists(), "a closed store has none");
    let again = Db::open(&path, large).unwrap();
    let new = fill(&again);
    assert!(spill.exists());
    drop(old);
    assert!(spill.exists(), "it is the open store's");
    new.abort().unwrap();
    assert_eq!(again.raw_tree("t").unwrap().len().unwrap(), 0);
    again.close().unwrap();
}

/// Only calls and transactions themselves can finish, or undo, what they change there.
#[test]
fn a_store_without_a_log_is_closed_when_the_handles_that_are_left_are_gone() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let open = || Db::open_on(device.clone(), options());
    let db = open().unwrap();
    let tree = db.tree::<u64, u64>("t").unwrap();
    tree.put(&1, &1).unwrap();
    let tx = db.begin().unwrap();
    tx.tree(&tree).put(&1, &2).unwrap();
    db.close().unwrap();
    closed("get", tree.get(&1));
    closed("tx get", tx.tree(&tree).get(&1));
    open().unwrap_err();
    drop((tx, tree));
    let db = open().unwrap();
    let tree = db.tree::<u64, u64>("t").unwrap();
    assert_eq!(tree.get(&1).unwrap(), Some(1));
    db.close().unwrap();
    closed("get", tree.get(&1));
    open().unwrap_err();
    drop(tree);
    assert_eq!(open().unwrap().tree::<u64, u64>("t").unwrap().get(&1).unwrap(), Some(1));
}

/// State that the threads share: the store that is open, and the value of each key.
struct Shared {
    open: RwLock<Option<(Db, Tree<u64, u64>)>>,
    /// The last value that was acknowledged, by key.
    values: Vec<AtomicU64>,
    done: AtomicU64,
    rounds: u32,
    closed: AtomicU32,
}

impl Shared {
    fn open(&self, path: &Path) {
        let db = Db::open(path, options()).unwrap();
        let tree = db.tree::<u64, u64>("t").unwrap();
        *self.open.write().unwrap() = Some((db, tree));
    }

    /// Puts, gets and scans keys of its own with one store's handles until these are closed.
    fn use_until_closed(&self, thread: u64, tree: &Tree<u64, u64>) -> Result<(), Error> {
        let keys = thread * KEYS..(thread + 1) * KEYS;
        let has = |key: u64| self.values[key as usize].load(Ordering::SeqCst);
        for key in keys.clone().cycle() {
            let next = has(key) + 1;
            let put = tree.put(&key, &next);
            // Where it failed, it is in the store or not: the next store tells.
            put.inspect_err(|_| self.values[key as usize].store(u64::MAX, Ordering::SeqCst))?;
            self.values[key as usize].store(next, Ordering::SeqCst);
            let (other, mut count) = ((key * 31 + 7) % KEYS + keys.start, 0);
            assert_eq!(tree.get(&other)?.unwrap_or(0), has(other), "a get of key {other}");
            if key % 40 == 0 {
                for row in tree.range(keys.clone()) {
                    let (key, value) = row?;
                    assert_eq!(value, has(key), "a scan at key {key}");
                    count += 1;
                }
                let put = keys.clone().filter(|key| has(*key) > 0).count();
                assert_eq!(count, put, "a scan has all keys");
            }
            self.done.fetch_add(1, Ordering::SeqCst);
            if self.is_over() {
                return Err(Error::Closed);
            }
        }
        Ok(())
    }

    /// Ends the threads, also when the test fails.
    fn is_over(&self) -> bool {
        self.closed.load(Ordering::SeqCst) >= self.rounds
    }

    fn work(&self, thread: u64) {
        while !self.is_over() {
            let Some((db, tree)) = self.open.read().unwrap().clone() else { continue };
            // What is not known of the last call is in the store that it was reopened as.
            let learnt = (thread * KEYS..(thread + 1) * KEYS).try_for_each(|key| {
                let value = &self.values[key as usize];
                if value.load(Ordering::SeqCst) == u64::MAX {
                    value.store(tree.get(&key)?.unwrap_or(0), Ordering::SeqCst);
                }
                Ok(())
            });
            let done = learnt.and_then(|()| self.use_until_closed(thread, &tree));
            closed("a call beside the close", done);
            if !self.is_over() {
                closed("a get after the close", tree.get(&0));
                closed("a flush after the close", db.flush());
            }
        }
    }
}

/// Ends the threads when the last round is over, or has failed.
struct Ends<'a>(&'a AtomicU32);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(u32::MAX, Ordering::SeqCst);
    }
}

#[test]
fn calls_beside_a_close_are_in_the_store_or_closed_and_read_what_was_written() {
    let (_dir, path) = place();
    let values = (0..THREADS * KEYS).map(|_| AtomicU64::new(0)).collect();
    let (open, rounds) = (RwLock::new(None), rounds(25, 400));
    let (done, closed) = (AtomicU64::new(0), AtomicU32::new(0));
    let shared = Shared { open, values, done, rounds, closed };
    shared.open(&path);
    std::thread::scope(|scope| {
        let _ends = Ends(&shared.closed);
        let threads = (0..THREADS).map(|thread| {
            let shared = &shared;
            scope.spawn(move || shared.work(thread))
        });
        let threads: Vec<_> = threads.collect();
        for round in 1..=rounds {
            let until = shared.done.load(Ordering::SeqCst) + 200;
            while shared.done.load(Ordering::SeqCst) < until {
                assert!(!threads.iter().any(|thread| thread.is_finished()), "a thread has failed");
                std::thread::yield_now();
            }
            let (db, tree) = shared.open.write().unwrap().take().unwrap();
            db.close().unwrap();
            if round < rounds {
                shared.open(&path);
            }
            drop(tree);
        }
    });
    let db = Db::open(&path, options()).unwrap();
    let tree = db.tree::<u64, u64>("t").unwrap();
    for (key, value) in shared.values.iter().enumerate() {
        let value = value.load(Ordering::SeqCst);
        if value != u64::MAX {
            assert_eq!(tree.get(&(key as u64)).unwrap().unwrap_or(0), value, "key {key}");
        }
    }
    drop(tree);
    db.close().unwrap();
    assert_sound(&path);
}
