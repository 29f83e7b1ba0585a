//! Several keys looked up at once: the same as one after the other, whatever is in memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use millpond::{Db, Options};
use millpond_base::rounds::rounds;

use super::{place, tiny};

/// Keys drawn from few, some of them more than once and some that are not there.
fn some_keys(random: &mut fastrand::Rng, count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|_| format!("key {:04}", random.u32(..3000)).into_bytes()).collect()
}

#[test]
fn keys_looked_up_at_once_are_what_a_map_holds_while_the_pool_thrashes() {
    let (_dir, path) = place();
    let db = Db::open(&path, tiny(24)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let mut random = fastrand::Rng::with_seed(3);
    let mut map = BTreeMap::new();
    for _ in 0..rounds(60, 600) {
        for key in some_keys(&mut random, 40) {
            if random.u8(..4) == 0 {
                assert_eq!(tree.remove(&key).unwrap(), map.remove(&key));
                continue;
            }
            // One in twenty is in overflow pages.
            let len = if random.u8(..20) == 0 { random.usize(..2000) } else { random.usize(..40) };
            let value = vec![random.u8(..); len];
            tree.put(&key, &value).unwrap();
            map.insert(key, value);
        }
        let count = [0, 1, 2, 16, 17, 64, 65, 300][random.usize(..8)];
        let keys = some_keys(&mut random, count);
        let expected: Vec<_> = keys.iter().map(|key| map.get(key).cloned()).collect();
        assert_eq!(tree.get_many(keys.iter().map(Vec::as_slice)).unwrap(), expected);
        let tx = db.begin().unwrap();
        let in_tx = tx.tree(&tree).get_many(keys.iter().map(Vec::as_slice)).unwrap();
        assert_eq!(in_tx, expected);
    }
    assert!(db.stats().reads > 1000, "{} reads: the pool does not thrash", db.stats().reads);
}

#[test]
fn what_is_not_committed_is_not_among_them() {
    let db = Db::in_memory(Options::new().memory(16 << 20)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let keys: Vec<[u8; 2]> = (0..500u16).map(u16::to_be_bytes).collect();
    for key in &keys {
        tree.put(key, &0u32.to_le_bytes()).unwrap();
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let tx = db.begin().unwrap();
                for key in keys.iter().step_by(7) {
                    // What is aborted is odd.
                    tx.tree(&tree).put(key, &u32::to_le_bytes(round)).unwrap();
                }
                if round % 2 == 0 { tx.commit().unwrap() } else { tx.abort().unwrap() }
            }
        });
        for _ in 0..rounds(200, 2000) {
            let found = tree.get_many(keys.iter().map(|key| &key[..])).unwrap();
            assert_eq!(found.len(), keys.len());
            for value in found {
                let value = u32::from_le_bytes(value.unwrap().try_into().unwrap());
                assert_eq!(value % 2, 0, "it was aborted");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn each_of_them_is_counted_and_no_page_is_referenced_more_often() {
    let db = Db::in_memory(Options::new().memory(64 << 20)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let key = |row: u32| row.wrapping_mul(2_654_435_761).to_be_bytes();
    for row in 0..50_000 {
        tree.put(&key(row), &[1; 60]).unwrap();
    }
    let keys: Vec<[u8; 4]> = (0..1000).map(|row| key(row * 31)).collect();
    let during = |work: &dyn Fn()| {
        let before = db.stats();
        work();
        let stats = db.stats().since(&before);
        (stats.gets, stats.leaf_references, stats.references)
    };
    let single = during(&|| keys.iter().for_each(|key| drop(tree.get(key).unwrap())));
    let many = during(&|| drop(tree.get_many(keys.iter().map(|key| &key[..])).unwrap()));
    assert_eq!((many.0, many.1), (single.0, single.1));
    assert!(many.2 <= single.2 && many.2 > many.1, "{many:?}, one after the other {single:?}");
}
