//! What walks a tree, or fills one, while its leaves are merged and split without a pause.

use std::sync::atomic::{AtomicBool, Ordering};

use millpond::internals::btree::BulkOptions;
use millpond::internals::store::Combination;
use millpond::{Db, Options, Tree};

use super::tiny;

const KEYS: u64 = 900;

/// Says that it is over, also if a panic ends it.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Merges leaves for as long as `work` takes.
fn while_merging(tree: &Tree<u64, Vec<u8>>, work: impl FnOnce()) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                tree.raw().compact(7).unwrap();
            }
        });
        let _over = Over(&over);
        work();
    });
}

fn stays(key: &u64) -> bool {
    key.is_multiple_of(3)
}

/// Keys that come and go, all over the tree, a fixed number of times.
fn churn(tree: &Tree<u64, Vec<u8>>) {
    for round in 0..12u64 {
        for key in (0..KEYS).map(|i| i * 7919 % KEYS).filter(|key| !stays(key)) {
            // Some values are in pages of their own.
            let len = if key % 97 == 0 { 700 } else { key as usize % 60 };
            if round % 2 == 0 {
                tree.put(&key, vec![round as u8; len].as_slice()).unwrap();
            } else if key % 11 != round % 11 {
                tree.delete(&key).unwrap();
            }
        }
    }
}

/// Every way to walk the tree once: what stays is seen exactly once, and in order.
fn walk(tree: &Tree<u64, Vec<u8>>, random: &mut fastrand::Rng) {
    let expected: Vec<u64> = (0..KEYS).filter(stays).collect();
    let seen = |keys: Vec<u64>| {
        assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
        assert_eq!(keys.into_iter().filter(stays).collect::<Vec<_>>(), expected);
    };
    seen(tree.iter().map(|row| row.unwrap().0).collect());
    let mut back: Vec<u64> = tree.iter().rev().map(|row| row.unwrap().0).collect();
    back.reverse();
    seen(back);
    let (mut rows, mut left, mut right) = (tree.iter(), Vec::new(), Vec::new());
    while let Some(row) = rows.next() {
        left.push(row.unwrap().0);
        right.extend(rows.next_back().map(|row| row.unwrap().0));
    }
    left.extend(right.into_iter().rev());
    seen(left);
    let len = tree.len().unwrap();
    assert!((expected.len() as u64..=KEYS).contains(&len), "{len}");
    for _ in 0..50 {
        let key = random.u64(..KEYS / 3) * 3;
        assert_eq!(tree.get(&key).unwrap(), Some(vec![key as u8; 20]));
    }
    tree.stats().unwrap();
    tree.raw().check().unwrap();
}

fn walks(options: Options) {
    let db = Db::in_memory(options).unwrap();
    let tree = db.tree::<u64, Vec<u8>>("t").unwrap();
    for key in (0..KEYS).filter(stays) {
        tree.put(&key, [key as u8; 20].as_slice()).unwrap();
    }
    while_merging(&tree, || {
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| churn(&tree));
            let mut random = fastrand::Rng::with_seed(1);
            loop {
                walk(&tree, &mut random);
                if writer.is_finished() {
                    break;
                }
            }
        });
    });
    assert_eq!(tree.raw().check().unwrap().violations, []);
}

#[test]
fn walks_see_what_stays_while_leaves_are_merged_and_split() {
    for frames in [40, 400] {
        walks(tiny(frames));
    }
}

#[test]
fn walks_see_what_stays_with_shared_latches_too() {
    let latched = Combination::ALL.iter().find(|combination| {
        combination.latching().to_string() == "latched" && !combination.records()
    });
    let latched = *latched.unwrap();
    let options = tiny(60).policy(latched.policies()[0]);
    walks(options.lab(|lab| {
        lab.translation = latched.translation();
        lab.latching = latched.latching();
    }));
}

#[test]
fn ranges_go_while_leaves_are_merged_and_nothing_else_does() {
    let db = Db::in_memory(tiny(60)).unwrap();
    let tree = db.tree::<u64, Vec<u8>>("t").unwrap();
    for key in (0..KEYS).filter(stays) {
        tree.put(&key, [key as u8; 20].as_slice()).unwrap();
    }
    while_merging(&tree, || {
        let mut random = fastrand::Rng::with_seed(2);
        for round in 0..40u64 {
            let from = KEYS + random.u64(..20);
            for key in from..from + 300 {
                let len = if key % 41 == 0 { 800 } else { 30 };
                assert!(!tree.put(&key, vec![round as u8; len].as_slice()).unwrap());
            }
            assert_eq!(tree.remove_range(from + 10..from + 290).unwrap(), 280);
            assert_eq!(tree.remove_range(KEYS..).unwrap(), 20);
            assert_eq!(tree.len().unwrap(), KEYS / 3);
        }
    });
    assert_eq!(tree.clear().unwrap(), KEYS / 3);
    assert_eq!(tree.raw().check().unwrap().violations, []);
}

/// Merges are never necessary, and whether all that goes together is in memory at once is up to
/// the policy: MRU keeps what came first, and so no two new neighbours.
#[test]
fn merging_ends_whatever_the_policy_keeps_in_memory() {
    for half in [Combination::SwizzledNoHook, Combination::SwizzledAny] {
        for policy in half.policies() {
            let options = tiny(24).policy(policy).background_merge(false).lab(|lab| {
                lab.translation = half.translation();
                lab.latching = half.latching();
                lab.records = half.records();
            });
            let db = Db::in_memory(options).unwrap();
            let tree = db.tree::<u64, Vec<u8>>("t").unwrap();
            for key in (0..KEYS).map(|i| i * 7919 % KEYS) {
                tree.put(&key, [key as u8; 40].as_slice()).unwrap();
            }
            for key in (0..KEYS).filter(|key| !stays(key)) {
                assert!(tree.delete(&key).unwrap());
            }
            while !tree.raw().compact(50).unwrap() {}
            assert_eq!(tree.len().unwrap(), KEYS / 3, "{policy}");
            assert_eq!(tree.raw().check().unwrap().violations, [], "{policy}");
        }
    }
}

#[test]
fn whoever_gives_the_rows_of_a_bulk_load_may_use_the_tree() {
    let db = Db::in_memory(tiny(200)).unwrap();
    let tree = db.tree::<u64, Vec<u8>>("t").unwrap();
    let rows = (0..KEYS).map(|key| {
        if key % 100 == 0 {
            assert_eq!(tree.raw().check().unwrap().violations, []);
        }
        (key, vec![key as u8; 30])
    });
    assert_eq!(tree.bulk_load(rows, BulkOptions::default()).unwrap(), KEYS);
    assert_eq!(tree.len().unwrap(), KEYS);
}
