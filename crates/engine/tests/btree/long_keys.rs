//! Keys as long as a page allows, in which only the last bytes differ: fences and separators are as
//! long, so that nodes hold one or two of them, or none.

use std::collections::BTreeMap;

use millpond::internals::btree::BTree;
use millpond::internals::pool::Pages;

use crate::btree::harness::{Make, on_each};
use crate::btree::model::same;

on_each!(the_longest_keys_come_and_go_in_any_order, a_page_of_4096_bytes_takes_keys_of_1024,);

/// Orders in which `count` keys are inserted.
fn orders(count: u32) -> Vec<Vec<u32>> {
    let mut shuffled: Vec<u32> = (0..count).collect();
    fastrand::Rng::with_seed(5).shuffle(&mut shuffled);
    let inwards = (0..count).map(|i| if i % 2 == 0 { i / 2 } else { count - 1 - i / 2 });
    vec![(0..count).collect(), (0..count).rev().collect(), inwards.collect(), shuffled]
}

/// Keys of a few families. Keys of a family differ only at the end, so that a fence between them is
/// as long as they are. Two fences of different families have no prefix in common, so that keys
/// between them are stored whole.
fn key(i: u32, len: usize, families: u32) -> Vec<u8> {
    let (family, member) = (i % families, i / families);
    let mut key = vec![b'k'; len];
    key[..4].copy_from_slice(&family.to_le_bytes());
    key[len - 4..].copy_from_slice(&(member / 2).to_be_bytes());
    // Every other member is a prefix of the next one.
    key.truncate(if member % 2 == 0 { len - 1 } else { len });
    key
}

fn come_and_go<P: Pages>(tree: &BTree<P>, order: &[u32], len: usize, families: u32) {
    let mut map = BTreeMap::new();
    let inline = tree.limits().inline_max;
    for (at, &i) in order.iter().enumerate() {
        let value = vec![i as u8; [0, 9, inline / 2, inline + 1][at % 4]];
        let key = key(i, len, families);
        let fresh = map.insert(key.clone(), value.clone()).is_none();
        assert_eq!(tree.upsert(&key, &value).unwrap(), !fresh, "{i}");
    }
    same(tree, &map);
    // A value that grows finds room, too.
    for key in map.keys().cloned().collect::<Vec<_>>() {
        let value = vec![7; inline.saturating_sub(key.len())];
        assert!(tree.replace(&key, &value).unwrap());
        map.insert(key, value);
    }
    same(tree, &map);
    while !tree.compact(50).unwrap() {}
    same(tree, &map);
    // Fences stay when the keys that they were derived from are removed, and neighbours inserted.
    let mut random = fastrand::Rng::with_seed(6);
    for round in 0..8 * order.len() {
        let key = key(random.u32(..order.len() as u32), len, families);
        let removals = if (round / order.len()).is_multiple_of(2) { 80 } else { 30 };
        if random.u32(..100) < removals {
            assert_eq!(tree.remove(&key).unwrap(), map.remove(&key).is_some());
        } else {
            let value = vec![1; random.usize(..4)];
            assert_eq!(tree.upsert(&key, &value).unwrap(), map.insert(key, value).is_some());
        }
    }
    same(tree, &map);
    for i in order.iter().rev() {
        assert_eq!(
            tree.remove(&key(*i, len, families)).unwrap(),
            map.remove(&key(*i, len, families)).is_some()
        );
    }
    same(tree, &map);
    assert_eq!(tree.count().unwrap(), 0);
}

fn the_longest_keys_come_and_go_in_any_order<P: Pages>(make: Make<P>) {
    for order in orders(240) {
        for families in [1, 8, 40, 100] {
            let tree = BTree::create(make(512), 1).unwrap();
            come_and_go(&tree, &order, tree.limits().key_max, families);
        }
    }
}

fn a_page_of_4096_bytes_takes_keys_of_1024<P: Pages>(make: Make<P>) {
    for order in orders(120) {
        let tree = BTree::create(make(4096), 1).unwrap();
        assert!(tree.limits().key_max >= 1024);
        come_and_go(&tree, &order, 1024, 8);
        come_and_go(&tree, &order, tree.limits().key_max, 8);
    }
}
