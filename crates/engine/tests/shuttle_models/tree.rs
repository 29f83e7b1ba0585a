//! The tree's protocol under schedules that shuttle draws: two or three threads insert, remove,
//! look up and scan in a tree of tiny pages, over a pool that holds a part of it.
//!
//! Each of these mistakes, built in, made it fail:
//! - a reader does not look at its parent again once it has the child;
//! - a version does not grow, or not the parent's when a child is evicted;
//! - children that moved to another node keep their old parent;
//! - a page goes before its children, or while it is being written;
//! - the thread that claims a loaded page ends its in-flight I/O;
//! - a cursor shows all of a leaf that merged behind it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::schedules::{check, seed};
use crate::storage::MemoryStorage;
use millpond::internals::btree::{self, BTree};
use millpond::internals::pool::{
    EvictionMode, HostedPolicy, Latched, Optimistic, Pool, PoolOptions, PoolStrategy, State,
    Workers,
};
use millpond::internals::stats::counters::Counter;
use millpond::internals::store::combinations::Compiled as Made;
use millpond_base::Reason;
use millpond_policies::config::Spec;
use millpond_policies::contract::{PolicySpec, Shape};
use millpond_policies::policy::{LeanEvict, Random};

const PAGE: usize = 512;
const FRAMES: u32 = 10;
/// Schedules of each setting.
const SCHEDULES: usize = 200;
/// Keys are below this.
const KEYS: u8 = 36;
/// The number of neighbours with the same owner: about a leaf.
const BLOCK: u8 = 4;
const OPERATIONS: usize = 6;

type TouchOf<P> = <P as PolicySpec>::Hook;
type Tree<M> = BTree<Pool<M>>;
type Map = BTreeMap<u8, Vec<u8>>;

/// Neighbours share all but the last byte, so that separators are long and inner pages few-armed.
fn key(n: u8) -> Vec<u8> {
    let mut key = vec![n / 3; 40];
    key.push(n);
    key
}

fn number(key: &[u8]) -> u8 {
    assert_eq!(key.len(), 41, "a key that nobody wrote");
    key[40]
}

/// A value for key `n`, which it begins with; all its other bytes are alike.
fn value(random: &mut fastrand::Rng, n: u8) -> Vec<u8> {
    // Some leave the leaf for pages of their own.
    let len = if random.u8(..10) == 0 { 700 } else { random.usize(20..40) };
    let mut value = vec![random.u8(..); len];
    value[0] = n;
    value
}

/// Counts of events in all schedules of a test: a model in which nothing happens proves nothing.
#[derive(Default)]
struct Seen {
    splits: AtomicU64,
    merges: AtomicU64,
    evictions: AtomicU64,
    restarts: AtomicU64,
}

/// Everything that is there, in order, and what the caller's own keys must be.
fn scan<M: PoolStrategy>(tree: &Tree<M>, owned: u8, owners: u8, mine: &Map, up: bool) {
    let mut cursor = tree.cursor();
    let mut seen = Map::new();
    let mut last = None;
    let mut more = if up { cursor.first() } else { cursor.last() }.unwrap();
    while more {
        let n = number(cursor.key());
        assert!(last.is_none_or(|l| if up { l < n } else { l > n }), "{n} after {last:?}");
        last = Some(n);
        seen.insert(n, cursor.value().to_vec());
        more = if up { cursor.next() } else { cursor.prev() }.unwrap();
    }
    let fixed: Vec<u8> = seen.keys().copied().filter(|n| is_fixed(*n)).collect();
    let expected: Vec<u8> = (0..KEYS).filter(|n| is_fixed(*n)).collect();
    assert_eq!(fixed, expected, "a scan lost a key that nobody removed, or found it twice");
    seen.retain(|n, _| is_owned(*n, owned, owners));
    assert_eq!(&seen, mine, "a scan does not see what its thread wrote");
}

/// Keys that nobody changes.
fn is_fixed(n: u8) -> bool {
    n % (BLOCK * 4) < BLOCK
}

fn is_owned(n: u8, owner: u8, owners: u8) -> bool {
    !is_fixed(n) && n / BLOCK % owners == owner
}

/// Looks at anybody's value where it lies, for some steps of the others: it is one that somebody
/// wrote for this key, and stays so.
fn look<M: PoolStrategy>(tree: &Tree<M>, n: u8) {
    let found = tree.read(&key(n), |bytes| {
        let seen = bytes.to_vec();
        let is_whole = seen[0] == n && seen[1..].iter().all(|byte| *byte == seen[1]);
        assert!(is_whole, "no value of key {n}: {seen:?}");
        for _ in 0..3 {
            shuttle::thread::yield_now();
            assert_eq!(bytes, seen, "a value changed under a closure");
        }
    });
    assert!(found.unwrap().is_some() || !is_fixed(n));
}

/// Runs one thread's operations on keys of its own, whose values it knows.
fn work<M: PoolStrategy>(tree: &Tree<M>, me: u8, threads: u8, mut mine: Map, seed: u64) -> Map {
    let mut random = fastrand::Rng::with_seed(seed);
    let keys: Vec<u8> = (0..KEYS).filter(|n| is_owned(*n, me, threads)).collect();
    for _ in 0..OPERATIONS {
        let n = keys[random.usize(..keys.len())];
        let block: Vec<u8> = keys.iter().copied().filter(|k| k / BLOCK == n / BLOCK).collect();
        match random.u8(..10) {
            // Leaves split or overflow.
            0 | 1 => block.into_iter().for_each(|n| {
                let v = value(&mut random, n);
                assert_eq!(tree.upsert(&key(n), &v).unwrap(), mine.insert(n, v).is_some());
            }),
            // A leaf gets empty and goes into its neighbour.
            2..=4 => block.into_iter().for_each(|n| {
                assert_eq!(tree.remove(&key(n)).unwrap(), mine.remove(&n).is_some());
            }),
            5 => scan(tree, me, threads, &mine, random.bool()),
            6 => {
                let count = tree.count().unwrap();
                assert!(count <= u64::from(KEYS), "{count} of {KEYS} keys");
            }
            7 | 8 => look(tree, random.u8(..KEYS)),
            _ => assert_eq!(tree.get_owned(&key(n)).unwrap().as_ref(), mine.get(&n)),
        }
    }
    mine
}

fn built<M: PoolStrategy>(pool: &Arc<Pool<M>>, random: &mut fastrand::Rng) -> (Tree<M>, Map) {
    for (page_type, kind) in btree::KINDS {
        pool.register(page_type, kind);
    }
    let tree = BTree::create(pool.clone(), 1).unwrap();
    let mut map = Map::new();
    for n in 0..KEYS {
        let v = value(random, n);
        tree.insert(&key(n), &v).unwrap();
        map.insert(n, v);
    }
    (tree, map)
}

fn body<M: PoolStrategy>(
    evictors: EvictionMode,
    threads: u8,
    hosted: HostedPolicy<M::Hook>,
    seen: &Seen,
) {
    let mut random = fastrand::Rng::with_seed(seed());
    fastrand::seed(random.u64(..));
    let storage = Arc::new(MemoryStorage::new(PAGE));
    let options = PoolOptions { batch: 2, evictors, nodes: Some(1), ..PoolOptions::new(FRAMES) };
    let pool = Arc::new(Pool::<M>::open(options, storage.clone(), hosted).unwrap());
    let workers = Workers::start(pool.clone()).unwrap();
    let (tree, mut map) = built(&pool, &mut random);
    let tree = Arc::new(tree);
    let owners: Vec<_> = (0..threads)
        .map(|me| {
            let (tree, seed) = (tree.clone(), random.u64(..));
            let mut mine = map.clone();
            mine.retain(|n, _| is_owned(*n, me, threads));
            shuttle::thread::spawn(move || work(&tree, me, threads, mine, seed))
        })
        .collect();
    map.retain(|n, _| is_fixed(*n));
    owners.into_iter().for_each(|owner| map.append(&mut owner.join().unwrap()));
    // The writer is still there: without it the few clean frames would have to do for a path.
    let pages = same(&tree, &map);
    drop(workers);
    let counts = tree.counters();
    seen.splits.fetch_add(counts.leaf_splits + counts.inner_splits, Ordering::Relaxed);
    seen.merges.fetch_add(counts.leaf_merges + counts.inner_merges, Ordering::Relaxed);
    seen.evictions.fetch_add(pool.counters().get(Counter::Evictions), Ordering::Relaxed);
    seen.restarts.fetch_add(pool.counters().get(Counter::Restarts), Ordering::Relaxed);
    pool.flush(Reason::Recov).unwrap();
    assert_eq!(pool.evict_all().unwrap(), 0, "everything can be evicted");
    assert_eq!(pool.census().get(&State::Free), Some(&pool.frames()), "no frame is lost");
    pool.ids().return_all().unwrap();
    assert_eq!(storage.taken(), pages, "no page id is lost");
}

/// The tree is sound and holds this; how many pages it has.
fn same<M: PoolStrategy>(tree: &Tree<M>, map: &Map) -> u64 {
    let report = tree.check().unwrap();
    assert_eq!(report.violations, []);
    let mut rows = map.iter();
    tree.scan(Bound::Unbounded, Bound::Unbounded, |key, value| {
        assert_eq!(rows.next().map(|(n, v)| (*n, v.as_slice())), Some((number(key), value)));
        true
    })
    .unwrap();
    assert_eq!(rows.next(), None);
    report.pages.len() as u64
}

fn all_ways<M: PoolStrategy>(policy_host: fn() -> HostedPolicy<M::Hook>) {
    let seen: &'static Seen = Box::leak(Box::default());
    for (evictors, threads) in [(EvictionMode::Worker, 3), (EvictionMode::threads(1), 2)] {
        let body = move || body::<M>(evictors, threads, policy_host(), seen);
        check(SCHEDULES, body);
    }
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let all = [&seen.splits, &seen.merges, &seen.evictions, &seen.restarts].map(of);
    assert!(all.iter().all(|count| *count > SCHEDULES as u64), "{all:?}");
}

fn lean() -> HostedPolicy<TouchOf<LeanEvict>> {
    let shape = Shape { frames: FRAMES, pages_dense: None, seed: 3 };
    HostedPolicy::exact::<LeanEvict>(&Spec::parse("lean-evict:cooling=40%").unwrap(), &shape)
        .unwrap()
}

fn random() -> HostedPolicy<TouchOf<Random>> {
    let shape = Shape { frames: FRAMES, pages_dense: None, seed: 3 };
    HostedPolicy::open::<Random>(&Spec::parse("random").unwrap(), &shape).unwrap()
}

#[test]
fn a_tree_over_swips_and_optimistic_latches_survives_every_schedule_drawn() {
    all_ways::<Made<Optimistic, TouchOf<LeanEvict>, true>>(lean);
}

#[test]
fn a_tree_over_swips_and_shared_latches_survives_every_schedule_drawn() {
    all_ways::<Made<Latched, TouchOf<LeanEvict>, true>>(lean);
}

#[test]
fn a_tree_over_a_page_table_and_optimistic_latches_survives_every_schedule_drawn() {
    all_ways::<Made<Optimistic, TouchOf<Random>, false>>(random);
}
