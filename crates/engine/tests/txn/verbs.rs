//! Verbs of a tree, a transaction and a snapshot: each does what a `BTreeMap` does.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Bound;
use std::sync::Arc;

use millpond::{Db, Error, Options, Snapshot, Tree};
use millpond_device::MemoryDevice;

type Key = (String, u32);
type Map = BTreeMap<Key, String>;

fn store() -> Db {
    let options = Options::new().memory(8 << 20).page_size(4096);
    let device = || Arc::new(MemoryDevice::new());
    Db::open_on_devices(device(), device(), options).unwrap()
}

fn key(random: &mut fastrand::Rng) -> Key {
    (["heron", "otter", "stoat"][random.usize(..3)].to_string(), random.u32(..40))
}

fn value(random: &mut fastrand::Rng) -> String {
    let len = if random.u8(..20) == 0 { random.usize(3000..9000) } else { random.usize(..20) };
    "x".repeat(len)
}

fn own<'m>(entry: Option<(&'m Key, &'m String)>) -> Option<(Key, String)> {
    entry.map(|(key, value)| (key.clone(), value.clone()))
}

/// Every verb that reads, against a map.
macro_rules! reads {
    ($tree:expr, $map:expr, $random:expr) => {{
        let (tree, map): (_, &Map) = ($tree, $map);
        let random: &mut fastrand::Rng = $random;
        let (a, b) = (key(random), key(random));
        let (from, to) = (a.clone().min(b.clone()), a.clone().max(b));
        let borrowed = (from.0.as_str(), from.1);
        assert_eq!(tree.get(&borrowed).unwrap(), map.get(&from).cloned());
        assert_eq!(tree.contains(&a).unwrap(), map.contains_key(&a));
        let len = tree.get_with(&a, |value| value.len()).unwrap();
        assert_eq!(len, map.get(&a).map(String::len));
        let many = tree.get_many([("zebra", 7), borrowed]).unwrap();
        assert_eq!(many, [None, map.get(&from).cloned()]);
        assert_eq!(tree.first().unwrap(), own(map.first_key_value()));
        assert_eq!(tree.last().unwrap(), own(map.last_key_value()));
        assert_eq!(tree.len().unwrap(), map.len() as u64);
        assert_eq!(tree.is_empty().unwrap(), map.is_empty());
        let inside: Vec<_> = map.range(from.clone()..to.clone()).collect();
        let count = tree.count(borrowed..(to.0.as_str(), to.1)).unwrap();
        assert_eq!(count, inside.len() as u64);
        let range: Result<Vec<_>, Error> = tree.range(from.clone()..to.clone()).collect();
        assert!(range.unwrap().iter().map(|(k, v)| (k, v)).eq(inside.iter().copied()));
        let back: Result<Vec<_>, Error> = tree.range(..=from.clone()).rev().collect();
        assert!(back.unwrap().iter().map(|(k, v)| (k, v)).eq(map.range(..=from.clone()).rev()));
        let (mut both, mut at) = (tree.iter(), map.iter());
        for _ in 0..map.len() + 2 {
            let front = random.bool();
            let (got, want) = match front {
                true => (both.next(), at.next()),
                false => (both.next_back(), at.next_back()),
            };
            assert_eq!(got.transpose().unwrap(), own(want));
        }
        let prefix: Result<Vec<_>, Error> = tree.prefix(&("otter",)).collect();
        let otters = map.iter().filter(|(key, _)| key.0 == "otter");
        assert!(prefix.unwrap().iter().map(|(k, v)| (k, v)).eq(otters));
        let mut text = String::new();
        if let Some(mut reader) = tree.reader(&a).unwrap() {
            assert_eq!(reader.len(), map[&a].len() as u64);
            reader.read_to_string(&mut text).unwrap();
        }
        assert_eq!(text, map.get(&a).cloned().unwrap_or_default());
        cursor_moves!(tree.cursor(), map, random);
    }};
}

macro_rules! cursor_moves {
    ($cursor:expr, $map:expr, $random:expr) => {{
        let (mut cursor, map, mut at) = ($cursor, $map, None::<Key>);
        for _ in 0..12 {
            let to = key($random);
            let (got, want) = match $random.u8(..6) {
                0 => (cursor.seek(&to).unwrap(), map.range(to..).next()),
                1 => (
                    cursor.seek_back(&(to.0.as_str(), to.1)).unwrap(),
                    map.range(..=to).next_back(),
                ),
                2 => (cursor.first().unwrap(), map.first_key_value()),
                3 => (cursor.last().unwrap(), map.last_key_value()),
                4 => {
                    let behind = at.clone().map_or(Bound::Unbounded, Bound::Excluded);
                    (cursor.next().unwrap(), map.range((behind, Bound::Unbounded)).next())
                }
                _ => {
                    let before = at.clone().map_or(Bound::Unbounded, Bound::Excluded);
                    (cursor.prev().unwrap(), map.range((Bound::Unbounded, before)).next_back())
                }
            };
            assert_eq!(got, own(want));
            at = got.map(|(key, _)| key).or(at);
            assert_eq!(cursor.entry().unwrap().map(|(key, _)| key), at);
        }
    }};
}

/// One verb that writes, in both.
macro_rules! write {
    ($tree:expr, $map:expr, $random:expr) => {{
        let (tree, map): (_, &mut Map) = ($tree, $map);
        let random: &mut fastrand::Rng = $random;
        let (k, v) = (key(random), value(random));
        let old = map.get(&k).cloned();
        match random.u8(..22) {
            0..5 => assert_eq!(tree.insert(&k, &v).unwrap(), map.insert(k, v)),
            5..8 => assert_eq!(tree.put(&k, &v).unwrap(), map.insert(k, v).is_some()),
            8 => {
                assert_eq!(tree.insert_if_absent(&k, &v).unwrap(), old.is_none());
                map.entry(k).or_insert(v);
            }
            9 => {
                assert_eq!(tree.replace(&(k.0.as_str(), k.1), &v).unwrap(), old.is_some());
                map.entry(k).and_modify(|old| *old = v);
            }
            10 => {
                let expected = if random.bool() { old.clone() } else { Some("no".to_string()) };
                let is_expected = expected == old;
                let new = if random.bool() { Some(v) } else { None };
                let swapped = tree.compare_and_swap(&k, expected.as_ref(), new.as_ref()).unwrap();
                assert_eq!(swapped, is_expected);
                match new {
                    _ if !is_expected => {}
                    Some(new) => drop(map.insert(k, new)),
                    None => drop(map.remove(&k)),
                }
            }
            11 => {
                let add = |old: Option<String>| old.map(|old| old + "+");
                let new = tree.update(&k, add).unwrap();
                assert_eq!(new, old.map(|old| old + "+"));
                map.entry(k).and_modify(|old| old.push('+'));
            }
            12 => {
                let done = tree.update_in_place(&k, |bytes| bytes.fill(b'y')).unwrap();
                assert_eq!(done.is_some(), old.is_some());
                map.entry(k).and_modify(|old| *old = "y".repeat(old.len()));
            }
            13 => assert_eq!(tree.remove(&k).unwrap(), map.remove(&k)),
            14 => assert_eq!(tree.delete(&k).unwrap(), map.remove(&k).is_some()),
            15 => {
                let to = (k.0.clone(), k.1 + random.u32(..5));
                let gone: Vec<Key> =
                    map.range(k.clone()..to.clone()).map(|(k, _)| k.clone()).collect();
                assert_eq!(tree.remove_range(k..to).unwrap(), gone.len() as u64);
                gone.iter().for_each(|key| drop(map.remove(key)));
            }
            16 => assert_eq!(tree.pop_first().unwrap(), map.pop_first()),
            17 => assert_eq!(tree.pop_last().unwrap(), map.pop_last()),
            18 => {
                let last = random.u32(..10);
                let before = map.len();
                map.retain(|key, _| key.1 % 10 != last);
                let removed = tree.retain(|key, _| key.1 % 10 != last).unwrap();
                assert_eq!(removed as usize, before - map.len());
            }
            19 => {
                let last = random.u32(..10);
                let is_chosen = |key: &Key, _: &String| key.1 % 10 == last;
                let gone: Result<Vec<_>, Error> = tree.extract_if(k.clone().., is_chosen).collect();
                let all: Vec<_> =
                    map.range(k..).filter(|(key, value)| is_chosen(key, value)).collect();
                let gone = gone.unwrap();
                assert!(gone.iter().map(|(k, v)| (k, v)).eq(all));
                gone.iter().for_each(|(key, _)| drop(map.remove(key)));
            }
            20 => {
                let had = tree.put_from(&k, v.len() as u64, v.as_bytes()).unwrap();
                assert_eq!(had, map.insert(k, v).is_some());
            }
            _ if random.u8(..10) == 0 => {
                assert_eq!(tree.clear().unwrap(), map.len() as u64);
                map.clear();
            }
            _ => {
                let otters = map.keys().filter(|key| key.0 == "otter").count() as u64;
                assert_eq!(tree.remove_prefix(&("otter",)).unwrap(), otters);
                map.retain(|key, _| key.0 != "otter");
            }
        }
    }};
}

fn in_transaction(db: &Db, tree: &Tree<Key, String>, map: &mut Map, random: &mut fastrand::Rng) {
    let mut own = map.clone();
    let mut tx = db.begin().unwrap();
    for _ in 0..random.u8(..30) {
        write!(tx.tree(tree), &mut own, random);
    }
    let (savepoint, then) = (tx.savepoint().unwrap(), own.clone());
    for _ in 0..random.u8(..10) {
        write!(tx.tree(tree), &mut own, random);
    }
    reads!(tx.tree(tree), &own, random);
    if random.bool() {
        tx.rollback_to(&savepoint).unwrap();
        own = then;
        reads!(tx.tree(tree), &own, random);
    }
    let k = key(random);
    assert_eq!(tx.tree(tree).get_for_update(&k).unwrap(), own.get(&k).cloned());
    if random.u8(..4) == 0 {
        tx.abort().unwrap();
    } else {
        tx.commit().unwrap();
        *map = own;
    }
}

#[test]
fn the_verbs_of_trees_transactions_and_snapshots_give_what_a_map_gives() {
    for seed in 0..12 {
        let mut random = fastrand::Rng::with_seed(seed);
        let db = store();
        let tree = db.tree::<Key, String>("birds").unwrap();
        let (mut map, mut snapshots) = (Map::new(), Vec::<(Snapshot, Map)>::new());
        for _ in 0..40 {
            for _ in 0..random.u8(..30) {
                write!(&tree, &mut map, &mut random);
            }
            reads!(&tree, &map, &mut random);
            if random.u8(..3) == 0 {
                snapshots.push((db.snapshot().unwrap(), map.clone()));
            }
            in_transaction(&db, &tree, &mut map, &mut random);
            reads!(&tree, &map, &mut random);
            for (snapshot, then) in &snapshots {
                reads!(snapshot.tree(&tree), then, &mut random);
            }
            if snapshots.len() > 3 {
                snapshots.remove(random.usize(..snapshots.len()));
            }
        }
        assert!(db.check().unwrap().is_sound(), "seed {seed}");
    }
}

#[test]
fn a_reader_of_a_snapshot_goes_on_while_the_value_is_replaced_and_removed() {
    // Of this, what was replaced may take 1.5 MiB.
    let db = Db::in_memory(Options::new().memory(64 << 20)).unwrap();
    let films = db.tree::<u32, Vec<u8>>("films").unwrap();
    let film: Vec<u8> = (0..400_000u32).map(|i| (i / 7) as u8).collect();
    films.put(&1, &film).unwrap();
    let snapshot = db.snapshot().unwrap();
    let then = snapshot.tree(&films);
    let mut reader = then.reader(&1).unwrap().unwrap();
    let mut read = vec![0; 100_000];
    reader.read_exact(&mut read).unwrap();
    films.update_in_place(&1, |bytes| bytes.fill(0)).unwrap();
    let mut part = vec![0; 100_000];
    reader.read_exact(&mut part).unwrap();
    read.extend(part);
    films.remove(&1).unwrap();
    reader.read_to_end(&mut read).unwrap();
    assert!(read == film);
    // One that begins afterwards, too.
    let mut late = Vec::new();
    then.reader(&1).unwrap().unwrap().read_to_end(&mut late).unwrap();
    assert!(late == film);
}

#[test]
fn a_range_of_a_transaction_shows_what_the_transaction_writes_ahead_of_it() {
    let db = store();
    let tree = db.tree::<u32, u32>("t").unwrap();
    (0..200).for_each(|i| _ = tree.put(&i, &0).unwrap());
    let tx = db.begin().unwrap();
    let inside = tx.tree(&tree);
    let mut seen = Vec::new();
    for row in inside.iter() {
        let (key, value) = row.unwrap();
        seen.push((key, value));
        inside.put(&(key + 1), &1).unwrap();
        inside.delete(&(key + 2)).unwrap();
        if seen.len() == 150 {
            break;
        }
    }
    assert_eq!(seen[0], (0, 0));
    let ahead: Vec<_> = (1..150).map(|i| (i, 1)).collect();
    assert_eq!(seen[1..], ahead[..]);
}

#[test]
fn a_range_that_is_stopped_early_keeps_nobody_from_writing_behind_what_it_saw() {
    let db = store();
    let tree = db.tree::<u32, u32>("t").unwrap();
    (0..1000).for_each(|i| _ = tree.put(&(i * 2), &0).unwrap());
    let tx = db.begin().unwrap();
    let inside = tx.tree(&tree);
    assert_eq!(inside.first().unwrap(), Some((0, 0)));
    assert_eq!(inside.last().unwrap(), Some((1998, 0)));
    assert_eq!(inside.range(100..).take(10).count(), 10);
    let mut cursor = inside.cursor();
    assert_eq!(cursor.seek(&601).unwrap(), Some((602, 0)));
    drop(cursor);
    std::thread::scope(|scope| {
        let free = scope.spawn(|| {
            // Between what was seen, and behind it.
            for key in [2, 99, 121, 140, 600, 604, 1996] {
                tree.put(&key, &1).unwrap();
            }
        });
        free.join().unwrap();
        for key in [0, 1998, 2001, 101, 118, 601, 602] {
            let options =
                millpond::TxnOptions::default().wait_max(std::time::Duration::from_millis(20));
            let (db, tree) = (&db, &tree);
            let held = scope.spawn(move || {
                let other = db.begin_with(options).unwrap();
                other.tree(tree).put(&key, &1).err().is_some_and(|error| error.is_timeout())
            });
            assert!(held.join().unwrap(), "{key}");
        }
    });
    tx.commit().unwrap();
}

#[test]
fn trees_of_another_store_are_refused_by_each_verb() {
    let (db, other) = (store(), store());
    let (tree, raw) = (other.tree::<u32, u32>("t").unwrap(), other.raw_tree("r").unwrap());
    let tx = db.begin().unwrap();
    let is_refused = |error: Error| matches!(error, Error::OtherStore { .. });
    assert!(is_refused(tx.tree(&tree).get(&1).unwrap_err()));
    assert!(is_refused(tx.tree(&tree).put(&1, &1).unwrap_err()));
    assert!(is_refused(tx.tree(&tree).iter().next().unwrap().unwrap_err()));
    assert!(is_refused(tx.tree(&tree).pop_first().unwrap_err()));
    assert!(is_refused(tx.tree(&raw).put_from(b"k", 1, &b"v"[..]).unwrap_err()));
    let snapshot = db.snapshot().unwrap();
    assert!(is_refused(snapshot.tree(&tree).get(&1).unwrap_err()));
    assert!(is_refused(snapshot.tree(&tree).iter().next().unwrap().unwrap_err()));
    assert!(is_refused(snapshot.tree(&raw).len().unwrap_err()));
}

#[test]
fn a_closure_of_the_user_may_call_the_transaction_but_within_an_update_in_place() {
    let db = store();
    let tree = db.tree::<u32, u32>("t").unwrap();
    tree.put(&1, &1).unwrap();
    let tx = db.begin().unwrap();
    let inside = tx.tree(&tree);
    let seen = inside.get_with(&1, |_| inside.put(&2, &2)).unwrap();
    assert!(!seen.unwrap().unwrap());
    inside.update(&1, |one| Some(one? + inside.get(&2).unwrap()?)).unwrap();
    assert_eq!(inside.get(&1).unwrap(), Some(3));
    let kept = inside.retain(|key, _| inside.contains(&(key + 1)).unwrap()).unwrap();
    assert_eq!((kept, inside.len().unwrap()), (1, 1));
    let nested = inside.update_in_place(&1, |_| inside.get(&1)).unwrap().unwrap();
    assert!(nested.unwrap_err().to_string().contains("let it return first"));
    let nested = inside.update_in_place(&1, |_| tx.savepoint().map(drop)).unwrap().unwrap();
    assert!(nested.unwrap_err().to_string().contains("let it return first"));
    tx.commit().unwrap();
}
