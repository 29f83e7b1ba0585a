//! The lower bound of the read-write model beside the optimum, and beside policies.

use crate::tier2_optimum::Search;
use crate::tier2_util::{random_trace, run};
use millpond_lab::tier2::{BoundOptions, LowerBound, Model, Tier2Future, lower_bound};
use millpond_workload::trace::Batch;

fn bound(rows: &Batch, pages: u64, frames: u32, price: f64, aim: u64, rounds: u32) -> LowerBound {
    let options = BoundOptions { frames, price, aim: aim as f64, rounds };
    lower_bound(rows, &Tier2Future::of(rows, pages), pages, &options)
}

#[test]
fn the_bound_never_exceeds_the_optimum_of_a_tiny_trace_and_mostly_is_it() {
    let mut tight = 0;
    for seed in 0..600 {
        let pages = 4 + seed % 3;
        let rows = random_trace(seed, 16, pages, b"rrwwcd");
        let frames = 1 + (seed % 3) as u32;
        let least = Search::new(&rows, pages, frames as usize).least(0, &[]);
        let found = bound(&rows, pages, frames, 1.0, least, 100);
        assert!(found.avoidable <= least as f64, "seed {seed}: {found:?}, the optimum is {least}");
        let counts = run("t2-lru", &rows, pages, frames, Model::Rw);
        assert_eq!(found.unavoidable, counts.unavoidable() as f64, "seed {seed}");
        tight += u32::from(found.avoidable == least as f64);
        // What the search aims at decides how good the bound is, not whether it is one.
        let far = bound(&rows, pages, frames, 1.0, least * 9 + 7, 20);
        assert!(far.avoidable <= least as f64, "seed {seed}: {far:?}, the optimum is {least}");
    }
    println!("tight on {tight} of 600");
    assert!(tight > 570, "{tight}");
}

#[test]
fn where_nothing_is_written_the_bound_is_what_belady_needs() {
    for (seed, pages, frames) in [(1, 9, 2), (2, 9, 4), (3, 14, 5), (4, 14, 3)] {
        let rows = random_trace(seed, 120, pages, b"r");
        let least = run("min-rw", &rows, pages, frames, Model::Rw).avoidable();
        let found = bound(&rows, pages, frames, 1.0, least, 600);
        assert_eq!(found.avoidable, least as f64, "seed {seed}, {frames} frames");
    }
}

#[test]
fn the_bound_is_below_every_policy_and_near_pro_io() {
    for (seed, pages, frames) in [(1, 60, 1), (2, 60, 10), (3, 300, 64), (4, 300, 299)] {
        let rows = random_trace(seed, 4_000, pages, b"rrrrwwwcsd");
        let pro = run("pro-io", &rows, pages, frames, Model::Rw);
        let found = bound(&rows, pages, frames, 1.0, pro.avoidable(), 60);
        for policy in ["pro-io", "min-rw", "tide-io", "arc-io", "t2-lru"] {
            let counts = run(policy, &rows, pages, frames, Model::Rw);
            assert!(found.total() <= counts.total() as f64, "{policy}, {frames}: {found:?}");
        }
        let share = found.avoidable / pro.avoidable().max(1) as f64;
        println!("{frames} frames: {share} of pro-io");
        assert!(share > 0.9 || pro.avoidable() == 0, "{frames} frames: {share} of pro-io");
    }
}

#[test]
fn a_write_counts_at_its_price() {
    let rows = random_trace(7, 3_000, 120, b"rrrrwwwcsd");
    let mut last = 0.0;
    for price in [0.0, 0.5, 3.0] {
        for policy in ["pro-io", "min-rw", "tide-io"] {
            let counts = run(policy, &rows, 120, 30, Model::Rw);
            let cost = counts.storage_reads as f64 + price * counts.storage_writes() as f64;
            let found = bound(&rows, 120, 30, price, counts.avoidable(), 60);
            assert!(found.total() <= cost, "{policy} at {price}: {found:?} above {cost}");
            assert!(found.total() >= last, "a higher price costs no less");
        }
        last = bound(&rows, 120, 30, price, 1_500, 60).unavoidable;
    }
    // With free writes only reads are left.
    let reads = run("t2-opt(rule=exact)", &rows, 120, 30, Model::Rw).storage_reads as f64;
    let found = bound(&rows, 120, 30, 0.0, 200, 200);
    assert!(found.total() <= reads, "{found:?}, {reads} reads suffice");
    assert!(found.total() > 0.9 * reads, "{found:?}, {reads} reads suffice");
}
