//! The background merge: space that random writes waste is reclaimed without a call.

use std::sync::Arc;
use std::time::Duration;

use millpond::internals::pool::PoolError;
use millpond::internals::stats::counters::Counter;
use millpond::internals::store::Builder;
use millpond::internals::store::combinations::SwizzledAny;
use millpond::{Db, Options, RawTree};
use millpond_device::MemoryDevice;

use super::{assert_sound, place};

const ROWS: u64 = 20_000;

fn options() -> Options {
    Options::new().memory(32 << 20)
}

fn load(tree: &RawTree, random: &mut fastrand::Rng, rows: u64) {
    for i in 0..rows {
        assert!(!tree.put(&random.u64(..).to_be_bytes(), &[i as u8; 120]).unwrap());
    }
}

/// Bytes of the tree's pages over those of its data.
fn ratio(tree: &RawTree) -> f64 {
    let stats = tree.stats().unwrap();
    stats.total_bytes as f64 / (stats.entries() * 128) as f64
}

/// Polls `is_so` until it holds; returns `false` after a time that is enough for a slow machine.
fn wait_until(mut is_so: impl FnMut() -> bool) -> bool {
    (0..5000).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        is_so()
    })
}

/// Waits for the end of a pass after which the tree's pages are at most `most` times its data.
fn wait_for_pass(db: &Db, tree: &RawTree, most: f64) {
    let (mut seen, mut last) = (0, 0.0);
    let packed = wait_until(|| {
        let passes = db.stats().background_passes;
        if passes > std::mem::replace(&mut seen, passes) {
            last = ratio(tree);
        }
        passes > 0 && last < most
    });
    assert!(packed, "{last} after {seen} passes: {}", db.stats());
}

#[test]
fn after_random_writes_a_tree_takes_a_quarter_more_than_its_data_and_less_by_an_option() {
    let (_dir, path) = place();
    let db = Db::open(&path, options()).unwrap();
    let off = Db::in_memory(options().lab(|lab| lab.background_merge = false)).unwrap();
    let (tree, same) = (db.raw_tree("t").unwrap(), off.raw_tree("t").unwrap());
    for tree in [&tree, &same] {
        load(tree, &mut fastrand::Rng::with_seed(1), ROWS);
    }
    wait_for_pass(&db, &tree, 1.25);
    assert!(ratio(&tree) < ratio(&same));
    let stats = db.stats();
    assert!(stats.merges > 10 && stats.background_leaves > 300, "{stats}");
    // Two of three keys are removed, all over the tree.
    let keys = |tree: &RawTree| tree.iter().map(|row| row.unwrap().0).collect::<Vec<_>>();
    for key in keys(&tree).iter().filter(|key| key[7] % 3 != 0) {
        assert!(tree.delete(key).unwrap() && same.delete(key).unwrap());
    }
    // Six leaves that are four fifths full do not fit into five.
    wait_for_pass(&db, &tree, 1.4);
    assert_eq!(tree.check().unwrap().violations, []);
    assert_eq!(keys(&tree), keys(&same));
    // The other store's thread had as many seconds, and left its tree alone.
    assert_eq!(off.stats().background_leaves, 0);
    assert!(ratio(&same) > ratio(&tree) * 1.2, "{} and {}", ratio(&same), ratio(&tree));
    drop(tree);
    db.close().unwrap();
    assert_sound(&path);
}

#[test]
fn a_tree_can_be_dropped_while_it_is_merged() {
    let (_dir, path) = place();
    let db = Db::open(&path, options()).unwrap();
    let mut random = fastrand::Rng::with_seed(2);
    for _ in 0..3 {
        let tree = db.raw_tree("goes").unwrap();
        // From before the load: where that takes seconds, all may be merged when it ends.
        let leaves = db.stats().background_leaves;
        load(&tree, &mut random, ROWS / 4);
        drop(tree);
        assert!(wait_until(|| db.stats().background_leaves > leaves));
        db.drop_tree("goes").unwrap();
    }
    db.close().unwrap();
    assert_sound(&path);
}

#[test]
fn a_tree_that_wants_to_rest_is_left_alone_until_it_does_no_more() {
    let options = Options::new().memory(8 << 20).lab(|lab| lab.background_merge = false);
    let store =
        Builder::device(Arc::new(MemoryDevice::new()), &options).open::<SwizzledAny>().unwrap();
    let (tree, mut merging) = (store.tree("t").unwrap(), store.merging());
    let mut random = fastrand::Rng::with_seed(4);
    for _ in 0..3000 {
        tree.btree().upsert(&random.u64(..).to_be_bytes(), &[1; 100]).unwrap();
    }
    let leaves = || store.pool().counters().get(Counter::BackgroundLeaves);
    let rested = tree.alter_at_rest(|_| {
        merging.round(0, &|| false);
        Ok::<_, PoolError>(leaves())
    });
    assert_eq!(rested.unwrap(), 0);
    merging.round(0, &|| false);
    assert!(leaves() > 0);
}
