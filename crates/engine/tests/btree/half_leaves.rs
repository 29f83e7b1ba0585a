//! Entries of up to half a leaf: two of them share one, and fences that leave them no room send
//! their values to overflow pages.

use std::ops::Bound;

use millpond::internals::btree::{BTree, BulkOptions, Limits};
use millpond::internals::pool::Pages;

use crate::btree::harness::{Make, latched, on_each, optimistic, value};
use crate::btree::model::{Map, bounds, in_bounds, same};

on_each!(
    two_entries_of_the_most_bytes_share_a_leaf,
    short_keys_between_the_longest_come_and_go_with_large_values,
    a_bulk_load_takes_entries_of_half_a_leaf_between_the_longest_keys,
    a_value_between_two_of_the_longest_fences_goes_to_overflow_pages,
    packed_leaves_of_few_entries_are_as_few_as_can_be,
);

#[test]
fn an_entry_of_half_a_leaf_fits_beside_a_fence_of_its_own_and_one_of_the_longest() {
    for page in [512, 1024, 4096, 8192, 16384, 32768, 65536] {
        let limits = Limits::of(page);
        let slots = if page <= 4096 { 64 } else { 128 };
        // Longer ones would look as if they were in overflow pages.
        assert!(limits.half_max < 0x8000, "{page}");
        assert!(limits.half_max > limits.inline_max, "{page}");
        assert!(2 * (10 + limits.half_max) + 32 <= page - slots, "{page}");
        let mut beyond = 0;
        for key in 0..=limits.key_max {
            let most = (0..limits.half_max + 2)
                .rfind(|value| limits.fits_inline(key, *value as u64))
                .map_or(key, |value| key + value);
            assert!(most >= limits.inline_max, "{page} {key}");
            beyond += usize::from(most > limits.inline_max);
            let fences = if most <= limits.inline_max { limits.key_max } else { key + 1 };
            assert!(10 + most + fences + limits.key_max <= page - slots, "{page} {key}");
        }
        assert!(beyond > limits.key_max / 2, "{page}: {beyond}");
    }
}

fn two_entries_of_the_most_bytes_share_a_leaf<P: Pages>(make: Make<P>) {
    for page in [512, 4096, 16384, 65536] {
        let tree = BTree::create(make(page), 1).unwrap();
        let len = tree.limits().half_max - 8;
        for row in 0..400u64 {
            assert!(tree.insert(&row.to_be_bytes(), &vec![row as u8; len]).unwrap());
        }
        let stats = tree.stats().unwrap();
        assert_eq!(stats.overflow_values, 0, "{page}");
        assert!(stats.levels[0].pages <= 201, "{page}: {}", stats.levels[0].pages);
        let larger = vec![7; len + 1];
        assert!(tree.insert(&400u64.to_be_bytes(), &larger).unwrap());
        assert_eq!(tree.stats().unwrap().overflow_values, 1, "{page}");
        assert_eq!(tree.check().unwrap().violations, []);
    }
}

/// Short keys, and the longest in families: those of one differ at the end only, and are above a
/// short key and below the next.
fn key(random: &mut fastrand::Rng, limits: Limits) -> Vec<u8> {
    let family = random.u8(b'a'..b'f');
    if random.u8(..3) == 0 {
        let tail = random.usize(..3);
        return [&[family][..], &[random.u8(..4), b'~'][..tail]].concat();
    }
    let len = [limits.key_max, limits.key_max, limits.key_max / 2][random.usize(..3)];
    let mut key = vec![family; len];
    key[len - 1] = random.u8(..12);
    key.truncate(len - usize::from(random.u8(..4) == 0));
    key
}

fn large(random: &mut fastrand::Rng, key: &[u8], limits: Limits) -> Vec<u8> {
    let most = limits.half_max.saturating_sub(key.len());
    let len = match random.u8(..8) {
        0 => random.usize(..20),
        1 => limits.inline_max.saturating_sub(key.len()) + random.usize(..3),
        2 => most + random.usize(..3),
        3 => random.usize(..2 * limits.half_max),
        _ => random.usize(most / 2..=most),
    };
    value(random, len)
}

fn short_keys_between_the_longest_come_and_go_with_large_values<P: Pages>(make: Make<P>) {
    let (mut spilled, mut paired) = (0, 0);
    for seed in 0..12 {
        let page = [512, 4096, 1024][seed as usize % 3];
        let mut random = fastrand::Rng::with_seed(seed);
        let tree = BTree::create(make(page), 1).unwrap();
        let limits = tree.limits();
        let mut map = Map::new();
        for step in 0..2500 {
            let k = key(&mut random, limits);
            let removes = [2, 6][(step / 250) % 2];
            match random.u32(..10) {
                n if n < removes => {
                    assert_eq!(tree.remove(&k).unwrap(), map.remove(&k).is_some());
                }
                8 => {
                    tree.compact(3).unwrap();
                }
                9 if random.u8(..20) == 0 => {
                    let other = key(&mut random, limits);
                    let range = bounds(&mut random, &k, &other);
                    if k < other {
                        tree.delete_range(range.0, range.1).unwrap();
                        map.retain(|k, _| !in_bounds(k, range));
                    }
                }
                7 => {
                    let v = large(&mut random, &k, limits);
                    let old = map.get(&k).cloned();
                    let done = tree.compare_and_swap(&k, old.as_deref(), Some(&v)).unwrap();
                    assert!(done);
                    map.insert(k, v);
                }
                _ => {
                    let v = large(&mut random, &k, limits);
                    let old = tree.upsert_returning(&k, &v).unwrap();
                    assert_eq!(old, map.insert(k, v));
                }
            }
            if step % 100 == 0 {
                same(&tree, &map);
                let inline =
                    |(k, v): &(&Vec<u8>, &Vec<u8>)| limits.fits_inline(k.len(), v.len() as u64);
                let expected = map.len() - map.iter().filter(inline).count();
                let found = tree.stats().unwrap().overflow_values as usize;
                assert!(found >= expected, "{found} of {expected}");
                spilled += found - expected;
                paired += map
                    .iter()
                    .filter(inline)
                    .filter(|(k, v)| k.len() + v.len() > limits.inline_max)
                    .count();
            }
        }
        same(&tree, &map);
        tree.delete_range(Bound::Unbounded, Bound::Unbounded).unwrap();
        assert_eq!((tree.count().unwrap(), tree.stats().unwrap().height()), (0, 1));
    }
    assert!(spilled > 0 && paired > spilled, "{spilled} of {paired}");
}

fn a_bulk_load_takes_entries_of_half_a_leaf_between_the_longest_keys<P: Pages>(make: Make<P>) {
    for (seed, fill) in [(1, 1.0), (2, 0.5), (3, 0.8)] {
        let mut random = fastrand::Rng::with_seed(seed);
        for page in [512, 4096] {
            let tree = BTree::create(make(page), 1).unwrap();
            let limits = tree.limits();
            let mut map = Map::new();
            for _ in 0..200 {
                let k = key(&mut random, limits);
                let v = large(&mut random, &k, limits);
                map.insert(k, v);
            }
            let mut options = BulkOptions::default();
            options.fill = fill;
            assert_eq!(tree.bulk_load(&map, options).unwrap(), map.len() as u64);
            same(&tree, &map);
        }
    }
}

/// Surrounds the short key `m` with long ones, most of which are removed again: what fences they
/// leave depends on the seed.
fn surround<P: Pages>(tree: &BTree<P>, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let max = tree.limits().key_max;
    let key = |family: u8, member: u8| [&vec![family; max - 1][..], &[member]].concat();
    tree.insert(b"m", b"small").unwrap();
    let mut keys: Vec<_> =
        (0..12).flat_map(|member| [key(b'a', member), key(b'z', member)]).collect();
    random.shuffle(&mut keys);
    for key in &keys {
        tree.insert(key, b"").unwrap();
    }
    random.shuffle(&mut keys);
    for key in &keys[..random.usize(8..24)] {
        assert!(tree.remove(key).unwrap());
    }
    // Leaves that are empty are merged with neighbours, whose fences become theirs.
    while !tree.compact(50).unwrap() {}
}

fn a_value_between_two_of_the_longest_fences_goes_to_overflow_pages<P: Pages>(make: Make<P>) {
    for page in [4096, 16384] {
        let mut spilled = 0;
        for seed in 0..150 {
            let tree = BTree::create(make(page), 1).unwrap();
            surround(&tree, seed);
            let large = vec![5; tree.limits().half_max - 1];
            assert!(tree.replace(b"m", &large).unwrap());
            spilled += tree.stats().unwrap().overflow_values;
            assert_eq!(tree.get_owned(b"m").unwrap(), Some(large.clone()));
            assert_eq!(tree.check().unwrap().violations, []);
            // Gone and back, and shorter: none of its pages is left.
            assert!(tree.remove(b"m").unwrap());
            assert!(tree.insert(b"m", &large).unwrap());
            assert!(tree.upsert(b"m", b"").unwrap());
            let stats = tree.stats().unwrap();
            assert_eq!((stats.overflow_values, stats.overflow_pages), (0, 0));
        }
        assert!((1..150).contains(&spilled), "{page}: {spilled}");
    }
}

fn packed_leaves_of_few_entries_are_as_few_as_can_be<P: Pages>(make: Make<P>) {
    for (len, of_leaf) in [(1000, 3), (1500, 2), (1900, 2), (700, 5)] {
        let tree = BTree::create(make(4096), 1).unwrap();
        let mut map = Map::new();
        for row in 0..1200u64 {
            let key = row.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
            tree.insert(&key, &vec![row as u8; len]).unwrap();
            map.insert(key.to_vec(), vec![row as u8; len]);
        }
        while !tree.compact(64).unwrap() {}
        same(&tree, &map);
        let pages = tree.stats().unwrap().levels[0].pages;
        let least = 1200u64.div_ceil(of_leaf);
        assert!(pages <= least + least / 50 + 6, "{len}: {pages}, not {least}");
        // There is nothing left to do.
        let before = tree.counters();
        while !tree.compact(64).unwrap() {}
        assert!(before.leaf_merges + 2 >= tree.counters().leaf_merges, "{len}");
        same(&tree, &map);
    }
}

/// Threads that each own a few short keys, among long ones that come and go.
fn many_threads_between_long_keys<P: Pages>(tree: &BTree<P>) {
    let limits = tree.limits();
    std::thread::scope(|scope| {
        for me in 0..4u8 {
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(u64::from(me));
                let mut mine = Map::new();
                for _ in 0..6000 {
                    let mut k = key(&mut random, limits);
                    let last = k.len() - 1;
                    k[last] = k[last] / 4 * 4 + me;
                    if random.u8(..10) < 4 {
                        assert_eq!(tree.remove(&k).unwrap(), mine.remove(&k).is_some());
                    } else {
                        let v = large(&mut random, &k, limits);
                        assert_eq!(tree.upsert(&k, &v).unwrap(), mine.contains_key(&k));
                        mine.insert(k, v);
                    }
                }
                for (k, v) in &mine {
                    assert_eq!(tree.get_owned(k).unwrap().as_ref(), Some(v));
                }
            });
        }
    });
    assert_eq!(tree.check().unwrap().violations, []);
}

#[test]
fn optimistic_threads_write_large_values_between_long_keys() {
    many_threads_between_long_keys(&BTree::create(optimistic(512), 1).unwrap());
    many_threads_between_long_keys(&BTree::create(optimistic(4096), 1).unwrap());
}

#[test]
fn latched_threads_write_large_values_between_long_keys() {
    many_threads_between_long_keys(&BTree::create(latched(512), 1).unwrap());
}
