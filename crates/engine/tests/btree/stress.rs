//! Many threads on one tree.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use millpond::internals::btree::BTree;
use millpond::internals::pool::Pages;

use crate::btree::harness::{Make, latched, optimistic};

const THREADS: u64 = 4;
const STEPS: u32 = 6000;

/// Each thread owns the keys of one residue, and checks which must be there.
fn owner<P: Pages>(tree: &BTree<P>, me: u64) -> BTreeMap<u64, u64> {
    let mut random = fastrand::Rng::with_seed(me);
    let mut mine = BTreeMap::new();
    for step in 0..STEPS {
        // Growing and shrinking phases, so that leaves split and merge.
        let grow = (step / 1000) % 2 == 0;
        let k = random.u64(..600) * THREADS + me;
        let key = k.to_be_bytes();
        let v = random.u64(..);
        let mut bytes = v.to_le_bytes().to_vec();
        if random.u32(..200) == 0 {
            bytes.resize(700, 1);
        }
        match random.u32(..10) {
            0..=5 if grow => {
                assert_eq!(tree.upsert(&key, &bytes).unwrap(), mine.insert(k, v).is_some());
            }
            0..=5 => assert_eq!(tree.remove(&key).unwrap(), mine.remove(&k).is_some()),
            6 => {
                let done = tree.update_in_place(&key, |b| b[0] ^= 1).unwrap();
                assert_eq!(done.is_some(), mine.contains_key(&k));
                if let Some(v) = mine.get_mut(&k) {
                    *v ^= 1;
                }
            }
            7 => {
                let keys: Vec<u64> =
                    (0..random.u64(..40)).map(|_| random.u64(..600) * THREADS + me).collect();
                let bytes: Vec<_> = keys.iter().map(|k| k.to_be_bytes()).collect();
                let bytes: Vec<&[u8]> = bytes.iter().map(|k| &k[..]).collect();
                let mut found = vec![None; keys.len()];
                tree.get_many(&bytes, &mut found).unwrap();
                for (k, value) in keys.iter().zip(&found) {
                    let v = value.as_ref().map(|b| u64::from_le_bytes(b[..8].try_into().unwrap()));
                    assert_eq!(v.as_ref(), mine.get(k), "{k}");
                }
            }
            _ => {
                let found = tree.get(&key, |b| u64::from_le_bytes(b[..8].try_into().unwrap()));
                assert_eq!(found.unwrap(), mine.get(&k).copied());
            }
        }
    }
    mine
}

/// Scans while others write: keys ascend, and those that no thread removes are all there.
fn scanner<P: Pages>(tree: &BTree<P>, stop: &AtomicBool) {
    let mut turn = 0u32;
    while !stop.load(Ordering::Relaxed) {
        let (mut last, mut fixed) = (None, 0);
        let mut cursor = tree.cursor();
        let up = turn.is_multiple_of(2);
        let mut more = if up { cursor.first() } else { cursor.last() }.unwrap();
        while more {
            let k = u64::from_be_bytes(cursor.key().try_into().unwrap());
            assert!(last.is_none_or(|l| if up { l < k } else { l > k }), "{last:?} {k}");
            last = Some(k);
            fixed += u64::from(k >= 1 << 40);
            more = if up { cursor.next() } else { cursor.prev() }.unwrap();
        }
        assert_eq!(fixed, 300);
        if turn.is_multiple_of(4) {
            tree.compact(20).unwrap();
        }
        turn += 1;
    }
}

fn threads_see_what_they_wrote_and_scans_what_stays<P: Pages>(make: Make<P>) {
    let tree = Arc::new(BTree::create(make(512), 1).unwrap());
    for i in 0..300u64 {
        tree.insert(&((1 << 40) + i).to_be_bytes(), b"fixed").unwrap();
    }
    let stop = AtomicBool::new(false);
    let all: BTreeMap<u64, u64> = std::thread::scope(|scope| {
        let scan = scope.spawn(|| scanner(&tree, &stop));
        let owners: Vec<_> = (0..THREADS)
            .map(|me| {
                let tree = &tree;
                scope.spawn(move || owner(tree, me))
            })
            .collect();
        let all = owners.into_iter().flat_map(|owner| owner.join().unwrap()).collect();
        stop.store(true, Ordering::Relaxed);
        scan.join().unwrap();
        all
    });
    let report = tree.check().unwrap();
    assert_eq!(report.violations, []);
    assert_eq!(report.entries, all.len() as u64 + 300);
    let mut rows = all.iter();
    tree.scan(Bound::Unbounded, Bound::Excluded(&(1u64 << 40).to_be_bytes()), |key, value| {
        let (k, v) = rows.next().unwrap();
        assert_eq!((key, &value[..8]), (&k.to_be_bytes()[..], &v.to_le_bytes()[..]));
        true
    })
    .unwrap();
    assert!(rows.next().is_none());
    assert!(tree.counters().leaf_splits > 20 && tree.counters().leaf_merges > 5);
}

#[test]
fn optimistic_threads_see_what_they_wrote_and_scans_what_stays() {
    threads_see_what_they_wrote_and_scans_what_stays(optimistic);
}

#[test]
fn latched_threads_see_what_they_wrote_and_scans_what_stays() {
    threads_see_what_they_wrote_and_scans_what_stays(latched);
}

fn counters_that_all_threads_swap_lose_nothing<P: Pages>(make: Make<P>) {
    let tree = BTree::create(make(512), 1).unwrap();
    tree.insert(b"counter", &0u64.to_le_bytes()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut done = 0;
                while done < 500 {
                    let old = tree.get_owned(b"counter").unwrap().unwrap();
                    let n = u64::from_le_bytes(old.as_slice().try_into().unwrap()) + 1;
                    let new = n.to_le_bytes();
                    let swapped = tree.compare_and_swap(b"counter", Some(&old), Some(&new));
                    done += u32::from(swapped.unwrap());
                }
            });
        }
    });
    let end = tree.get_owned(b"counter").unwrap().unwrap();
    assert_eq!(end, (THREADS * 500).to_le_bytes());
}

#[test]
fn optimistic_counters_that_all_threads_swap_lose_nothing() {
    counters_that_all_threads_swap_lose_nothing(optimistic);
}

#[test]
fn latched_counters_that_all_threads_swap_lose_nothing() {
    counters_that_all_threads_swap_lose_nothing(latched);
}
