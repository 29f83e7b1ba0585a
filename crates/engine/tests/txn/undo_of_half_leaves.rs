//! Undo that puts a value of half a leaf back where the fences of its leaf leave no room any more:
//! it goes to overflow pages, and what is undone after it finds it there.

use std::sync::Arc;

use millpond::{Db, Options, RawTree};
use millpond_device::{FaultyDevice, MemoryDevice};

use crate::byte_calls::TxnCalls;

const KEY: &[u8] = b"m";

fn options() -> Options {
    Options::new().memory(8 << 20).page_size(4096)
}

fn long(tree: &RawTree, family: u8, member: u8) -> Vec<u8> {
    [&vec![family; tree.limits().key_max - 1][..], &[member]].concat()
}

/// Surrounds [`KEY`] with long keys, most of which are removed again: what fences they leave
/// depends on the seed.
fn surround(tree: &RawTree, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut keys: Vec<_> =
        (0..12).flat_map(|member| [long(tree, b'a', member), long(tree, b'z', member)]).collect();
    random.shuffle(&mut keys);
    for key in &keys {
        tree.put(key, b"").unwrap();
    }
    random.shuffle(&mut keys);
    for key in &keys[..random.usize(8..24)] {
        assert!(tree.delete(key).unwrap());
    }
    // Leaves that are empty are merged with neighbours, whose fences become theirs.
    while !tree.compact(50).unwrap() {}
}

fn in_overflow_pages(tree: &RawTree, expected: &[u8]) -> u64 {
    assert_eq!(tree.get(KEY).unwrap().as_deref(), Some(expected));
    assert_eq!(tree.check().unwrap().violations, []);
    tree.stats().unwrap().overflow_values
}

#[test]
fn a_change_of_a_part_is_undone_behind_an_undo_that_moved_the_value() {
    let (mut aborted, mut recovered) = (0, 0);
    for seed in 0..60 {
        let device = || Arc::new(FaultyDevice::with_crashes(MemoryDevice::new(), 1));
        let (data, log) = (device(), device());
        let db = Db::open_on_devices(data.clone(), log.clone(), options()).unwrap();
        let tree = db.raw_tree("t").unwrap();
        let before = vec![1; tree.limits().half_max - 1];
        tree.put(KEY, &before).unwrap();
        assert_eq!(tree.stats().unwrap().overflow_values, 0);
        let tx = db.begin().unwrap();
        // Of the same length: its undo is the part that differs.
        let mut changed = before.clone();
        changed[700..900].fill(9);
        tx.put(&tree, KEY, &changed).unwrap();
        tx.put(&tree, KEY, b"short").unwrap();
        surround(&tree, seed);
        db.flush().unwrap();
        let after = [data.crash(1).unwrap(), log.crash(2).unwrap()];
        tx.abort().unwrap();
        aborted += in_overflow_pages(&tree, &before);
        let [data, log] = after.map(Arc::new);
        let again = Db::open_on_devices(data, log, options()).unwrap();
        let tree = again.open_tree("t").unwrap();
        recovered += in_overflow_pages(&tree, &before);
        // Pages that nothing refers to would be found here.
        drop(tree);
        assert!(again.check().unwrap().is_sound());
        again.close().unwrap();
    }
    // Not equal: the store compacts leaves by itself, before the abort or between the crash and it.
    assert!((1..60).contains(&aborted), "{aborted}");
    assert!((1..60).contains(&recovered), "{recovered}");
}
