//! Every policy in a pool of a few frames under several threads.

use std::collections::BTreeMap;
use std::thread;

use millpond::internals::store::HitDelivery;
use millpond::{Db, Options, RawTree};
use millpond_base::rounds::rounds;

use super::{assert_sound, opening, place, tiny};

const THREADS: u64 = 3;

/// Number of steps of each thread.
fn steps() -> u32 {
    rounds(100, 250)
}

fn key(thread: u64, number: u32) -> Vec<u8> {
    format!("{number:04} of {thread}").into_bytes()
}

/// One thread's changes, all to keys of its own, among those of the others in the same leaves.
fn fight(tree: &RawTree, thread: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(thread);
    let mut model = BTreeMap::new();
    for _ in 0..steps() {
        let (key, value) =
            (key(thread, random.u32(..400)), vec![random.u8(..); random.usize(..130)]);
        match random.u8(..8) {
            0..4 => assert_eq!(tree.insert(&key, &value).unwrap(), model.insert(key, value)),
            4 => assert_eq!(tree.remove(&key).unwrap(), model.remove(&key)),
            5 => assert!(tree.range(&key[..]..).take(20).all(|row| row.is_ok())),
            _ => assert_eq!(tree.get(&key).unwrap().as_ref(), model.get(&key)),
        }
    }
    model
}

fn options(policy: &str, policy_host: HitDelivery, eviction: &str) -> Options {
    let options = tiny(20).policy(policy).lab(|lab| lab.eviction = eviction.parse().unwrap());
    options.lab(|lab| lab.hit_delivery = policy_host)
}

fn run(db: &Db, policy: &str) {
    let tree = db.raw_tree("t").unwrap();
    let models: Vec<_> = thread::scope(|scope| {
        let tree = &tree;
        let fighters: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || fight(tree, thread))).collect();
        fighters.into_iter().map(|fighter| fighter.join().unwrap()).collect()
    });
    let model: BTreeMap<_, _> = models.into_iter().flatten().collect();
    let rows: Vec<_> = tree.iter().map(Result::unwrap).collect();
    assert!(rows.iter().map(|(k, v)| (k, v)).eq(model.iter()), "{policy}");
    assert_eq!(tree.check().unwrap().violations, [], "{policy}");
    let stats = db.stats();
    assert!(stats.evictions > rounds(120, 500), "{policy}: {} evictions", stats.evictions);
}

#[test]
fn threads_fight_over_a_few_frames_and_every_policy_lets_each_of_them_get_on() {
    for (i, policy) in opening::live_policies().into_iter().enumerate() {
        let eviction = ["threads(2)", "worker", "adaptive(3)", "worker"][i % 4];
        let (_dir, path) = place();
        let db = Db::open(&path, options(policy, HitDelivery::Auto, eviction)).unwrap();
        run(&db, policy);
        db.close().unwrap();
        assert_sound(&path);
    }
}

#[test]
fn policies_that_receive_their_hits_in_batches_do_no_worse() {
    for policy in opening::live_policies() {
        run(&Db::in_memory(options(policy, HitDelivery::Batched, "worker")).unwrap(), policy);
    }
}

#[test]
fn open_policies_run_under_a_mutex_as_well() {
    for policy in ["random", "clock", "watt", "hyperbolic", "sorting-lru"] {
        run(&Db::in_memory(options(policy, HitDelivery::Exact, "worker")).unwrap(), policy);
    }
}
