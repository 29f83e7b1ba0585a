//! Pops at both ends of trees of many leaves: an outermost leaf that is empty stays for a while,
//! and must be seen again as soon as something comes into it.

use std::collections::BTreeMap;
use std::sync::Arc;

use millpond::{Db, Options, RawTree, Txn};
use millpond_device::MemoryDevice;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type Entry = Option<(Vec<u8>, Vec<u8>)>;

const ROWS: u32 = 6_000;

fn store() -> Db {
    let options = Options::new().memory(16 << 20).page_size(4096);
    let device = || Arc::new(MemoryDevice::new());
    Db::open_on_devices(device(), device(), options).unwrap()
}

fn row(number: u32) -> (Vec<u8>, Vec<u8>) {
    (number.to_be_bytes().to_vec(), format!("{number:0100}").into_bytes())
}

fn fill(tree: &RawTree) -> Map {
    (1..=ROWS).for_each(|n| _ = tree.put(&row(n).0, &row(n).1).unwrap());
    (1..=ROWS).map(row).collect()
}

/// Pops two thirds of the rows, and now and then puts one back at an end.
fn pop_and_put(
    random: &mut fastrand::Rng,
    map: &mut Map,
    pop: &dyn Fn(bool) -> Entry,
    put: &dyn Fn(&[u8], &[u8]),
) {
    let mut back = 0;
    for _ in 0..ROWS * 2 / 3 {
        let first = random.bool();
        let wanted = if first { map.pop_first() } else { map.pop_last() };
        assert_eq!(pop(first), wanted);
        let Some((key, _)) = wanted else { return };
        if random.u8(..12) == 0 {
            let number = u32::from_be_bytes(key.try_into().unwrap());
            let away = random.u32(0..60);
            let (key, value) = row(if first { number.saturating_sub(away) } else { number + away });
            put(&key, &value);
            map.insert(key, value);
            back += 1;
        }
    }
    assert!(back > ROWS / 30, "{back} came back");
}

#[test]
fn what_comes_back_at_an_end_is_popped_next() {
    for seed in 0..12 {
        let mut random = fastrand::Rng::with_seed(seed);
        let db = store();
        let tree = db.raw_tree("pops").unwrap();
        let mut map = fill(&tree);
        if seed % 3 == 0 {
            let pop = |first| if first { tree.pop_first() } else { tree.pop_last() }.unwrap();
            pop_and_put(&mut random, &mut map, &pop, &|key, value| {
                _ = tree.put(key, value).unwrap()
            });
        } else {
            let before = map.clone();
            let tx = db.begin().unwrap();
            let inside: RawTree<&Txn> = tx.tree(&tree);
            let pop = |first| if first { inside.pop_first() } else { inside.pop_last() }.unwrap();
            let put = |key: &[u8], value: &[u8]| _ = inside.put(key, value).unwrap();
            pop_and_put(&mut random, &mut map, &pop, &put);
            if seed % 3 == 1 {
                tx.commit().unwrap();
            } else {
                tx.abort().unwrap();
                map = before;
            }
        }
        assert_eq!(tree.iter().map(Result::unwrap).collect::<Map>(), map);
        let check = db.check().unwrap();
        assert!(check.is_sound(), "seed {seed}: {check:?}");
    }
}

#[test]
fn pages_do_not_move_as_entries_are_popped_and_an_emptied_tree_is_one_leaf() {
    for first in [true, false] {
        let db = store();
        let tree = db.raw_tree("pops").unwrap();
        fill(&tree);
        let before = db.stats().log_bytes;
        let tx = db.begin().unwrap();
        let inside = tx.tree(&tree);
        for _ in 0..ROWS {
            let popped = if first { inside.pop_first() } else { inside.pop_last() };
            assert!(popped.unwrap().is_some());
        }
        tx.commit().unwrap();
        let per_row = (db.stats().log_bytes - before) / u64::from(ROWS);
        // Each has its row; a page for every leaf would be more than a hundred bytes for each.
        assert!((100..200).contains(&per_row), "{per_row} bytes of log for each");
        assert!(tree.pop_first().unwrap().is_none() && tree.pop_last().unwrap().is_none());
        let levels = tree.stats().unwrap().levels.len();
        assert_eq!(levels, 1, "popped from the {}", if first { "first" } else { "last" });
        assert!(db.check().unwrap().is_sound());
    }
}
