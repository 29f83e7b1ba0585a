//! The fuzz targets' bodies over bytes drawn by seed: no panic, and nothing lost. A failure prints
//! its round.

#[path = "../../../fuzz/bodies/engine.rs"]
mod body;

use std::panic::{AssertUnwindSafe, catch_unwind};

use millpond::internals::page::PageType;

fn rounds(count: usize, seed: u64, body: impl Fn(&mut fastrand::Rng)) {
    let mut random = fastrand::Rng::with_seed(seed);
    for round in 0..count {
        let done = catch_unwind(AssertUnwindSafe(|| body(&mut random)));
        assert!(done.is_ok(), "in round {round}");
    }
}

#[test]
fn a_tree_does_what_a_map_does_whatever_the_bytes() {
    rounds(60, 1, |random| {
        // Few keys, so that they come and go.
        let keys = random.u8(8..=255);
        let mut data = Vec::new();
        for _ in 0..random.usize(..600) {
            data.extend([random.u8(..), random.u8(..keys), random.u8(..)]);
        }
        body::tree(&data);
    });
}

#[test]
fn a_damaged_store_gives_errors_and_nothing_else() {
    let len = body::STORE.len();
    rounds(400, 2, |random| {
        let mut data = Vec::new();
        for _ in 0..random.usize(1..20) {
            // Half of the changes are where headers, slots and the superblock lie.
            let at = if random.bool() { random.usize(..len) / 512 * 512 } else { 0 };
            let most = if random.bool() { 96 } else { 512 };
            let at = (at + random.usize(..most)) as u32;
            let [low, middle, high, _] = at.to_le_bytes();
            let sealed = if random.u8(..4) == 0 { 0x80 } else { 0 };
            data.extend([low, middle, high | sealed, random.u8(..)]);
        }
        if random.u8(..10) == 0 {
            data.push(random.u8(..10));
        }
        body::damaged_store(&data);
    });
}

#[test]
fn any_bytes_are_read_as_a_page_without_a_panic() {
    let types = [PageType::BTREE_LEAF, PageType::BTREE_INNER, PageType::OVERFLOW];
    rounds(4000, 3, |random| {
        let mut data: Vec<u8> = (0..512).map(|_| random.u8(..)).collect();
        data[28] = types[random.usize(..3)].0;
        data[29] = random.u8(..3);
        if random.bool() {
            // Small numbers look like counts and offsets.
            data[30..].iter_mut().skip(random.usize(..2)).step_by(2).for_each(|byte| *byte &= 1);
        }
        body::page(&data);
    });
    // Pages of a store, with a few bytes changed.
    rounds(4000, 4, |random| {
        let page = random.usize(..body::STORE.len() / 512) * 512;
        let mut data = body::STORE[page..page + 512].to_vec();
        for _ in 0..random.usize(..6) {
            data[random.usize(28..512)] = random.u8(..);
        }
        body::page(&data);
    });
}
