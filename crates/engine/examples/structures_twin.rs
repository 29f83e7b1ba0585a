//! What the hash index and the heap do on the in-memory twin, beside the tree; rows of 8 + 120
//! bytes, one thread.
//!
//! `cargo run --release -p millpond --example structures_twin -- [rows] [page size]`
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::Instant;

use millpond::internals::btree::BTree;
use millpond::internals::hash_index::HashIndex;
use millpond::internals::heap::{Heap, RecordId};
use millpond::internals::pool::{Optimistic, Twin};

const VALUE: [u8; 120] = [7; 120];
const ROUNDS: usize = 3;

/// Spreads 0, 1, 2, … over all 64-bit numbers, each once.
fn spread(n: u64) -> [u8; 8] {
    let mut x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 32;
    x.wrapping_mul(0xd6e8_feb8_6659_fd93).to_be_bytes()
}

fn twin(page_size: usize) -> Arc<Twin<Optimistic>> {
    Arc::new(Twin::new(page_size).unwrap())
}

/// Millions per second of `work`, which is done for `count` random numbers below `rows`.
fn rate(rows: u64, count: u64, mut work: impl FnMut(u64)) -> f64 {
    let mut random = fastrand::Rng::with_seed(count);
    let from = Instant::now();
    for _ in 0..count {
        work(random.u64(..rows));
    }
    count as f64 / from.elapsed().as_secs_f64() / 1e6
}

fn load(what: &str, rows: u64, mut work: impl FnMut(u64)) {
    let from = Instant::now();
    (0..rows).for_each(&mut work);
    println!("{what:<24} {:>8.3} M/s", rows as f64 / from.elapsed().as_secs_f64() / 1e6);
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<u64>().unwrap());
    let rows = arguments.next().unwrap_or(1_000_000);
    let page_size = arguments.next().unwrap_or(4096) as usize;
    let tree = BTree::create(twin(page_size), 1).unwrap();
    let hash = HashIndex::create(twin(page_size), 2, 5).unwrap();
    let heap = Heap::create(twin(page_size), 3).unwrap();
    let mut ids: Vec<RecordId> = Vec::with_capacity(rows as usize);
    load("load tree", rows, |n| assert!(tree.insert(&spread(n), &VALUE).unwrap()));
    load("load hash index", rows, |n| assert!(hash.insert(&spread(n), &VALUE).unwrap()));
    load("append heap", rows, |_| ids.push(heap.append(&VALUE).unwrap()));
    let bulk = Heap::create(twin(page_size), 4).unwrap();
    let from = Instant::now();
    bulk.append_all((0..rows).map(|_| VALUE), |_| ()).unwrap();
    let seconds = from.elapsed().as_secs_f64();
    println!("{:<24} {:>8.3} M/s", "append heap in bulk", rows as f64 / seconds / 1e6);
    let (hash_stats, heap_stats) = (hash.stats().unwrap(), heap.stats().unwrap());
    let raw = (rows * 128) as f64;
    println!("hash index: {hash_stats:?}, {:.3} x raw", hash_stats.total_bytes as f64 / raw);
    println!("heap: {:.3} x raw", heap_stats.total_bytes as f64 / heap_stats.raw_bytes as f64);
    for round in 0..ROUNDS {
        let of_tree = rate(rows, rows * 2, |n| {
            tree.get(&spread(n), |v| std::hint::black_box(v[0])).unwrap().unwrap();
        });
        let of_hash = rate(rows, rows * 2, |n| {
            hash.get(&spread(n), |v| std::hint::black_box(v[0])).unwrap().unwrap();
        });
        let of_heap = rate(rows, rows * 2, |n| {
            heap.get(ids[n as usize], |v| std::hint::black_box(v[0])).unwrap().unwrap();
        });
        println!(
            "round {round}: lookups in M/s: tree {of_tree:.3}, hash index {of_hash:.3} \
             ({:.2} of the tree), heap {of_heap:.3}",
            of_hash / of_tree
        );
    }
    let from = Instant::now();
    let seen = heap.records().unwrap().map(Result::unwrap).filter(|(_, r)| r[0] == 7).count();
    assert_eq!(seen as u64, rows);
    let seconds = from.elapsed().as_secs_f64();
    println!("{:<24} {:>8.3} M/s", "scan heap", rows as f64 / seconds / 1e6);
}
