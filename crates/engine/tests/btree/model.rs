//! Every operation against a `BTreeMap`, on tiny pages, so that nodes split and merge all the time.

use std::collections::BTreeMap;
use std::ops::Bound;

use millpond::internals::btree::BTree;
use millpond::internals::pool::Pages;

use crate::btree::harness::{Make, key, on_each, value};

pub type Map = BTreeMap<Vec<u8>, Vec<u8>>;

on_each!(
    every_operation_does_what_the_model_does,
    keys_in_any_order_come_and_go,
    pages_of_every_size_hold_the_same,
);

/// A key that may be there.
pub fn some_key(random: &mut fastrand::Rng, map: &Map, max: usize) -> Vec<u8> {
    if random.bool()
        && let Some((found, _)) = map.range(key(random, max)..).next()
    {
        return found.clone();
    }
    key(random, max)
}

fn some_value(random: &mut fastrand::Rng, page: usize) -> Vec<u8> {
    let len = match random.u32(..20) {
        0 => random.usize(..page * 3),
        1 => random.usize(..page / 4),
        2 => 0,
        _ => random.usize(..40),
    };
    value(random, len)
}

pub fn same<P: Pages>(tree: &BTree<P>, map: &Map) {
    let report = tree.check().unwrap();
    assert_eq!(report.violations, []);
    assert_eq!(report.entries, map.len() as u64);
    let mut rows = map.iter();
    tree.scan(Bound::Unbounded, Bound::Unbounded, |key, value| {
        assert_eq!(rows.next().map(|(k, v)| (k.as_slice(), v.as_slice())), Some((key, value)));
        true
    })
    .unwrap();
    assert_eq!(rows.next(), None);
    for (key, value) in map {
        let found = tree.get_owned(key).unwrap();
        assert_eq!(found.as_ref(), Some(value), "{key:?}");
    }
    assert_eq!(tree.count().unwrap(), map.len() as u64);
    let stats = tree.stats().unwrap();
    assert_eq!(stats.entries(), map.len() as u64);
    assert_eq!(stats.key_bytes, map.keys().map(|k| k.len() as u64).sum::<u64>());
    assert_eq!(stats.value_bytes, map.values().map(|v| v.len() as u64).sum::<u64>());
    assert_eq!(report.pages.len() as u64 * tree.pages().page_size() as u64, stats.total_bytes);
}

/// Looks `keys` up at once.
pub fn same_together<P: Pages>(tree: &BTree<P>, map: &Map, keys: &[Vec<u8>]) {
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let mut found = vec![None; keys.len()];
    tree.get_many(&keys, &mut found).unwrap();
    for (key, value) in keys.iter().zip(&found) {
        assert_eq!(value.as_ref(), map.get(*key), "{key:?}");
    }
}

pub fn bounds<'k>(
    random: &mut fastrand::Rng,
    a: &'k [u8],
    b: &'k [u8],
) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
    let one = |random: &mut fastrand::Rng, key: &'k [u8]| match random.u32(..5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(key),
        _ => Bound::Excluded(key),
    };
    (one(random, a), one(random, b))
}

pub fn in_bounds(key: &[u8], (start, end): (Bound<&[u8]>, Bound<&[u8]>)) -> bool {
    let low = match start {
        Bound::Included(s) => key >= s,
        Bound::Excluded(s) => key > s,
        Bound::Unbounded => true,
    };
    let high = match end {
        Bound::Included(e) => key <= e,
        Bound::Excluded(e) => key < e,
        Bound::Unbounded => true,
    };
    low && high
}

fn step<P: Pages>(tree: &BTree<P>, map: &mut Map, random: &mut fastrand::Rng, page: usize) {
    let k = some_key(random, map, tree.limits().key_max);
    let v = some_value(random, page);
    match random.u32(..25) {
        24 => {
            let count = random.usize(..100);
            let keys: Vec<_> =
                (0..count).map(|_| some_key(random, map, tree.limits().key_max)).collect();
            same_together(tree, map, &keys);
        }
        0..=4 => {
            let fresh = !map.contains_key(&k);
            assert_eq!(tree.insert(&k, &v).unwrap(), fresh);
            map.entry(k).or_insert(v);
        }
        5..=7 => {
            assert_eq!(tree.upsert(&k, &v).unwrap(), map.insert(k, v).is_some());
        }
        8 => assert_eq!(tree.upsert_returning(&k, &v).unwrap(), map.insert(k, v)),
        9 => {
            let there = map.contains_key(&k);
            assert_eq!(tree.replace(&k, &v).unwrap(), there);
            if there {
                map.insert(k, v);
            }
        }
        10..=14 => assert_eq!(tree.remove(&k).unwrap(), map.remove(&k).is_some()),
        15 => assert_eq!(tree.remove_returning(&k).unwrap(), map.remove(&k)),
        16 => {
            let changed = tree.update_in_place(&k, |bytes| {
                bytes.reverse();
                bytes.len()
            });
            let expected = map.get_mut(&k).map(|bytes| {
                bytes.reverse();
                bytes.len()
            });
            assert_eq!(changed.unwrap(), expected);
        }
        17..=19 => swap(tree, map, random, k, v),
        20 => assert!(tree.compact(5).is_ok()),
        21 if random.u32(..10) == 0 => {
            let other = some_key(random, map, 64);
            let (a, b) = if k <= other { (&k, &other) } else { (&other, &k) };
            let range = bounds(random, a, b);
            let before = map.len();
            map.retain(|key, _| !in_bounds(key, range));
            let removed = tree.delete_range(range.0, range.1).unwrap();
            assert_eq!(removed, (before - map.len()) as u64);
        }
        _ => {
            assert_eq!(tree.get_owned(&k).unwrap().as_ref(), map.get(&k));
            assert_eq!(tree.contains(&k).unwrap(), map.contains_key(&k));
        }
    }
}

fn swap<P: Pages>(
    tree: &BTree<P>,
    map: &mut Map,
    random: &mut fastrand::Rng,
    k: Vec<u8>,
    v: Vec<u8>,
) {
    let expected = match random.u32(..4) {
        0 => None,
        1 => Some(v.clone()),
        _ => map.get(&k).cloned(),
    };
    let new = (random.u32(..3) > 0).then_some(v);
    let equal = map.get(&k) == expected.as_ref();
    let swapped = tree.compare_and_swap(&k, expected.as_deref(), new.as_deref()).unwrap();
    assert_eq!(swapped, equal);
    if equal {
        match new {
            Some(new) => map.insert(k, new),
            None => map.remove(&k),
        };
    }
}

fn every_operation_does_what_the_model_does<P: Pages>(make: Make<P>) {
    for seed in 0..6 {
        let page = [512, 512, 1024, 4096][seed as usize % 4];
        let tree = BTree::create(make(page), 1).unwrap();
        let mut random = fastrand::Rng::with_seed(seed);
        let mut map = Map::new();
        for i in 0..4000 {
            step(&tree, &mut map, &mut random, page);
            if i % 400 == 0 {
                same(&tree, &map);
            }
        }
        same(&tree, &map);
        assert_eq!(tree.clear().unwrap(), map.len() as u64);
        assert_eq!(tree.stats().unwrap().height(), 1, "seed {seed}");
        tree.destroy().unwrap();
    }
}

fn keys_in_any_order_come_and_go<P: Pages>(make: Make<P>) {
    let mut random = fastrand::Rng::with_seed(5);
    for order in 0..3 {
        let tree = BTree::create(make(512), 1).unwrap();
        let mut keys: Vec<u32> = (0..3000).collect();
        match order {
            0 => {}
            1 => keys.reverse(),
            _ => random.shuffle(&mut keys),
        }
        for k in &keys {
            assert!(tree.insert(&k.to_be_bytes(), &k.to_le_bytes()).unwrap());
        }
        let stats = tree.stats().unwrap();
        assert_eq!(stats.entries(), 3000);
        if order < 2 {
            assert!(stats.levels[0].fill() > 0.9, "{order}: {}", stats.levels[0].fill());
        }
        assert!(tree.counters().leaf_splits > 50);
        random.shuffle(&mut keys);
        for (i, k) in keys.iter().enumerate() {
            assert!(tree.remove(&k.to_be_bytes()).unwrap());
            assert!(!tree.contains(&k.to_be_bytes()).unwrap());
            if let Some(next) = keys.get(i + 1) {
                assert_eq!(
                    tree.get(&next.to_be_bytes(), |v| v.to_vec()).unwrap().unwrap(),
                    next.to_le_bytes()
                );
            }
        }
        assert_eq!((tree.count().unwrap(), tree.stats().unwrap().height()), (0, 1));
        assert!(tree.counters().leaf_merges > 50 && tree.counters().shrunk > 0);
    }
}

fn pages_of_every_size_hold_the_same<P: Pages>(make: Make<P>) {
    for page in [512, 4096, 16384, 65536] {
        let tree = BTree::create(make(page), 1).unwrap();
        let mut random = fastrand::Rng::with_seed(9);
        let mut map = Map::new();
        for _ in 0..600 {
            let mut k = key(&mut random, tree.limits().key_max);
            if random.u32(..4) == 0 {
                let fill = random.u8(..3);
                k.resize(random.usize(..=tree.limits().key_max), fill);
                let last = k.len();
                if last > 0 {
                    k[last - 1] = random.u8(..);
                }
            }
            let room = tree.limits().inline_max.saturating_sub(k.len()) + 2;
            let len = if random.bool() { random.usize(..room) } else { room.min(3) };
            let v = value(&mut random, len);
            tree.upsert(&k, &v).unwrap();
            map.insert(k, v);
        }
        same(&tree, &map);
        let too_long = vec![1; tree.limits().key_max + 1];
        assert!(tree.insert(&too_long, b"").is_err());
        for k in map.keys() {
            assert!(tree.remove(k).unwrap());
        }
        assert_eq!((tree.count().unwrap(), tree.stats().unwrap().height()), (0, 1));
    }
}
