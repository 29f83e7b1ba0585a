//! Entries that are passed over, and keys without values: the same as a map's, wherever they are
//! read and whatever changed since.

use std::collections::BTreeMap;
use std::ops::Bound;

use millpond::{Db, Options, Range};
use millpond_base::rounds::rounds;

use super::{assert_sound, place};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Few pages of 4 KiB: leaves of some ten entries, and of a hundred.
fn few(frames: u32) -> Options {
    Options::new().lab(|lab| lab.frames = Some(frames))
}

/// Short keys and long ones, of which many share a beginning.
fn some_key(random: &mut fastrand::Rng) -> Vec<u8> {
    let n = random.u32(..4000);
    if n.is_multiple_of(50) {
        return format!("{n:04} {}", "long ".repeat(14)).into_bytes();
    }
    format!("{n:04} a key").into_bytes()
}

/// A value: empty, small, of a tenth of a page, in overflow pages.
fn some_value(random: &mut fastrand::Rng, is_large: bool) -> Vec<u8> {
    let len = match random.u8(..20) {
        0 if is_large => 3000 + random.usize(..3000),
        1 => 0,
        2..8 => random.usize(..30),
        _ => 200 + random.usize(..400),
    };
    vec![random.u8(1..); len]
}

/// Takes entries off both ends, some of them behind others that are passed over, as of `map`.
fn passes_as(
    range: Range<'_, Vec<u8>, Vec<u8>>,
    map: &Map,
    keys_only: bool,
    random: &mut fastrand::Rng,
) {
    let mut range = if keys_only { range.keys_only().raw() } else { range };
    let shown = |(key, value): (&Vec<u8>, &Vec<u8>)| {
        (key.clone(), if keys_only { Vec::new() } else { value.clone() })
    };
    let mut model = map.iter();
    let ends = random.u8(..4);
    for _ in 0..random.usize(1..40) {
        let n = if random.u8(..8) == 0 { random.usize(..2000) } else { random.usize(..30) };
        let n = if random.bool() { 0 } else { n };
        let is_front = ends != 1 && (ends != 2 || random.bool());
        let (got, expected) = match is_front {
            true => (range.nth(n), model.nth(n)),
            false => (range.nth_back(n), model.nth_back(n)),
        };
        assert_eq!(got.map(Result::unwrap), expected.map(shown), "{n} from the front: {is_front}");
    }
    assert_eq!(range.count(), model.count());
}

fn change(map: &mut Map, count: usize, is_large: bool, random: &mut fastrand::Rng) -> Map {
    let mut changed = Map::new();
    for _ in 0..count {
        let key = some_key(random);
        let value = some_value(random, is_large);
        map.insert(key.clone(), value.clone());
        changed.insert(key, value);
    }
    changed
}

#[test]
fn entries_are_passed_over_as_a_map_passes_over_them() {
    for is_large in [false, true] {
        let (_dir, path) = place();
        let db = Db::open(&path, few(64)).unwrap();
        let tree = db.raw_tree("t").unwrap();
        let mut random = fastrand::Rng::with_seed(7 + u64::from(is_large));
        let mut map = Map::new();
        for _ in 0..rounds(25, 300) {
            for (key, value) in change(&mut map, 150, is_large, &mut random) {
                tree.put(&key, &value).unwrap();
            }
            for keys_only in [false, true] {
                passes_as(tree.iter(), &map, keys_only, &mut random);
                let tx = db.begin().unwrap();
                passes_as(tx.tree(&tree).iter(), &map, keys_only, &mut random);
            }
            // Versions of what is written behind the snapshot, and of what is removed.
            let (snapshot, before) = (db.snapshot().unwrap(), map.clone());
            let few = if random.bool() { 3 } else { 100 };
            for (key, value) in change(&mut map, few, is_large, &mut random) {
                tree.put(&key, &value).unwrap();
            }
            for _ in 0..few {
                let key = some_key(&mut random);
                assert_eq!(tree.remove(&key).unwrap(), map.remove(&key));
            }
            for keys_only in [false, true] {
                let rows = snapshot.tree(&tree).into_range(..);
                passes_as(rows, &before, keys_only, &mut random);
            }
        }
        assert!(map.len() > 500, "{} entries", map.len());
        drop(tree);
        db.close().unwrap();
        assert_sound(&path);
    }
}

/// A range that somebody writes beside goes on with a snapshot of its own.
#[test]
fn entries_are_passed_over_while_others_write() {
    let (_dir, path) = place();
    let db = Db::open(&path, few(40)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    for row in 0..4000_u32 {
        tree.put(&row.to_be_bytes(), &[1; 150]).unwrap();
    }
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..rounds(40, 400) {
        let mut rows = tree.range(&[0][..]..);
        let (mut at, mut tx) = (0, None);
        loop {
            if tx.is_none() && random.u8(..4) == 0 {
                // What it writes lies before the range, and is not to be seen in it.
                let open = db.begin().unwrap();
                open.tree(&tree).put(&[], &[2; 100]).unwrap();
                tx = Some(open);
            }
            let n = random.usize(..400);
            let row = rows.nth(n);
            at += n as u32;
            let Some(row) = row else { break };
            assert_eq!(row.unwrap(), (at.to_be_bytes().to_vec(), vec![1; 150]));
            at += 1;
        }
        assert!(at >= 4000);
    }
}

#[test]
fn a_count_of_a_range_and_typed_rows_behind_others_are_right() {
    let (_dir, path) = place();
    let db = Db::open(&path, few(40)).unwrap();
    let tree = db.tree::<u32, String>("t").unwrap();
    for row in 0..3000 {
        tree.put(&row, &format!("{row}").repeat(row as usize % 60)).unwrap();
    }
    let text = |row: u32| format!("{row}").repeat(row as usize % 60);
    let mut rows = tree.range(100..2900);
    assert_eq!(rows.nth(500).unwrap().unwrap(), (600, text(600)));
    assert_eq!(rows.nth_back(99).unwrap().unwrap(), (2800, text(2800)));
    assert_eq!(rows.nth(2198).unwrap().unwrap(), (2799, text(2799)));
    assert!(rows.next().is_none() && rows.next_back().is_none());
    assert!(tree.range(100..2900).nth_back(2800).is_none());
    assert_eq!(tree.range(100..2900).rev().nth(2799).unwrap().unwrap(), (100, text(100)));
    let page: Result<Vec<_>, _> = tree.iter().skip(1234).take(3).collect();
    assert_eq!(page.unwrap(), [(1234, text(1234)), (1235, text(1235)), (1236, text(1236))]);
    assert!(tree.range(..).nth(5000).is_none());
    let tx = db.begin().unwrap();
    for (from, to) in [(0_u32, 3000_u32), (17, 18), (5, 2000), (2999, 9000)] {
        let expected = u64::from(to.min(3000) - from);
        assert_eq!(tree.count(from..to).unwrap(), expected);
        assert_eq!(tx.tree(&tree).count(from..to).unwrap(), expected);
        let bounds = (Bound::Excluded(from), Bound::Excluded(to));
        assert_eq!(db.snapshot().unwrap().tree(&tree).count(bounds).unwrap(), expected - 1);
    }
}
