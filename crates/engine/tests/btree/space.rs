//! The space that trees use.

use millpond::internals::btree::BTree;
use millpond::internals::pool::Pages;

use crate::btree::harness::{Make, on_each};

on_each!(
    a_random_load_takes_half_more_than_the_data_and_a_quarter_after_the_background_merge,
    an_ascending_load_takes_a_tenth_more_than_the_data,
    room_that_comes_up_in_leaves_is_counted,
    the_estimate_is_near_the_count,
);

const ROWS: u64 = 20_000;

fn loaded<P: Pages>(make: Make<P>, ascending: bool) -> BTree<P> {
    let tree = BTree::create(make(4096), 1).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    for i in 0..ROWS {
        let key = if ascending { i } else { random.u64(..) };
        assert!(tree.insert(&key.to_be_bytes(), &[i as u8; 120]).unwrap());
    }
    tree
}

fn ratio<P: Pages>(tree: &BTree<P>) -> f64 {
    let stats = tree.stats().unwrap();
    assert_eq!(stats.entries(), ROWS);
    stats.total_bytes as f64 / (ROWS * 128) as f64
}

fn a_random_load_takes_half_more_than_the_data_and_a_quarter_after_the_background_merge<
    P: Pages,
>(
    make: Make<P>,
) {
    let tree = loaded(make, false);
    let before = ratio(&tree);
    assert!(before < 1.5, "{before}");
    assert!(tree.counters().shifts > 100);
    let mut rounds = 0;
    while !tree.compact(50).unwrap() {
        rounds += 1;
    }
    assert!(rounds > 5, "a call is bounded: {rounds} rounds");
    let after = ratio(&tree);
    assert!(after < 1.25, "{after}");
    assert_eq!(tree.check().unwrap().violations, []);
}

fn an_ascending_load_takes_a_tenth_more_than_the_data<P: Pages>(make: Make<P>) {
    let tree = loaded(make, true);
    let ratio = ratio(&tree);
    assert!(ratio < 1.1, "{ratio}");
    assert_eq!(tree.check().unwrap().violations, []);
}

fn the_estimate_is_near_the_count<P: Pages>(make: Make<P>) {
    let tree = loaded(make, false);
    let estimate = tree.count_estimate(300).unwrap();
    assert!(estimate.abs_diff(ROWS) < ROWS / 4, "{estimate}");
    assert_eq!(tree.count().unwrap(), ROWS);
}

fn room_that_comes_up_in_leaves_is_counted<P: Pages>(make: Make<P>) {
    let tree = loaded(make, true);
    assert_eq!(tree.counters().loosened, 0, "full leaves only");
    for i in (0..ROWS).filter(|i| i % 4 != 0) {
        assert!(tree.remove(&i.to_be_bytes()).unwrap());
    }
    let bytes = ROWS * 3 / 4 * 128;
    let removed = tree.counters().loosened;
    assert!((bytes * 4 / 5..bytes * 3 / 2).contains(&removed), "{removed} of {bytes}");
    for i in 0..ROWS {
        let key = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        tree.upsert(&key.to_be_bytes(), &[1; 120]).unwrap();
    }
    assert!(tree.counters().loosened > removed + 100 * 4096, "leaves are split in the middle");
}
