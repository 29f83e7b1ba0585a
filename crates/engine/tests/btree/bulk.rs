//! Bulk loads.

use millpond::internals::btree::{BTree, BulkError, BulkOptions, WriteError};
use millpond::internals::pool::Pages;

use crate::btree::harness::{Make, key, on_each, value};
use crate::btree::model::{Map, same};

on_each!(
    what_was_loaded_is_there,
    rows_out_of_order_and_full_trees_are_refused,
    a_bulk_load_takes_little_more_than_the_raw_data,
);

fn what_was_loaded_is_there<P: Pages>(make: Make<P>) {
    let mut random = fastrand::Rng::with_seed(11);
    for (page, rows, fill) in
        [(512, 0, 1.0), (512, 1, 1.0), (512, 300, 1.0), (512, 3000, 0.7), (4096, 3000, 0.9)]
    {
        let tree = BTree::create(make(page), 1).unwrap();
        let max = tree.limits().key_max;
        let mut map = Map::new();
        for i in 0..rows {
            let mut k = key(&mut random, max);
            if i % 7 == 0 {
                k.resize(random.usize(..=max), i as u8);
            } else {
                k.extend_from_slice(&(i as u16).to_be_bytes());
                k.truncate(max);
            }
            let len = if i % 50 == 0 { random.usize(..3 * page) } else { random.usize(..60) };
            map.insert(k, value(&mut random, len));
        }
        let mut options = BulkOptions::default();
        options.fill = fill;
        assert_eq!(tree.bulk_load(&map, options).unwrap(), map.len() as u64);
        same(&tree, &map);
        for k in map.keys().cloned().collect::<Vec<_>>() {
            if random.bool() {
                tree.upsert(&k, b"new").unwrap();
                map.insert(k, b"new".to_vec());
            }
        }
        same(&tree, &map);
    }
}

fn rows_out_of_order_and_full_trees_are_refused<P: Pages>(make: Make<P>) {
    let tree = BTree::create(make(512), 1).unwrap();
    let rows = [(b"a", b"1"), (b"c", b"2"), (b"b", b"3")];
    match tree.bulk_load(rows, BulkOptions::default()) {
        Err(BulkError::Order { row: 2, key, previous }) => {
            assert_eq!((key.as_slice(), previous.as_slice()), (&b"b"[..], &b"c"[..]));
        }
        other => panic!("{other:?}"),
    }
    let long = [(vec![7; tree.limits().key_max + 1], b"1")];
    match tree.bulk_load(long, BulkOptions::default()) {
        Err(BulkError::Write { row: 0, error: WriteError::KeyTooLong { .. } }) => {}
        other => panic!("{other:?}"),
    }
    tree.insert(b"x", b"").unwrap();
    let again = tree.bulk_load([(b"y", b"")], BulkOptions::default());
    assert!(matches!(again, Err(BulkError::NotEmpty)), "{again:?}");
}

fn a_bulk_load_takes_little_more_than_the_raw_data<P: Pages>(make: Make<P>) {
    let tree = BTree::create(make(4096), 1).unwrap();
    let rows = 20_000u64;
    let load = (0..rows).map(|i| (i.to_be_bytes(), [i as u8; 120]));
    tree.bulk_load(load, BulkOptions::default()).unwrap();
    let stats = tree.stats().unwrap();
    let ratio = stats.total_bytes as f64 / (rows * 128) as f64;
    assert!(ratio < 1.1, "{ratio}");
    assert_eq!(tree.check().unwrap().violations, []);
}
