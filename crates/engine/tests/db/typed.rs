//! Typed trees: the same as a `BTreeMap` of the same types.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};

use millpond::internals::btree::BulkOptions;
use millpond::{Db, Tree};
use proptest::prelude::*;

use super::tiny;

type Key = (String, i32);
type Value = (u64, String);

#[derive(Clone, Debug)]
enum Step {
    Insert(Key, Value),
    Absent(Key, Value),
    Remove(Key),
    Update(Key, u64),
    RemoveRange(Key, Key),
}

fn key() -> impl Strategy<Value = Key> {
    ("[a-c\0]{0,3}", -3i32..4)
}

fn step() -> impl Strategy<Value = Step> {
    let value = || (any::<u64>(), "[a-z]{0,30}");
    prop_oneof![
        4 => (key(), value()).prop_map(|(k, v)| Step::Insert(k, v)),
        1 => (key(), value()).prop_map(|(k, v)| Step::Absent(k, v)),
        2 => key().prop_map(Step::Remove),
        2 => (key(), any::<u64>()).prop_map(|(k, n)| Step::Update(k, n)),
        1 => (key(), key()).prop_map(|(a, b)| Step::RemoveRange(a, b)),
    ]
}

fn apply(tree: &Tree<Key, Value>, model: &mut BTreeMap<Key, Value>, step: Step) {
    match step {
        Step::Insert(k, v) => assert_eq!(tree.insert(&k, &v).unwrap(), model.insert(k, v)),
        Step::Absent(k, v) => {
            let is_new = !model.contains_key(&k);
            assert_eq!(tree.insert_if_absent(&k, &v).unwrap(), is_new);
            model.entry(k).or_insert(v);
        }
        Step::Remove(k) => assert_eq!(tree.remove(&k).unwrap(), model.remove(&k)),
        Step::Update(k, n) => {
            let change = |old: Option<Value>| old.map(|(m, s)| (m ^ n, s));
            let expected = change(model.get(&k).cloned());
            assert_eq!(tree.update(&k, change).unwrap(), expected);
            if let Some(value) = expected {
                model.insert(k, value);
            }
        }
        Step::RemoveRange(a, b) => {
            let (a, b) = if a <= b { (a, b) } else { (b, a) };
            let gone: Vec<Key> = model.range(a.clone()..b.clone()).map(|e| e.0.clone()).collect();
            assert_eq!(tree.remove_range(a..b).unwrap(), gone.len() as u64);
            gone.iter().for_each(|key| drop(model.remove(key)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_typed_tree_is_a_map(
        steps in proptest::collection::vec(step(), 1..120),
        (low, high) in (key(), key()),
    ) {
        let db = Db::in_memory(tiny(32)).unwrap();
        let tree = db.tree::<Key, Value>("t").unwrap();
        let mut model = BTreeMap::new();
        for step in steps {
            apply(&tree, &mut model, step);
        }
        let rows: Vec<_> = tree.iter().map(Result::unwrap).collect();
        prop_assert!(rows.iter().map(|(k, v)| (k, v)).eq(model.iter()));
        let first = model.first_key_value().map(|(k, v)| (k.clone(), v.clone()));
        let last = model.last_key_value().map(|(k, v)| (k.clone(), v.clone()));
        prop_assert_eq!((tree.first().unwrap(), tree.last().unwrap()), (first, last));
        let begins: Vec<_> = tree.prefix(&(low.0.as_str(),)).map(|row| row.unwrap().0).collect();
        prop_assert!(begins.iter().eq(model.keys().filter(|k| k.0 == low.0)));
        let (low, high) = if low <= high { (low, high) } else { (high, low) };
        // From both ends at once, until they meet.
        let mut range = tree.range(low.clone()..=high.clone());
        let mut expected = model.range(low..=high);
        for i in 0.. {
            let (got, wanted) = if i % 3 == 0 {
                (range.next_back(), expected.next_back())
            } else {
                (range.next(), expected.next())
            };
            let wanted = wanted.map(|(k, v)| (k.clone(), v.clone()));
            prop_assert_eq!(got.map(Result::unwrap), wanted.clone());
            if wanted.is_none() {
                break;
            }
        }
    }
}

#[test]
fn keys_and_values_are_taken_as_they_are_borrowed() {
    let db = Db::in_memory(tiny(64)).unwrap();
    let tree = db.tree::<String, Vec<u8>>("t").unwrap();
    assert_eq!(tree.insert("a", b"one".as_slice()).unwrap(), None);
    assert!(tree.put(&"a".to_string(), &b"two".to_vec()).unwrap());
    assert_eq!(tree.get_with("a", <[u8]>::len).unwrap(), Some(3));
    assert!(tree.contains("a").unwrap() && !tree.contains("b").unwrap());
    assert!(tree.compare_and_swap("a", Some(b"two".as_slice()), Some(b"six".as_slice())).unwrap());
    tree.update_in_place("a", |bytes| bytes.reverse()).unwrap();
    assert_eq!(tree.remove("a").unwrap(), Some(b"xis".to_vec()));
    assert!(tree.is_empty().unwrap() && !tree.delete("a").unwrap());
}

#[test]
fn sorted_rows_are_loaded_at_once_and_counted() {
    let db = Db::in_memory(tiny(64)).unwrap();
    let tree = db.tree::<u64, String>("t").unwrap();
    let rows = (0..2000u64).map(|i| (i, format!("row {i}")));
    assert_eq!(tree.bulk_load(rows, BulkOptions::default()).unwrap(), 2000);
    assert_eq!(tree.len().unwrap(), 2000);
    let stats = tree.stats().unwrap();
    assert!(stats.height() > 2 && stats.levels[0].fill() > 0.8, "{stats:?}");
    assert_eq!(tree.get(&1234).unwrap().as_deref(), Some("row 1234"));
    assert_eq!(tree.remove_range(100..1900).unwrap(), 1800);
    while !tree.raw().compact(1000).unwrap() {}
    assert_eq!(tree.clear().unwrap(), 200);
}

#[test]
fn large_values_are_streams_both_ways() {
    let db = Db::in_memory(tiny(64)).unwrap();
    let tree = db.tree::<u32, Vec<u8>>("blobs").unwrap();
    let bytes: Vec<u8> = (0..200_000u32).map(|i| ((i * 7) >> 3) as u8).collect();
    tree.put_from(&1, bytes.len() as u64, &bytes[..]).unwrap();
    let mut reader = tree.reader(&1).unwrap().unwrap();
    assert_eq!(reader.len(), 200_000);
    let mut back = Vec::new();
    reader.read_to_end(&mut back).unwrap();
    assert!(back == bytes);
    reader.seek(SeekFrom::End(-10)).unwrap();
    back.clear();
    reader.read_to_end(&mut back).unwrap();
    assert_eq!(back, bytes[199_990..]);
    assert!(tree.reader(&2).unwrap().is_none());
    let short = tree.put_from(&2, 100_000, &bytes[..50]).unwrap_err();
    assert!(short.to_string().contains("50 of 100000"), "{short}");
    assert!(!tree.contains(&2).unwrap(), "nothing of it is there");
}
