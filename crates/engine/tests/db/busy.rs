//! Walks, bulk loads and range removals while leaves are merged and split without a pause.

use std::sync::atomic::{AtomicBool, Ordering};

use millpond::internals::btree::BulkOptions;
#[cfg(feature = "lab")]
use millpond::internals::store::Combination;
use millpond::{Db, RawTree, Tree};

use super::any_store::{Rows, TestTree};
#[cfg(feature = "lab")]
use super::any_store::{in_memory, with_strategies};
use super::opening::live_policies;
use super::tiny;

const KEYS: u64 = 900;

/// Sets the flag when it is dropped, also by a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A tree of numbers: a typed one of a `Db`, or any other, whose keys are the numbers' bytes.
trait Numbers: Sync {
    fn raw(&self) -> &dyn TestTree;
    fn put(&self, key: u64, value: &[u8]) -> bool;
    fn delete(&self, key: u64) -> bool;
    fn get(&self, key: u64) -> Option<Vec<u8>>;
    fn keys(&self) -> Box<dyn DoubleEndedIterator<Item = u64> + '_>;
    fn len(&self) -> u64;
}

/// A typed tree, and its bytes.
struct Typed {
    tree: Tree<u64, Vec<u8>>,
    raw: RawTree,
}

impl Numbers for Typed {
    fn raw(&self) -> &dyn TestTree {
        &self.raw
    }

    fn put(&self, key: u64, value: &[u8]) -> bool {
        self.tree.put(&key, value).unwrap()
    }

    fn delete(&self, key: u64) -> bool {
        self.tree.delete(&key).unwrap()
    }

    fn get(&self, key: u64) -> Option<Vec<u8>> {
        self.tree.get(&key).unwrap()
    }

    fn keys(&self) -> Box<dyn DoubleEndedIterator<Item = u64> + '_> {
        Box::new(self.tree.iter().map(|row| row.unwrap().0))
    }

    fn len(&self) -> u64 {
        self.tree.len().unwrap()
    }
}

impl Numbers for Box<dyn TestTree> {
    fn raw(&self) -> &dyn TestTree {
        &**self
    }

    fn put(&self, key: u64, value: &[u8]) -> bool {
        (**self).put(&key.to_be_bytes(), value).unwrap()
    }

    fn delete(&self, key: u64) -> bool {
        (**self).delete(&key.to_be_bytes()).unwrap()
    }

    fn get(&self, key: u64) -> Option<Vec<u8>> {
        (**self).get(&key.to_be_bytes()).unwrap()
    }

    fn keys(&self) -> Box<dyn DoubleEndedIterator<Item = u64> + '_> {
        let rows: Rows<'_> = (**self).iter();
        Box::new(rows.map(|row| u64::from_be_bytes(row.unwrap().0.try_into().unwrap())))
    }

    fn len(&self) -> u64 {
        (**self).len().unwrap()
    }
}

/// Merges leaves for as long as `work` takes.
fn while_merging(tree: &dyn TestTree, work: impl FnOnce()) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                tree.compact(7).unwrap();
            }
        });
        let _over = Over(&over);
        work();
    });
}

fn stays(key: &u64) -> bool {
    key.is_multiple_of(3)
}

/// Inserts and removes keys all over the tree, a fixed number of times.
fn churn(tree: &dyn Numbers) {
    for round in 0..12u64 {
        for key in (0..KEYS).map(|i| i * 7919 % KEYS).filter(|key| !stays(key)) {
            // Some values are in pages of their own.
            let len = if key % 97 == 0 { 700 } else { key as usize % 60 };
            if round % 2 == 0 {
                tree.put(key, &vec![round as u8; len]);
            } else if key % 11 != round % 11 {
                tree.delete(key);
            }
        }
    }
}

/// Walks the tree once in every way: each key that stays is returned exactly once, in order.
fn walk(tree: &dyn Numbers, random: &mut fastrand::Rng) {
    let expected: Vec<u64> = (0..KEYS).filter(stays).collect();
    let seen = |keys: Vec<u64>| {
        assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
        assert_eq!(keys.into_iter().filter(stays).collect::<Vec<_>>(), expected);
    };
    seen(tree.keys().collect());
    let mut back: Vec<u64> = tree.keys().rev().collect();
    back.reverse();
    seen(back);
    let (mut keys, mut left, mut right) = (tree.keys(), Vec::new(), Vec::new());
    while let Some(key) = keys.next() {
        left.push(key);
        right.extend(keys.next_back());
    }
    left.extend(right.into_iter().rev());
    seen(left);
    let len = tree.len();
    assert!((expected.len() as u64..=KEYS).contains(&len), "{len}");
    for _ in 0..50 {
        let key = random.u64(..KEYS / 3) * 3;
        assert_eq!(tree.get(key), Some(vec![key as u8; 20]));
    }
    tree.raw().stats().unwrap();
    tree.raw().check().unwrap();
}

fn walks(tree: &dyn Numbers) {
    for key in (0..KEYS).filter(stays) {
        tree.put(key, &[key as u8; 20]);
    }
    while_merging(tree.raw(), || {
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| churn(tree));
            let mut random = fastrand::Rng::with_seed(1);
            loop {
                walk(tree, &mut random);
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
        let db = Db::in_memory(tiny(frames)).unwrap();
        let tree = db.tree::<u64, Vec<u8>>("t").unwrap();
        walks(&Typed { raw: tree.raw(), tree });
    }
}

#[test]
#[cfg(feature = "lab")]
fn walks_see_what_stays_with_shared_latches_too() {
    let latched = Combination::ALL.iter().find(|combination| {
        combination.latching().to_string() == "latched" && !combination.records()
    });
    let latched = *latched.unwrap();
    let store = in_memory(with_strategies(tiny(60), latched, latched.policies()[0])).unwrap();
    walks(&store.tree("t").unwrap());
}

#[test]
fn ranges_are_removed_while_leaves_are_merged_and_nothing_else_is() {
    let db = Db::in_memory(tiny(60)).unwrap();
    let tree = db.tree::<u64, Vec<u8>>("t").unwrap();
    for key in (0..KEYS).filter(stays) {
        tree.put(&key, [key as u8; 20].as_slice()).unwrap();
    }
    while_merging(&tree.raw(), || {
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

/// A merge needs both leaves in memory at once, and whether they are is up to the policy: MRU keeps
/// the first pages, and so no two new neighbours. No merge is necessary.
#[test]
fn merging_ends_whatever_the_policy_keeps_in_memory() {
    for policy in live_policies() {
        let options = tiny(24).policy(policy).lab(|lab| lab.background_merge = false);
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

#[test]
fn the_iterator_of_a_bulk_load_may_use_the_tree() {
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
