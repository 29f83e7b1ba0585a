//! The verbs that remove entries one after the other, and inserts in order, by fingers: against a
//! map, with savepoints, snapshots and other writers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use millpond::{Db, Durability, Error, Options, RawTree, TransactOptions, Txn, TxnOptions};
use millpond_device::MemoryDevice;
use proptest::prelude::*;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn store() -> Db {
    let options = Options::new().memory(16 << 20).page_size(4096);
    let device = || Arc::new(MemoryDevice::new());
    Db::open_on_devices(device(), device(), options).unwrap()
}

fn key(number: u16) -> Vec<u8> {
    format!("k{number:05}").into_bytes()
}

fn value(number: u16, len: usize) -> Vec<u8> {
    (0..len).map(|i| (usize::from(number) * 7 + i) as u8).collect()
}

#[derive(Clone, Debug)]
enum Step {
    /// A number of keys in order, from one on.
    Ascending(u16, u16, usize),
    Put(u16, usize),
    Delete(u16),
    Pop(bool, u8),
    /// The keys from one on that are divisible, of which a number is taken.
    Extract(u16, u16, usize),
    /// The keys that are not divisible stay.
    Retain(u16),
    /// All are looked at, and as many are changed ahead of the range.
    Scan(u8),
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 0usize..60, 1 => 60usize..900, 1 => 2000usize..6000]
}

fn step() -> impl Strategy<Value = Step> {
    let number = || 0u16..400;
    prop_oneof![
        2 => (number(), 1u16..120, 0usize..120).prop_map(|(a, n, l)| Step::Ascending(a, n, l)),
        3 => (number(), length()).prop_map(|(n, l)| Step::Put(n, l)),
        2 => number().prop_map(Step::Delete),
        4 => (any::<bool>(), 1u8..40).prop_map(|(first, n)| Step::Pop(first, n)),
        3 => (number(), 1u16..6, 0usize..90).prop_map(|(a, d, n)| Step::Extract(a, d, n)),
        1 => (2u16..6).prop_map(Step::Retain),
        1 => (0u8..9).prop_map(Step::Scan),
    ]
}

fn is_divisible(key: &[u8], by: u16) -> bool {
    let number: u16 = String::from_utf8_lossy(&key[1..]).parse().unwrap();
    number.is_multiple_of(by)
}

/// Does a step in a tree or in a transaction's, and in the map.
macro_rules! take {
    ($tree:expr, $map:expr, $step:expr) => {{
        let (tree, map): (_, &mut Map) = ($tree, $map);
        match $step {
            Step::Ascending(from, count, len) => {
                for n in *from..from + count {
                    let value = value(n, *len);
                    assert_eq!(
                        tree.put(&key(n), &value).unwrap(),
                        map.insert(key(n), value).is_some()
                    );
                }
            }
            Step::Put(n, len) => {
                let new = value(*n, *len);
                assert_eq!(tree.insert(&key(*n), &new).unwrap(), map.insert(key(*n), new));
            }
            Step::Delete(n) => {
                assert_eq!(tree.delete(&key(*n)).unwrap(), map.remove(&key(*n)).is_some());
            }
            Step::Pop(first, count) => {
                for _ in 0..*count {
                    let (popped, wanted) = match first {
                        true => (tree.pop_first(), map.pop_first()),
                        false => (tree.pop_last(), map.pop_last()),
                    };
                    assert_eq!(popped.unwrap(), wanted);
                }
            }
            Step::Extract(from, by, count) => {
                let from = key(*from);
                let chosen = |key: &Vec<u8>, _: &Vec<u8>| is_divisible(key, *by);
                let gone: Result<Vec<_>, Error> =
                    tree.extract_if(from.clone().., chosen).take(*count).collect();
                let wanted: Vec<_> = map
                    .range(from..)
                    .filter(|(key, _)| is_divisible(key, *by))
                    .take(*count)
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect();
                wanted.iter().for_each(|(key, _)| _ = map.remove(key));
                assert_eq!(gone.unwrap(), wanted);
            }
            Step::Retain(by) => {
                let before = map.len();
                map.retain(|key, value| !is_divisible(key, *by) || value.len() > 50);
                let stays =
                    |key: &Vec<u8>, value: &Vec<u8>| !is_divisible(key, *by) || value.len() > 50;
                let removed = tree.retain(stays).unwrap();
                assert_eq!(removed, (before - map.len()) as u64);
            }
            Step::Scan(changes) => {
                assert_eq!(tree.len().unwrap(), map.len() as u64);
                let mut seen = 0u16;
                for row in tree.iter() {
                    let (at, found) = row.unwrap();
                    assert_eq!(map.get(&at), Some(&found));
                    seen += 1;
                    if seen <= u16::from(*changes) {
                        // Behind the range: what is there is seen as before.
                        tree.put(b"a", &[1]).unwrap();
                        map.insert(b"a".to_vec(), vec![1]);
                        tree.delete(b"a").unwrap();
                        map.remove(&b"a"[..]);
                    }
                }
                assert_eq!(usize::from(seen), map.len());
            }
        }
    }};
}

fn rows(tree: &RawTree) -> Map {
    tree.iter().map(Result::unwrap).collect()
}

fn rows_in(tree: &RawTree<&Txn>) -> Map {
    tree.iter().map(Result::unwrap).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: millpond_base::rounds::rounds(40, 600) as u32,
        ..ProptestConfig::default()
    })]

    #[test]
    fn each_verb_that_removes_gives_what_a_map_gives(
        before in proptest::collection::vec(step(), 0..12),
        inside in proptest::collection::vec((step(), any::<u8>()), 1..25),
        ending in any::<bool>(),
    ) {
        let db = store();
        let tree = db.raw_tree("t").unwrap();
        let mut map = Map::new();
        take!(&tree, &mut map, &Step::Ascending(0, 300, 40));
        for step in &before {
            take!(&tree, &mut map, step);
        }
        let committed = map.clone();
        let early = db.snapshot().unwrap();
        let mut tx = db.begin().unwrap();
        let mut saved = Vec::new();
        let mut late = None;
        for (at, (step, chance)) in inside.iter().enumerate() {
            take!(tx.tree(&tree), &mut map, step);
            match chance % 6 {
                0 => saved.push((tx.savepoint().unwrap(), map.clone())),
                1 if !saved.is_empty() => {
                    let (savepoint, then) = saved.pop().unwrap();
                    tx.rollback_to(&savepoint).unwrap();
                    map = then;
                    prop_assert_eq!(rows_in(&tx.tree(&tree)), map.clone());
                }
                2 if late.is_none() && at > 2 => late = Some(db.snapshot().unwrap()),
                _ => {}
            }
        }
        prop_assert_eq!(rows_in(&tx.tree(&tree)), map.clone());
        for snapshot in [Some(&early), late.as_ref()].into_iter().flatten() {
            let seen: Map = snapshot.tree(&tree).iter().map(Result::unwrap).collect();
            prop_assert_eq!(&seen, &committed);
        }
        if ending { tx.commit().unwrap() } else { tx.abort().unwrap() }
        let after = if ending { map } else { committed.clone() };
        prop_assert_eq!(rows(&tree), after);
        let seen: Map = early.tree(&tree).iter().map(Result::unwrap).collect();
        prop_assert_eq!(seen, committed);
        drop((early, late));
        prop_assert!(db.check().unwrap().is_sound());
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: millpond_base::rounds::rounds(20, 400) as u32,
        ..ProptestConfig::default()
    })]

    #[test]
    fn fingers_lead_to_no_page_that_has_left_memory(
        steps in proptest::collection::vec((step(), any::<bool>()), 1..30),
    ) {
        let options = Options::new().page_size(512).lab(|lab| {
            lab.tiny_pages = true;
            lab.frames = Some(24);
            lab.batch = Some(2);
        });
        let db = Db::in_memory(options).unwrap();
        let (tree, other) = (db.raw_tree("t").unwrap(), db.raw_tree("other").unwrap());
        let [mut map, mut beside] = [Map::new(), Map::new()];
        take!(&other, &mut beside, &Step::Ascending(0, 200, 40));
        for (step, alone) in &steps {
            let tx = db.begin().unwrap();
            match alone {
                true => take!(&tree, &mut map, step),
                false => take!(tx.tree(&tree), &mut map, step),
            }
            // Its pages take the frames of the first tree's.
            prop_assert_eq!(other.len().unwrap(), 200);
            if !alone {
                take!(tx.tree(&tree), &mut map, &Step::Pop(true, 3));
                take!(tx.tree(&other), &mut beside, &Step::Put(7, 40));
                take!(tx.tree(&tree), &mut map, &Step::Ascending(300, 30, 20));
            }
            tx.commit().unwrap();
        }
        prop_assert_eq!(rows(&tree), map);
        prop_assert_eq!(rows(&other), beside);
        prop_assert!(db.stats().evictions > 0);
        prop_assert!(db.check().unwrap().is_sound());
    }
}

#[test]
fn a_transaction_that_has_locked_the_whole_tree_goes_on_as_before() {
    // More keys than an owner locks one by one.
    const ROWS: u16 = 12_000;
    let db = store();
    let tree = db.raw_tree("t").unwrap();
    let (mut map, mut tx) = (Map::new(), db.begin().unwrap());
    take!(tx.tree(&tree), &mut map, &Step::Ascending(0, ROWS, 20));
    let (savepoint, then) = (tx.savepoint().unwrap(), map.clone());
    for round in 0..40 {
        take!(tx.tree(&tree), &mut map, &Step::Pop(round % 2 == 0, 60));
        take!(tx.tree(&tree), &mut map, &Step::Put(round * 290, 5000));
        take!(tx.tree(&tree), &mut map, &Step::Extract(round * 300, 3, 70));
        take!(tx.tree(&tree), &mut map, &Step::Ascending(ROWS + round * 10, 10, 30));
    }
    take!(tx.tree(&tree), &mut map, &Step::Retain(2));
    take!(tx.tree(&tree), &mut map, &Step::Scan(2));
    assert_eq!(rows_in(&tx.tree(&tree)), map);
    tx.rollback_to(&savepoint).unwrap();
    assert_eq!(rows_in(&tx.tree(&tree)), then);
    map = then;
    take!(tx.tree(&tree), &mut map, &Step::Pop(false, 200));
    tx.commit().unwrap();
    assert_eq!(rows(&tree), map);
    assert!(db.check().unwrap().is_sound());
}

#[test]
fn a_range_from_both_ends_meets_where_it_is_locked_as_a_whole() {
    let db = store();
    let tree = db.raw_tree("t").unwrap();
    let mut map = Map::new();
    take!(&tree, &mut map, &Step::Ascending(0, 600, 30));
    let tx = db.begin().unwrap();
    let inside = tx.tree(&tree);
    // Counting locks all of it.
    assert_eq!(inside.len().unwrap(), 600);
    let mut random = fastrand::Rng::with_seed(9);
    for _ in 0..30 {
        let (mut range, mut wanted) = (inside.iter(), map.iter());
        for _ in 0..random.usize(..400) {
            wanted.next();
            range.next().unwrap().unwrap();
        }
        for _ in 0..700 {
            let own =
                |entry: Option<(&Vec<u8>, &Vec<u8>)>| entry.map(|(k, v)| (k.clone(), v.clone()));
            let (got, want) = match random.u8(..4) {
                0 => (range.next_back(), wanted.next_back()),
                _ => (range.next(), wanted.next()),
            };
            assert_eq!(got.map(Result::unwrap), own(want));
        }
    }
}

fn brief() -> TxnOptions {
    TxnOptions::default().wait_max(Duration::from_millis(1))
}

#[test]
fn who_removes_by_a_closure_keeps_writers_from_what_it_has_seen_and_from_nothing_else() {
    let db = store();
    let tree = db.raw_tree("t").unwrap();
    let mut map = Map::new();
    take!(&tree, &mut map, &Step::Ascending(0, 500, 30));
    // By another thread: this one would not wait for its own transaction.
    let put = |n: u16| {
        let put = || {
            let tx = db.begin_with(brief()).unwrap();
            let done = tx.tree(&tree).put(&key(n), b"new");
            if done.is_ok() { tx.commit().map(|()| true) } else { done }
        };
        std::thread::scope(|scope| scope.spawn(put).join().unwrap())
    };
    let tx = db.begin().unwrap();
    let inside = tx.tree(&tree);
    let gone: Result<Vec<_>, Error> =
        inside.extract_if(.., |key, _| is_divisible(key, 2)).take(20).collect();
    assert_eq!(gone.unwrap().len(), 20);
    assert!(put(0).unwrap_err().is_timeout() && put(37).unwrap_err().is_timeout());
    assert!(put(499).unwrap());
    tx.abort().unwrap();
    assert!(put(0).unwrap());
    let tx = db.begin().unwrap();
    let removed = tx.tree(&tree).retain(|key, _| !is_divisible(key, 100)).unwrap();
    assert_eq!(removed, 5);
    // It has seen all there is, and all that is not.
    assert!(put(499).unwrap_err().is_timeout() && put(7000).unwrap_err().is_timeout());
    tx.commit().unwrap();
    assert!(put(7000).is_ok());
}

const JOBS: u64 = 1500;
const WORKERS: u64 = 4;

/// Moves jobs from one tree to the other, in each of the ways; returns how many.
fn moved(db: &Db, [todo, done]: [&RawTree; 2], random: &mut fastrand::Rng) -> Result<u64, Error> {
    let txn = TxnOptions::default().durability(Durability::Async);
    let options = TransactOptions::default().txn(txn);
    let (how, chance) = (random.u8(..5), random.u8(..));
    db.transact_with(options, |tx| {
        let (from, to) = (tx.tree(todo), tx.tree(done));
        let rows: Vec<_> = match how {
            0 => from.pop_first()?.into_iter().collect(),
            1 => from.pop_last()?.into_iter().collect(),
            2 => {
                let is_chosen = |byte: &u8| byte % 3 == chance % 3;
                let chosen = |key: &Vec<u8>, _: &Vec<u8>| key.last().is_some_and(is_chosen);
                from.extract_if(.., chosen).take(5).collect::<Result<_, _>>()?
            }
            3 => {
                let mut rows = Vec::new();
                from.retain(|key, value| {
                    let goes = key.last().is_some_and(|b| b % 16 == chance % 16) && rows.len() < 8;
                    if goes {
                        rows.push((key.to_vec(), value.to_vec()));
                    }
                    !goes
                })?;
                rows
            }
            _ => {
                let first = from.pop_first()?;
                first.into_iter().chain(from.pop_first()?).chain(from.pop_last()?).collect()
            }
        };
        for (key, value) in &rows {
            assert_eq!(key, value, "what is popped is an entry as it was put");
            assert!(to.insert_if_absent(key, value)?, "no job is done twice");
        }
        if chance % 8 == 0 && !rows.is_empty() {
            return Err(Error::ReadOnly);
        }
        Ok(rows.len() as u64)
    })
}

#[test]
fn jobs_that_many_move_between_trees_are_in_one_of_them_at_each_moment() {
    let db = store();
    let (todo, done) = (db.raw_tree("todo").unwrap(), db.raw_tree("done").unwrap());
    let job = |number: u64| number.to_be_bytes();
    (0..JOBS).for_each(|n| _ = todo.put(&job(n), &job(n)).unwrap());
    let left = AtomicU64::new(JOBS);
    std::thread::scope(|scope| {
        for seed in 0..WORKERS {
            let (db, trees, left) = (&db, [&todo, &done], &left);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                while left.load(Ordering::Relaxed) > 0 {
                    match moved(db, trees, &mut random) {
                        Ok(count) => _ = left.fetch_sub(count, Ordering::Relaxed),
                        Err(Error::ReadOnly) => {}
                        Err(error) => assert!(error.is_retriable(), "{error}"),
                    }
                }
            });
        }
        while left.load(Ordering::Relaxed) > 0 {
            let snapshot = db.snapshot().unwrap();
            let [todo, done] = [&todo, &done].map(|tree| snapshot.tree(tree));
            let mut all: Vec<_> =
                todo.iter().chain(done.iter()).map(|row| row.unwrap().0).collect();
            all.sort();
            assert!(
                all.iter().map(Vec::as_slice).eq((0..JOBS).map(job).collect::<Vec<_>>().iter())
            );
        }
    });
    assert!(todo.is_empty().unwrap());
    assert_eq!(done.len().unwrap(), JOBS);
    assert!(db.check().unwrap().is_sound());
}

#[test]
fn calls_outside_transactions_remove_each_entry_once_while_others_write() {
    // Room for all versions that writers put while a slow range has a snapshot of its own.
    let db = Db::in_memory(Options::new().memory(256 << 20)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let job = |number: u64| number.to_be_bytes();
    let out = std::sync::Mutex::new(Vec::new());
    let took = |key: Vec<u8>| out.lock().unwrap().push(key);
    std::thread::scope(|scope| {
        let (tree, took) = (&tree, &took);
        let adders: Vec<_> = (0..2u64)
            .map(|adder| {
                scope.spawn(move || {
                    (0..JOBS).for_each(|n| _ = tree.put(&job(2 * n + adder), &job(n)).unwrap());
                })
            })
            .collect();
        let is_over = || adders.iter().all(|adder| adder.is_finished());
        loop {
            let was_over = is_over();
            for row in tree.extract_if(.., |key, _| key[7] % 3 == 0).take(40) {
                took(row.unwrap().0);
            }
            tree.retain(|key, _| {
                let goes = key[7] % 3 == 1;
                if goes {
                    // It may be shown again, if it is changed meanwhile: nobody changes it here.
                    took(key.to_vec());
                }
                !goes
            })
            .unwrap();
            for first in [true, false] {
                let popped = if first { tree.pop_first() } else { tree.pop_last() };
                popped.unwrap().into_iter().for_each(|(key, _)| took(key));
            }
            if was_over && tree.is_empty().unwrap() {
                break;
            }
        }
    });
    let mut out = out.into_inner().unwrap();
    out.sort();
    assert!(out.iter().map(Vec::as_slice).eq((0..2 * JOBS).map(job).collect::<Vec<_>>().iter()));
    assert!(db.check().unwrap().is_sound());
}
