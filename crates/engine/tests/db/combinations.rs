//! Identical random operations in every compiled combination, beside a `BTreeMap`.

use std::collections::BTreeMap;

use millpond::Db;
use millpond::internals::store::Combination;
use millpond_base::rounds::rounds;

use super::any_store::{TestTree, open, policy_of, with_strategies};
use super::opening::live_policies;
use super::{assert_sound, place, tiny};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut key = format!("key {:03}", random.u32(..300)).into_bytes();
    key.truncate(random.usize(5..=7));
    key
}

fn value(random: &mut fastrand::Rng) -> Vec<u8> {
    let len = if random.u8(..20) == 0 { random.usize(..4000) } else { random.usize(..40) };
    vec![random.u8(..); len]
}

fn step(tree: &dyn TestTree, model: &mut Model, random: &mut fastrand::Rng) {
    let (key, value) = (key(random), value(random));
    match random.u8(..10) {
        0..3 => assert_eq!(tree.insert(&key, &value).unwrap(), model.insert(key, value)),
        3 => {
            let is_new = !model.contains_key(&key);
            assert_eq!(tree.insert_if_absent(&key, &value).unwrap(), is_new);
            model.entry(key).or_insert(value);
        }
        4 | 5 => assert_eq!(tree.remove(&key).unwrap(), model.remove(&key)),
        6 => {
            let old = model.get(&key).cloned();
            assert!(tree.compare_and_swap(&key, old.as_deref(), Some(&value)).unwrap());
            model.insert(key, value);
        }
        7 => {
            let flip = |bytes: &mut [u8]| bytes.iter_mut().for_each(|b| *b ^= 0x55);
            let found = tree.update_in_place(&key, flip).unwrap().is_some();
            assert_eq!(found, model.get_mut(&key).map(|v| flip(v)).is_some());
        }
        8 => {
            let rows: Vec<_> = tree.rows_from(&key).take(5).map(Result::unwrap).collect();
            let expected = model.range(key..).take(5);
            assert!(rows.iter().map(|(k, v)| (k, v)).eq(expected));
        }
        _ => assert_eq!(tree.get(&key).unwrap().as_ref(), model.get(&key)),
    }
}

fn same(tree: &dyn TestTree, model: &Model) {
    let rows: Vec<_> = tree.iter().map(Result::unwrap).collect();
    assert!(rows.iter().map(|(k, v)| (k, v)).eq(model.iter()));
    let back: Vec<_> = tree.iter().rev().map(Result::unwrap).collect();
    assert!(back.iter().map(|(k, v)| (k, v)).eq(model.iter().rev()));
    assert_eq!(tree.len().unwrap(), model.len() as u64);
    let report = tree.check().unwrap();
    assert!(report.violations.is_empty(), "{:?}", report.violations);
}

/// Two trees through a thrashing pool, with a reopening in the middle.
fn run(combination: Combination, policy: &str, steps: u32) {
    let (_dir, path) = place();
    let mut random = fastrand::Rng::with_seed(17 + combination as u64);
    let mut models = [Model::new(), Model::new()];
    for round in 0..2 {
        let db = open(&path, with_strategies(tiny(24), combination, policy)).unwrap();
        assert_eq!(db.combination(), combination);
        assert_eq!(db.combination(), combination);
        let trees = ["one", "two"].map(|name| db.tree(name).unwrap());
        for (tree, model) in trees.iter().zip(&models) {
            same(&**tree, model);
        }
        for _ in 0..steps {
            let which = random.usize(..2);
            step(&*trees[which], &mut models[which], &mut random);
        }
        for (tree, model) in trees.iter().zip(&models) {
            same(&**tree, model);
        }
        if round == 0 {
            db.flush().unwrap();
        }
        let enough = u64::from(steps) / 40;
        assert!(db.stats().evictions > enough, "{combination:?}: the pool thrashes");
        drop(trees);
        db.close().unwrap();
        assert_sound(&path);
    }
}

#[test]
fn every_combination_does_what_a_map_does_while_its_pool_thrashes() {
    for combination in Combination::ALL {
        run(*combination, policy_of(*combination), rounds(600, 1500));
    }
}

#[test]
fn every_policy_replaces_pages_of_a_users_store() {
    for policy in live_policies() {
        run(Combination::SwizzledAny, policy, rounds(600, 800));
    }
}

#[test]
fn evictor_threads_and_epochs_do_what_a_map_does() {
    let (_dir, path) = place();
    let options = tiny(32).lab(|lab| lab.eviction = "threads(2)".parse().unwrap());
    let options = options.lab(|lab| lab.reclamation = "epoch".parse().unwrap());
    let db = Db::open(&path, options).unwrap();
    let (tree, mut model) = (db.raw_tree("t").unwrap(), Model::new());
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..2000 {
        step(&tree, &mut model, &mut random);
    }
    same(&tree, &model);
}
