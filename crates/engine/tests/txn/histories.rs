//! Drawn histories of concurrent transactions, recorded and judged by
//! [`history`](crate::txn::history). They run in threads, and also in one thread that goes on with
//! one of several transactions at a time, so that a seed gives the same history again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use millpond::{
    Db, Durability, Error, Isolation, Options, RawTree, Savepoint, Snapshot, Txn, TxnOptions,
};
use millpond_device::MemoryDevice;

use crate::byte_calls::{SnapshotCalls, TxnCalls};
use crate::txn::history::{Anomaly, Entry, History, Key, Value};

/// A key in a store: long, so that few of them fill a page.
fn name(key: u8) -> Vec<u8> {
    let mut name = vec![key];
    name.resize(40, b'.');
    name
}

/// A value's bytes: its number, several times.
fn encode(value: u64, words: usize) -> Vec<u8> {
    value.to_le_bytes().repeat(words)
}

fn decode(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    assert!(rest.is_empty() && words.iter().all(|word| *word == words[0]), "torn: {words:?}");
    u64::from_le_bytes(words[0])
}

/// Parameters of the drawn histories.
#[derive(Clone, Copy)]
struct Shape {
    keys: u8,
    /// At most; each tree's values have this number of words.
    words: [usize; 2],
    options: TxnOptions,
    /// `true` if there are locks, without which there are no snapshots.
    snapshots: bool,
}

struct Recorder {
    db: Db,
    trees: [RawTree; 2],
    shape: Shape,
    /// Both count from 1.
    numbers: AtomicU64,
    values: AtomicU64,
    entries: Mutex<Vec<Entry>>,
    first: BTreeMap<Key, Value>,
}

/// A transaction under way.
struct Live {
    tx: Txn,
    entry: Entry,
    /// Values that the transaction wrote and did not roll back.
    own: BTreeMap<Key, Value>,
    /// Everything that it wrote.
    all: Vec<u64>,
    marks: Vec<(Savepoint, BTreeMap<Key, Value>)>,
}

impl Live {
    fn saw(&mut self, key: Key, value: Value) {
        if self.own.get(&key) != Some(&value) {
            self.entry.reads.push((key, value));
        }
    }
}

fn next(counter: &AtomicU64) -> u64 {
    counter.fetch_add(1, Ordering::SeqCst)
}

impl Recorder {
    fn new(db: Db, shape: Shape, rng: &mut Rng) -> Recorder {
        let trees = [db.raw_tree("0").unwrap(), db.raw_tree("1").unwrap()];
        let mut first = BTreeMap::new();
        let values = AtomicU64::new(1);
        for (tree, key) in (0..2).flat_map(|tree| (0..shape.keys).map(move |key| (tree, key))) {
            let value = rng.bool().then(|| next(&values));
            if let Some(value) = value {
                trees[usize::from(tree)].put(&name(key), &encode(value, 1)).unwrap();
            }
            first.insert((tree, key), value);
        }
        let (numbers, entries) = (AtomicU64::new(1), Mutex::default());
        Recorder { db, trees, shape, numbers, values, entries, first }
    }

    fn key(&self, rng: &mut Rng) -> Key {
        (rng.u8(..2), rng.u8(..self.shape.keys))
    }

    fn tree(&self, key: Key) -> &RawTree {
        &self.trees[usize::from(key.0)]
    }

    /// A new value and its bytes.
    fn value(&self, key: Key, rng: &mut Rng) -> (u64, Vec<u8>) {
        let words = self.shape.words[usize::from(key.0)];
        let value = next(&self.values);
        (value, encode(value, if rng.u8(..6) == 0 { words } else { 1 }))
    }

    fn begin(&self, thread: usize) -> Live {
        let tx = self.db.begin_with(self.shape.options).unwrap();
        let entry = Entry { thread, ..Entry::default() };
        Live { tx, entry, own: BTreeMap::new(), all: Vec::new(), marks: Vec::new() }
    }

    /// Something drawn in a transaction.
    fn step(&self, live: &mut Live, rng: &mut Rng) -> Result<(), Error> {
        let key = self.key(rng);
        let tree = self.tree(key);
        match rng.u8(..20) {
            0..8 => {
                let value = live.tx.get_with(tree, &name(key.1), decode)?;
                live.saw(key, value);
            }
            8..13 => {
                let (value, bytes) = self.value(key, rng);
                // It may be there from now on even if the call fails: nobody is to see it.
                live.all.push(value);
                live.tx.put(tree, &name(key.1), &bytes)?;
                live.own.insert(key, Some(value));
            }
            13..15 => {
                if live.tx.delete(tree, &name(key.1))? {
                    live.own.insert(key, None);
                } else {
                    live.saw(key, None);
                }
            }
            15..18 => self.scan(live, key, rng)?,
            18 => live.marks.push((live.tx.savepoint().unwrap(), live.own.clone())),
            _ if !live.marks.is_empty() => {
                live.marks.truncate(rng.usize(..live.marks.len()) + 1);
                let (savepoint, own) = live.marks.last().unwrap();
                live.tx.rollback_to(savepoint)?;
                live.own = own.clone();
            }
            _ => {}
        }
        Ok(())
    }

    fn scan(&self, live: &mut Live, from: Key, rng: &mut Rng) -> Result<(), Error> {
        let end = rng.u8(from.1..=self.shape.keys);
        let (lower, upper) = (name(from.1), name(end));
        if from.1 == end {
            return Ok(());
        }
        let mut rows = BTreeMap::new();
        let each = |key: &[u8], value: &[u8]| {
            rows.insert(key[0], decode(value));
            true
        };
        let range = &lower[..]..&upper[..];
        if rng.bool() {
            live.tx.scan(self.tree(from), range, each)?;
        } else {
            live.tx.scan_back(self.tree(from), range, each)?;
        }
        for key in from.1..end {
            live.saw((from.0, key), rows.get(&key).copied());
        }
        Ok(())
    }

    /// Ends a transaction.
    fn end(&self, live: Live, commits: bool) {
        let Live { tx, mut entry, own, all, .. } = live;
        let is_left = |value: &u64| own.values().any(|own| *own == Some(*value));
        entry.passing = all.into_iter().filter(|value| !is_left(value)).collect();
        entry.writes = own;
        entry.number = Some(next(&self.numbers));
        entry.committed = commits;
        if commits {
            tx.commit().unwrap();
        } else {
            tx.abort().unwrap();
        }
        self.entries.lock().unwrap().push(entry);
    }

    /// A call outside transactions.
    fn call(&self, thread: usize, rng: &mut Rng) -> Result<(), Error> {
        let key = self.key(rng);
        let (tree, name) = (self.tree(key), name(key.1));
        let mut entry = Entry { thread, committed: true, ..Entry::default() };
        match rng.u8(..4) {
            0 => entry.reads.push((key, tree.get_with(&name, decode)?)),
            1 => {
                let value = next(&self.values);
                let replace = |bytes: &mut [u8]| {
                    let old = decode(bytes);
                    bytes.copy_from_slice(&encode(value, bytes.len() / 8));
                    (old, next(&self.numbers))
                };
                // Those of the other tree may be large.
                let key = (0, key.1);
                let Some((old, number)) = self.tree(key).update_in_place(&name, replace)? else {
                    return Ok(());
                };
                entry.reads.push((key, Some(old)));
                entry.number = Some(number);
                entry.writes.insert(key, Some(value));
            }
            2 => {
                let Some(old) = tree.get(&name)? else { return Ok(()) };
                let new = (rng.u8(..3) > 0).then(|| self.value(key, rng));
                let bytes = new.as_ref().map(|(_, bytes)| bytes);
                if !tree.compare_and_swap(&name, Some(&old), bytes)? {
                    return Ok(());
                }
                entry.replaced = Some(decode(&old));
                entry.writes.insert(key, new.map(|(value, _)| value));
            }
            _ => match tree.remove(&name)? {
                Some(old) => {
                    entry.replaced = Some(decode(&old));
                    entry.writes.insert(key, None);
                }
                None => entry.reads.push((key, None)),
            },
        }
        self.entries.lock().unwrap().push(entry);
        Ok(())
    }

    /// A snapshot, and the place of what it reads among the entries: where it begins.
    fn begin_snapshot(&self, thread: usize) -> (Snapshot, usize) {
        let snapshot = self.db.snapshot().unwrap();
        let mut entries = self.entries.lock().unwrap();
        entries.push(Entry { thread, committed: true, ..Entry::default() });
        (snapshot, entries.len() - 1)
    }

    /// Reads one key, or several at once, from a snapshot.
    fn read_snapshot(&self, (snapshot, at): &(Snapshot, usize), rng: &mut Rng) {
        let from = self.key(rng);
        let tree = self.tree(from);
        let mut reads = Vec::new();
        if rng.bool() {
            reads.push((from, snapshot.get_with(tree, &name(from.1), decode).unwrap()));
        } else {
            let range = snapshot.range(tree, &name(from.1)[..]..).unwrap();
            let key = |(key, value): (Vec<u8>, Vec<u8>)| (key[0], decode(&value));
            let rows: BTreeMap<_, _> = if rng.bool() {
                range.map(|row| key(row.unwrap())).collect()
            } else {
                range.rev().map(|row| key(row.unwrap())).collect()
            };
            let keys = from.1..self.shape.keys;
            reads.extend(keys.map(|key| ((from.0, key), rows.get(&key).copied())));
        }
        self.entries.lock().unwrap()[*at].reads.extend(reads);
    }

    /// Begins a snapshot, reads from one, or ends it.
    fn some_snapshot(&self, thread: usize, open: &mut Option<(Snapshot, usize)>, rng: &mut Rng) {
        match open {
            None if rng.u8(..4) == 0 => *open = Some(self.begin_snapshot(thread)),
            Some(_) if rng.u8(..6) == 0 => *open = None,
            Some(snapshot) if rng.bool() => self.read_snapshot(snapshot, rng),
            _ => {}
        }
    }

    /// Runs one thread's transactions.
    fn work(&self, thread: usize, transactions: u32, mut rng: Rng) {
        let mut snapshot = None;
        for _ in 0..transactions {
            self.some_snapshot(thread, &mut snapshot, &mut rng);
            if rng.u8(..4) == 0 {
                let done = self.call(thread, &mut rng);
                assert!(done.as_ref().err().is_none_or(Error::is_retriable), "{done:?}");
                continue;
            }
            let mut live = self.begin(thread);
            let mut done = Ok(());
            for _ in 0..rng.u8(1..9) {
                done = done.and_then(|()| self.step(&mut live, &mut rng));
                if let Some(snapshot) = &snapshot
                    && rng.u8(..4) == 0
                {
                    self.read_snapshot(snapshot, &mut rng);
                }
                if rng.bool() {
                    std::thread::yield_now();
                }
            }
            assert!(done.as_ref().err().is_none_or(Error::is_retriable), "{done:?}");
            self.end(live, done.is_ok() && rng.u8(..8) > 0);
        }
    }

    /// Several transactions at a time, a step here and a step there.
    fn interleave(&self, slots: usize, steps: u32, rng: &mut Rng) {
        let mut all: Vec<Option<Live>> = (0..slots).map(|_| None).collect();
        // As if threads of their own, since transactions of the slots begin before they do.
        let mut snapshots = [None, None, None];
        for _ in 0..steps {
            if self.shape.snapshots {
                let which = rng.usize(..snapshots.len());
                self.some_snapshot(slots + which, &mut snapshots[which], rng);
            }
            let slot = rng.usize(..slots);
            let mut live = all[slot].take().unwrap_or_else(|| self.begin(slot));
            let done = self.step(&mut live, rng);
            let waits = |error: &Error| error.is_retriable() || error.is_own_transaction();
            assert!(done.as_ref().err().is_none_or(waits), "{done:?}");
            if done.is_ok() && rng.u8(..6) > 0 {
                all[slot] = Some(live);
            } else {
                self.end(live, done.is_ok() && rng.u8(..8) > 0);
            }
        }
        all.into_iter().flatten().for_each(|live| self.end(live, true));
    }

    fn history(self) -> History {
        let mut last = BTreeMap::new();
        for (number, tree) in (0..).zip(&self.trees) {
            for entry in tree.iter() {
                let (key, value) = entry.unwrap();
                last.insert((number, key[0]), Some(decode(&value)));
            }
            assert!(tree.check().unwrap().violations.is_empty());
        }
        History { first: self.first, entries: self.entries.into_inner().unwrap(), last }
    }
}

fn store(locks: bool, is_logged: bool) -> Db {
    let options = Options::new().memory(16 << 20).page_size(512).lab(|lab| lab.locks = locks);
    let options = options.durability(Durability::Async).lab(|lab| lab.tiny_pages = true);
    if !is_logged {
        return Db::in_memory(options).unwrap();
    }
    let device = || Arc::new(MemoryDevice::new());
    Db::open_on_devices(device(), device(), options).unwrap()
}

fn judge(seed: u64, history: &History) {
    let anomalies = history.anomalies();
    let involved = |anomaly: &Anomaly| match anomaly {
        Anomaly::Circle(all) => all.clone(),
        Anomaly::AbortedRead { reader, writer } | Anomaly::IntermediateRead { reader, writer } => {
            vec![*reader, *writer]
        }
        Anomaly::UnknownValue { reader, .. } | Anomaly::MissedValue { reader, .. } => vec![*reader],
        _ => vec![],
    };
    let all = anomalies.iter().flat_map(involved);
    let all: Vec<_> = all.filter_map(|at| Some((at, history.entries.get(at)?))).collect();
    assert!(anomalies.is_empty(), "seed {seed}: {anomalies:#?} of {all:#?}");
}

/// A history of threads.
fn of_threads(seed: u64, isolation: Isolation) -> History {
    let mut rng = Rng::with_seed(seed);
    let options = TxnOptions::default().durability(Durability::Async).isolation(isolation);
    let shape = Shape { keys: rng.u8(5..=20), words: [10, 600], options, snapshots: true };
    let recorder = Recorder::new(store(true, seed.is_multiple_of(2)), shape, &mut rng);
    let (threads, transactions) = (rng.usize(2..=4), rng.u32(10..=50));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (recorder, rng) = (&recorder, rng.fork());
            scope.spawn(move || recorder.work(thread, transactions, rng));
        }
    });
    recorder.history()
}

/// A history of one thread.
fn of_turns(seed: u64, isolation: Isolation, locks: bool) -> History {
    let mut rng = Rng::with_seed(seed);
    let options = TxnOptions::default().durability(Durability::Async).isolation(isolation);
    let options = options.wait_max(Duration::from_micros(200));
    // Without locks, undo of a part of a value in a leaf would tear what others made of it.
    let words = if locks { [10, 600] } else { [30, 30] };
    let shape = Shape { keys: rng.u8(5..=20), words, options, snapshots: locks };
    let recorder = Recorder::new(store(locks, seed.is_multiple_of(2)), shape, &mut rng);
    recorder.interleave(rng.usize(2..=4), 300, &mut rng);
    recorder.history()
}

#[test]
fn histories_of_threads_are_serializable() {
    for seed in 0..40 {
        judge(seed, &of_threads(seed, Isolation::Serializable));
    }
}

#[test]
fn histories_of_transactions_by_turns_are_serializable() {
    for seed in 0..40 {
        let history = of_turns(seed, Isolation::Serializable, true);
        let committed = history.entries.iter().filter(|entry| entry.committed).count();
        assert!(committed > 10, "seed {seed}: {committed}");
        judge(seed, &history);
    }
}

#[test]
fn where_reads_need_not_repeat_there_are_circles_and_nothing_worse() {
    let mut circles = 0;
    for seed in 0..40 {
        let mut history = of_turns(seed, Isolation::ReadCommitted, true);
        let mut anomalies = history.anomalies();
        anomalies.retain(|anomaly| !matches!(anomaly, Anomaly::Circle(_)));
        assert!(anomalies.is_empty(), "seed {seed}: {anomalies:#?}");
        circles += usize::from(!history.anomalies().is_empty());
        // Not for the sake of the checker: without what they read, the same are serializable.
        history.entries.iter_mut().for_each(|entry| entry.reads.clear());
        judge(seed, &history);
    }
    assert!(circles > 10, "{circles}");
}

#[test]
fn histories_of_threads_that_read_what_is_committed_read_nothing_else() {
    for seed in 0..20 {
        let mut anomalies = of_threads(seed, Isolation::ReadCommitted).anomalies();
        anomalies.retain(|anomaly| !matches!(anomaly, Anomaly::Circle(_)));
        assert!(anomalies.is_empty(), "seed {seed}: {anomalies:#?}");
    }
}

#[test]
fn without_locks_all_anomalies_are_found() {
    let mut found = [0; 4];
    for seed in 0..40 {
        for anomaly in of_turns(seed, Isolation::Serializable, false).anomalies() {
            match anomaly {
                Anomaly::Circle(_) => found[0] += 1,
                Anomaly::AbortedRead { .. } => found[1] += 1,
                Anomaly::IntermediateRead { .. } => found[2] += 1,
                Anomaly::WrongEnd { .. } => found[3] += 1,
                _ => {}
            }
        }
    }
    assert!(found.iter().all(|count| *count > 10), "{found:?}");
}
