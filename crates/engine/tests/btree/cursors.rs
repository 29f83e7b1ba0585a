//! Cursors and ranges against a `BTreeMap`.

use std::ops::Bound;

use millpond::internals::btree::{BTree, Cursor};
use millpond::internals::pool::Pages;

use crate::btree::harness::{Make, key, on_each, value};
use crate::btree::model::{Map, bounds, in_bounds, some_key};

on_each!(
    a_cursor_walks_as_the_model_does,
    a_range_gives_every_entry_once_from_both_ends,
    a_cursor_goes_on_where_the_tree_changed_around_it,
    a_cursor_neither_repeats_nor_skips_where_leaves_share_and_merge,
    large_values_come_out_of_cursors_whole,
);

fn filled<P: Pages>(make: Make<P>, page: usize, seed: u64, rows: usize) -> (BTree<P>, Map) {
    let tree = BTree::create(make(page), 1).unwrap();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut map = Map::new();
    for _ in 0..rows {
        let k = key(&mut random, tree.limits().key_max);
        let len = random.usize(..40);
        let v = value(&mut random, len);
        tree.upsert(&k, &v).unwrap();
        map.insert(k, v);
    }
    (tree, map)
}

fn at<P: Pages>(cursor: &Cursor<'_, P>) -> Option<(Vec<u8>, Vec<u8>)> {
    cursor.is_valid().then(|| (cursor.key().to_vec(), cursor.value().to_vec()))
}

fn owned(entry: Option<(&Vec<u8>, &Vec<u8>)>) -> Option<(Vec<u8>, Vec<u8>)> {
    entry.map(|(k, v)| (k.clone(), v.clone()))
}

fn a_cursor_walks_as_the_model_does<P: Pages>(make: Make<P>) {
    for (seed, rows) in [(1, 0), (2, 1), (3, 40), (4, 1500)] {
        let (tree, map) = filled(make, 512, seed, rows);
        let mut random = fastrand::Rng::with_seed(seed);
        let mut cursor = tree.cursor();
        let mut model: Option<Vec<u8>> = None;
        for _ in 0..3000 {
            let k = some_key(&mut random, &map, 64);
            let expected = match (random.u32(..12), &model) {
                (0, _) => {
                    cursor.first().unwrap();
                    map.iter().next()
                }
                (1, _) => {
                    cursor.last().unwrap();
                    map.iter().next_back()
                }
                (2, _) => {
                    cursor.seek(&k).unwrap();
                    map.range(k..).next()
                }
                (3, _) => {
                    cursor.seek_for_prev(&k).unwrap();
                    map.range(..=k).next_back()
                }
                (4..=7, Some(now)) => {
                    cursor.next().unwrap();
                    map.range::<[u8], _>((Bound::Excluded(now.as_slice()), Bound::Unbounded)).next()
                }
                (_, Some(now)) => {
                    cursor.prev().unwrap();
                    map.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(now.as_slice())))
                        .next_back()
                }
                (_, None) => {
                    assert!(!cursor.next().unwrap() && !cursor.prev().unwrap());
                    None
                }
            };
            assert_eq!(at(&cursor), owned(expected));
            model = expected.map(|(k, _)| k.clone());
        }
    }
}

fn a_range_gives_every_entry_once_from_both_ends<P: Pages>(make: Make<P>) {
    let (tree, map) = filled(make, 512, 7, 1500);
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..400 {
        let (a, b) = (some_key(&mut random, &map, 64), some_key(&mut random, &map, 64));
        let (a, b) = if a <= b { (a, b) } else { (b, a) };
        let within = bounds(&mut random, &a, &b);
        let mut model: std::collections::VecDeque<_> =
            map.iter().filter(|(k, _)| in_bounds(k, within)).collect();
        let mut range = tree.range(within.0, within.1);
        let ends = random.u32(..3);
        loop {
            let front = ends == 0 || (ends == 1 && random.bool());
            let (got, expected) = if front {
                (range.next().unwrap(), model.pop_front())
            } else {
                (range.next_back().unwrap(), model.pop_back())
            };
            assert_eq!(got, expected.map(|(k, v)| (k.as_slice(), v.as_slice())));
            if expected.is_none() {
                break;
            }
        }
        assert_eq!(range.next().unwrap(), None);
        assert_eq!(range.next_back().unwrap(), None);
        let keys = map.keys().filter(|k| in_bounds(k, within)).count();
        let mut cursor = tree.cursor_in(within.0, within.1).keys_only().as_scan();
        let mut walked = 0;
        let mut more = cursor.last().unwrap();
        while more {
            walked += 1;
            more = cursor.prev().unwrap();
        }
        assert_eq!(walked, keys);
    }
}

fn a_cursor_goes_on_where_the_tree_changed_around_it<P: Pages>(make: Make<P>) {
    let tree = BTree::create(make(512), 1).unwrap();
    for i in 0..2000u32 {
        tree.insert(&(i * 2).to_be_bytes(), b"even").unwrap();
    }
    let mut cursor = tree.cursor();
    let mut seen = Vec::new();
    let mut more = cursor.first().unwrap();
    while more {
        let n = u32::from_be_bytes(cursor.key().try_into().unwrap());
        if n.is_multiple_of(2) {
            seen.push(n);
            // Leaves split before and behind the cursor, and merge behind it.
            if n % 10 == 0 {
                tree.insert(&(n + 1).to_be_bytes(), &[7; 60]).unwrap();
                tree.insert(&(n + 401).to_be_bytes(), &[7; 60]).unwrap();
                if let Some(behind) = n.checked_sub(200) {
                    tree.delete_range(Bound::Unbounded, Bound::Excluded(&behind.to_be_bytes()))
                        .unwrap();
                }
            }
        }
        more = cursor.next().unwrap();
    }
    assert_eq!(seen, (0..2000u32).map(|i| i * 2).collect::<Vec<_>>());
    assert_eq!(tree.check().unwrap().violations, []);
}

/// Entries are moved from leaf to leaf around a cursor that walks, upwards and downwards.
fn a_cursor_neither_repeats_nor_skips_where_leaves_share_and_merge<P: Pages>(make: Make<P>) {
    let tree = BTree::create(make(512), 1).unwrap();
    for i in 0..800u32 {
        tree.insert(&(i * 8).to_be_bytes(), b"stays").unwrap();
    }
    let mut random = fastrand::Rng::with_seed(14);
    for turn in 0..8 {
        let up = turn % 2 == 0;
        let (mut last, mut stayed) = (None, 0);
        let mut cursor = tree.cursor();
        let mut more = if up { cursor.first() } else { cursor.last() }.unwrap();
        while more {
            let n = u32::from_be_bytes(cursor.key().try_into().unwrap());
            assert!(last.is_none_or(|l| if up { l < n } else { l > n }), "{last:?} {n} up={up}");
            last = Some(n);
            stayed += u32::from(n.is_multiple_of(8));
            for _ in 0..3 {
                let at = (n + random.u32(..600)).saturating_sub(300) | 1;
                match turn % 4 < 2 {
                    true => drop(tree.upsert(&at.to_be_bytes(), &[7; 24]).unwrap()),
                    false => drop(tree.remove(&at.to_be_bytes()).unwrap()),
                }
            }
            more = if up { cursor.next() } else { cursor.prev() }.unwrap();
        }
        assert_eq!(stayed, 800);
    }
    let counters = tree.counters();
    assert!(counters.shifts > 20 && counters.leaf_merges > 5, "{counters:?}");
    assert_eq!(tree.check().unwrap().violations, []);
}

fn large_values_come_out_of_cursors_whole<P: Pages>(make: Make<P>) {
    let tree = BTree::create(make(512), 1).unwrap();
    let mut random = fastrand::Rng::with_seed(3);
    let mut map = Map::new();
    for i in 0..200u32 {
        let len = if i % 3 == 0 { 900 + i as usize } else { 10 };
        let v = value(&mut random, len);
        tree.insert(&i.to_be_bytes(), &v).unwrap();
        map.insert(i.to_be_bytes().to_vec(), v);
    }
    let mut cursor = tree.cursor();
    let mut more = cursor.last().unwrap();
    for (k, v) in map.iter().rev() {
        assert!(more);
        assert_eq!((cursor.key(), cursor.value()), (k.as_slice(), v.as_slice()));
        more = cursor.prev().unwrap();
    }
    assert!(!more);
    let mut keys = tree.cursor().keys_only();
    assert!(keys.first().unwrap());
    assert_eq!((keys.value().len(), keys.value_len()), (0, 900));
}
