//! What the tree does on the in-memory twin: loads, lookups, scans; rows of 8 + 120 bytes.
//!
//! `cargo run --release -p millpond --example tree_twin -- [rows] [page size]`
#![allow(clippy::print_stdout)]

use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

use millpond::internals::btree::{BTree, BulkOptions};
use millpond::internals::pool::{Optimistic, Twin};

type Tree = BTree<Twin<Optimistic>>;

const VALUE: usize = 120;

/// Spreads 0, 1, 2, … over all 64-bit numbers, each once.
fn spread(n: u64) -> u64 {
    let mut x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 32;
    x.wrapping_mul(0xd6e8_feb8_6659_fd93)
}

fn report(what: &str, count: u64, from: Instant) {
    let seconds = from.elapsed().as_secs_f64();
    println!("{what:<34} {:>9.3} M/s {:>8.3} s", count as f64 / seconds / 1e6, seconds);
}

fn fresh(page_size: usize) -> Tree {
    BTree::create(Arc::new(Twin::new(page_size).unwrap()), 1).unwrap()
}

fn space(tree: &Tree, rows: u64, what: &str) {
    let stats = tree.stats().unwrap();
    let ratio = stats.total_bytes as f64 / (rows * (8 + VALUE as u64)) as f64;
    let fill = stats.levels[0].fill();
    println!("{what:<34} {ratio:>9.3} x raw  fill {fill:.3}  height {}", stats.height());
}

fn lookups(tree: &Tree, threads: u64, each: u64, pick: impl Fn(&mut fastrand::Rng) -> u64 + Sync) {
    std::thread::scope(|scope| {
        for t in 0..threads {
            let pick = &pick;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(t);
                let mut sum = 0u64;
                for _ in 0..each {
                    let key = spread(pick(&mut random)).to_be_bytes();
                    sum += tree.get(&key, |v| u64::from(v[0])).unwrap().expect("there");
                }
                std::hint::black_box(sum);
            });
        }
    });
}

fn scans(tree: &Tree, threads: u64, each: u64, rows: u64) {
    std::thread::scope(|scope| {
        for t in 0..threads {
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(t);
                let mut sum = 0u64;
                for _ in 0..each {
                    let key = spread(random.u64(..rows)).to_be_bytes();
                    let mut left = 100;
                    tree.scan(Bound::Included(&key), Bound::Unbounded, |k, v| {
                        sum += u64::from(k[7]) + u64::from(v[0]);
                        left -= 1;
                        left > 0
                    })
                    .unwrap();
                }
                std::hint::black_box(sum);
            });
        }
    });
}

/// The standard library's map under the same load: a yardstick for a machine that others use, too.
fn yardstick(rows: u64, each: u64) {
    let mut map = std::collections::BTreeMap::new();
    let from = Instant::now();
    for i in 0..rows {
        map.insert(spread(i).to_be_bytes(), [7u8; VALUE]);
    }
    report("BTreeMap: random load", rows, from);
    let from = Instant::now();
    let mut random = fastrand::Rng::with_seed(0);
    let mut sum = 0u64;
    for _ in 0..each {
        let key = spread(random.u64(..rows)).to_be_bytes();
        sum += u64::from(map[&key][0]);
    }
    std::hint::black_box(sum);
    report("BTreeMap: uniform lookups", each, from);
}

/// Zipf by inversion of the continuous law; θ = 0.99, near enough to compare trees.
fn zipf(random: &mut fastrand::Rng, rows: u64) -> u64 {
    let a = 1.0 - 0.99;
    let u = random.f64();
    let x = (u * ((rows as f64).powf(a) - 1.0) + 1.0).powf(1.0 / a);
    (x as u64).saturating_sub(1).min(rows - 1)
}

fn main() {
    let mut args = std::env::args().skip(1).filter_map(|a| a.parse().ok());
    let rows: u64 = args.next().unwrap_or(5_000_000);
    let page_size = args.next().unwrap_or(4096) as usize;
    println!("{rows} rows of 8 + {VALUE} bytes, pages of {page_size}");
    let value = [7u8; VALUE];
    for (what, bulk) in [("ascending load", false), ("bulk load", true)] {
        let tree = fresh(page_size);
        let from = Instant::now();
        if bulk {
            let all = (0..rows).map(|i| (i.to_be_bytes(), value));
            tree.bulk_load(all, BulkOptions::default()).unwrap();
        } else {
            for i in 0..rows {
                tree.insert(&i.to_be_bytes(), &value).unwrap();
            }
        }
        report(what, rows, from);
        space(&tree, rows, "  space");
    }
    yardstick(rows, rows.min(4_000_000));
    let tree = fresh(page_size);
    let from = Instant::now();
    for i in 0..rows {
        tree.insert(&spread(i).to_be_bytes(), &value).unwrap();
    }
    report("random load", rows, from);
    space(&tree, rows, "  space");
    let each = rows.min(4_000_000);
    for threads in [1, 2] {
        let from = Instant::now();
        lookups(&tree, threads, each, |r| r.u64(..rows));
        report(&format!("uniform lookups, {threads} threads"), threads * each, from);
        let from = Instant::now();
        lookups(&tree, threads, each, |r| zipf(r, rows));
        report(&format!("Zipf lookups, {threads} threads"), threads * each, from);
        let from = Instant::now();
        scans(&tree, threads, each / 20, rows);
        report(&format!("scans of 100 rows, {threads} threads"), threads * each * 5, from);
    }
    for keys_only in [false, true] {
        let from = Instant::now();
        let (mut n, mut sum) = (0, 0u64);
        tree.scan(Bound::Unbounded, Bound::Unbounded, |k, v| {
            n += 1;
            sum += if keys_only { u64::from(k[0]) } else { u64::from(k[0]) + u64::from(v[119]) };
            true
        })
        .unwrap();
        std::hint::black_box(sum);
        assert_eq!(n, rows);
        report(if keys_only { "full scan, keys" } else { "full scan, keys and values" }, n, from);
    }
    let from = Instant::now();
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..each {
        let key = spread(random.u64(..rows)).to_be_bytes();
        tree.update_in_place(&key, |v| v[0] = v[0].wrapping_add(1)).unwrap();
    }
    report("updates in place", each, from);
    let from = Instant::now();
    while !tree.compact(1000).unwrap() {}
    report("background merge", rows, from);
    space(&tree, rows, "  space");
    let from = Instant::now();
    for i in 0..rows {
        assert!(tree.remove(&spread(i).to_be_bytes()).unwrap());
    }
    report("removals", rows, from);
}
