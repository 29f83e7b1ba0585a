//! Values read in place while pages are loaded and evicted.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use millpond::internals::pool::PoolError;
use millpond::internals::store::{Combination, LatchingMode};
use millpond::{Db, Error, Options};
use millpond_base::rounds::rounds;

use super::any_store::{TestStore, TestTree, open, policy_of, with_strategies};
use super::{assert_sound, place, tiny};

fn options(combination: Combination, options: Options) -> Options {
    with_strategies(options, combination, policy_of(combination))
}

fn is_held<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Pool(PoolError::Held { .. })))
}

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

/// Runs an update in place whose closure needs the leaf of the update. A `Db` counts that leaf as
/// borrowed, so the closure gets an error. A `BTree` does not, so the thread borrows another page.
fn borrowing<R>(db: &dyn TestStore, other: &dyn TestTree, update: impl FnOnce() -> R) -> R {
    if db.combination() == Combination::SwizzledAny {
        return update();
    }
    other.put(&key(3), b"borrowed").unwrap();
    other.read(&key(3), |_| update()).unwrap().unwrap()
}

/// Reads, writes to another tree and a write to the same leaf, all inside closures, in a pool that
/// thrashes.
fn look(db: &dyn TestStore, tree: &dyn TestTree, random: &mut fastrand::Rng) {
    const KEYS: u32 = 250;
    let (other, mut model) = (db.tree("other").unwrap(), BTreeMap::new());
    for n in 0..KEYS {
        // One in 40 is stored in overflow pages.
        let len = if n % 40 == 7 { 900 } else { random.usize(20..60) };
        model.insert(n, vec![n as u8; len]);
        tree.put(&key(n), &model[&n]).unwrap();
    }
    for outer in (0..KEYS).step_by(41) {
        let seen = tree.read(&key(outer), |bytes| {
            for _ in 0..rounds(10, 50) {
                let n = random.u32(..KEYS);
                let inner = tree.read(&key(n), |inner| inner == &model[&n][..]);
                // A large value in the same leaf may have to be loaded, which the latch forbids.
                assert!(matches!(inner, Ok(Some(true))) || is_held(inner));
                other.put(&key(n), bytes).unwrap();
            }
            assert_eq!(tree.get(&key(KEYS)).unwrap(), None);
            bytes == &model[&outer][..]
        });
        assert_eq!(seen.unwrap(), Some(true));
        assert_eq!(tree.read(&key(outer + KEYS), |_| ()).unwrap(), None);
    }
    let home = tree.read(&key(3), |_| tree.put(&key(3), b"new"));
    assert!(is_held(home.unwrap().unwrap()));
    let update = || tree.update_in_place(&key(3), |_| is_held(tree.read(&key(3), |_| ())));
    assert_eq!(borrowing(db, &*other, update).unwrap(), Some(true));
    for (n, value) in &model {
        assert_eq!(tree.read(&key(*n), <[u8]>::to_vec).unwrap().as_ref(), Some(value));
    }
    assert_eq!(tree.check().unwrap().violations, []);
    assert_eq!(other.check().unwrap().violations, []);
}

#[test]
fn closures_of_every_combination_see_what_a_map_holds_while_the_pool_thrashes() {
    for combination in Combination::ALL {
        let (_dir, path) = place();
        let db = open(&path, options(*combination, tiny(24))).unwrap();
        assert_eq!(db.combination(), *combination);
        let mut random = fastrand::Rng::with_seed(*combination as u64);
        look(&*db, &*db.tree("tree").unwrap(), &mut random);
        let evictions = db.stats().evictions;
        assert!(evictions > rounds(60, 200), "{combination:?}: {evictions}");
        db.close().unwrap();
        assert_sound(&path);
    }
}

/// Bytes of a value: four fit into a leaf.
const LEN: usize = 800;
/// Four times the pool's size.
const KEYS: u32 = 400;

/// A value of key `n`: the key, and the rest filled with `fill`.
fn filled(n: u32, fill: u8) -> Vec<u8> {
    let mut value = key(n).to_vec();
    value.resize(LEN, fill);
    value
}

/// Returns the byte that fills a value of key `n`.
fn fill(n: u32, bytes: &[u8]) -> u8 {
    let is_whole = bytes.len() == LEN && bytes[..4] == key(n);
    assert!(is_whole && bytes[4..].iter().all(|b| *b == bytes[4]), "a torn value of key {n}");
    bytes[4]
}

/// Reads values in place, each for a while, until `stop` is set. Returns how many it found.
fn watch(tree: &dyn TestTree, stop: &AtomicBool, seed: u64) -> u64 {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut looks = 0;
    while !stop.load(Ordering::Relaxed) || looks < 60 {
        let n = random.u32(..KEYS);
        let found = tree.read(&key(n), |bytes| {
            let first = fill(n, bytes);
            for _ in 0..random.u32(..6) {
                std::thread::yield_now();
                assert_eq!(fill(n, bytes), first, "a value changed under a closure");
            }
        });
        looks += u64::from(found.unwrap().is_some());
    }
    looks
}

/// Changes values of its own in all ways. Returns what they are in the end.
fn change(tree: &dyn TestTree, me: u32, writers: u32) -> BTreeMap<u32, u8> {
    let mut random = fastrand::Rng::with_seed(u64::from(me) + 9);
    let mut mine: BTreeMap<u32, u8> =
        (0..KEYS).filter(|n| n % writers == me).map(|n| (n, n as u8)).collect();
    for round in 0..250u32 {
        let (n, byte) = (random.u32(..KEYS / writers) * writers + me, round as u8);
        match random.u8(..6) {
            0 => assert_eq!(tree.delete(&key(n)).unwrap(), mine.remove(&n).is_some()),
            1 | 2 => {
                let done = tree.update_in_place(&key(n), |bytes| bytes[4..].fill(byte)).unwrap();
                assert_eq!(done.is_some(), mine.contains_key(&n));
                mine.entry(n).and_modify(|b| *b = byte);
            }
            _ => {
                assert_eq!(tree.put(&key(n), &filled(n, byte)).unwrap(), mine.contains_key(&n));
                mine.insert(n, byte);
            }
        }
    }
    mine
}

fn closures_look_while_others_write(options: Options) {
    const WRITERS: u32 = 2;
    let (_dir, path) = place();
    let options = options.lab(|lab| lab.frames = Some(24));
    let db = open(&path, options).unwrap();
    let (tree, stop) = (db.tree("t").unwrap(), AtomicBool::new(false));
    for n in 0..KEYS {
        tree.put(&key(n), &filled(n, n as u8)).unwrap();
    }
    let mut all = BTreeMap::new();
    std::thread::scope(|scope| {
        let watchers = [1, 2].map(|seed| {
            let (tree, stop) = (&*tree, &stop);
            scope.spawn(move || watch(tree, stop, seed))
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|me| {
                let tree = &*tree;
                scope.spawn(move || change(tree, me, WRITERS))
            })
            .collect();
        writers.into_iter().for_each(|writer| all.append(&mut writer.join().unwrap()));
        stop.store(true, Ordering::Relaxed);
        for watcher in watchers {
            assert!(watcher.join().unwrap() >= 60);
        }
    });
    assert!(db.stats().evictions > 150, "the pool thrashes: {}", db.stats().evictions);
    for n in 0..KEYS {
        assert_eq!(tree.read(&key(n), |bytes| fill(n, bytes)).unwrap(), all.get(&n).copied());
    }
    assert_eq!(tree.check().unwrap().violations, []);
    drop(tree);
    db.close().unwrap();
    assert_sound(&path);
}

#[test]
fn no_closure_sees_a_torn_value_or_a_change_and_no_write_is_lost() {
    for combination in Combination::ALL {
        if combination.latching() == LatchingMode::None {
            continue;
        }
        closures_look_while_others_write(options(*combination, Options::new().page_size(4096)));
    }
}

#[test]
fn with_evictor_threads_and_epochs_closures_see_no_torn_value_either() {
    let options =
        Options::new().page_size(4096).lab(|lab| lab.eviction = "threads(2)".parse().unwrap());
    let options = options.lab(|lab| lab.reclamation = "epoch".parse().unwrap());
    closures_look_while_others_write(options);
}

#[test]
fn two_threads_that_write_to_the_leaf_that_the_other_reads_get_an_error_and_do_not_hang() {
    let db = Db::in_memory(Options::new().page_size(4096).memory(16 << 20)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    for n in 0..100 {
        tree.put(&key(n), &[1; LEN]).unwrap();
    }
    let (both, refused) = (Barrier::new(2), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for (own, others) in [(0, 99), (99, 0)] {
            let (tree, both, refused) = (&tree, &both, &refused);
            scope.spawn(move || {
                let result = tree.read(&key(own), |_| {
                    both.wait();
                    tree.put(&key(others), &[2; LEN])
                });
                match result.unwrap().unwrap() {
                    Ok(existed) => assert!(existed),
                    error => {
                        assert!(is_held(error));
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert!(refused.load(Ordering::Relaxed) >= 1);
    assert!(tree.put(&key(0), b"").unwrap() && tree.put(&key(99), b"").unwrap());
}

#[test]
fn a_closure_cannot_drop_its_tree_or_close_its_store_but_may_drop_both_handles() {
    let (_dir, path) = place();
    let db = Db::open(&path, tiny(24)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    tree.put(b"k", b"value").unwrap();
    tree.read(b"k", |bytes| {
        assert!(matches!(db.drop_tree("t"), Err(Error::TreeInUse { .. })));
        assert!(matches!(db.clone().close(), Err(Error::InUse { .. })));
        assert_eq!(db.trees().unwrap().len(), 1);
        db.raw_tree("u").unwrap().put(b"l", bytes).unwrap();
        db.drop_tree("u").unwrap();
        db.flush().unwrap();
        assert_eq!(tree.check().unwrap().violations, []);
        assert!(is_held(tree.clear()));
        assert_eq!(bytes, b"value");
    })
    .unwrap();
    let copy = tree.clone();
    let seen = tree.read(b"k", |bytes| {
        drop((db, copy));
        bytes.to_vec()
    });
    assert_eq!(seen.unwrap().unwrap(), b"value");
    drop(tree);
    assert_sound(&path);
}

#[test]
fn a_hash_index_hands_out_values_in_place_as_a_tree_does() {
    let db = Db::in_memory(tiny(32)).unwrap();
    let index = db.hash_index::<u32, Vec<u8>>("h").unwrap();
    let value = |n: u32| vec![n as u8; (n % 50) as usize];
    for n in 0..500u32 {
        index.insert(&n, &value(n)).unwrap();
    }
    for n in 0..500 {
        let seen = index.read(&n, |bytes| {
            let inner = index.get(&(n / 2)).unwrap();
            inner == Some(value(n / 2)) && *bytes == value(n)
        });
        assert_eq!(seen.unwrap(), Some(true));
    }
    assert!(db.stats().evictions > 300);
    assert_eq!(index.read(&500, |_| ()).unwrap(), None);
    let home = index.read(&7, |_| index.insert(&7, &vec![1; 7]));
    assert!(is_held(home.unwrap().unwrap()));
    let home = index.raw().update_in_place(&7u32.to_be_bytes(), |_| index.get(&8).is_ok());
    assert!(home.unwrap().is_some());
    assert!(index.insert(&7, &vec![1; 7]).unwrap().is_some());
}
