//! Measures the cost of a page value: `cargo run --release -p millpond-policies --example
//! watt_value`.
//!
//! Nanoseconds per candidate, as an eviction values them: a batch is drawn at random, its cache
//! lines are prefetched together, then each is valued, by each set of instructions that the
//! machine has. Each number is the median of interleaved rounds, with the least and the greatest.

use std::hint::black_box;
use std::io::{self, Write};
use std::time::Instant;

use millpond_base::{FrameId, Mark};
use millpond_policies::contract::{Frames, PolicySpec};
use millpond_policies::parts::instructions::Instructions;
use millpond_policies::parts::stamps::Stamps;
use millpond_policies::parts::worth::{Aggregate, StampLog, Tracking, Worth, stamp};
use millpond_policies::policy::Watt;

const BATCH: usize = 64;
const CANDIDATES: usize = 1 << 20;
const ROUNDS: usize = 15;
const NOW: u32 = 100;

/// Lines as a pool's are that has run for a while: some logs full, some not, a third written.
fn lines(count: usize, tracking: Tracking) -> Vec<Stamps> {
    let mut rng = fastrand::Rng::with_seed(count as u64);
    let lines: Vec<Stamps> = (0..count).map(|_| Stamps::default()).collect();
    for line in &lines {
        line.appear();
        let mut at = rng.u32(1..NOW);
        while at < NOW {
            let mark = if rng.u8(0..3) == 0 { Mark::WRITE } else { Mark::READ };
            tracking.track(line, stamp(at), mark);
            at += rng.u32(1..20);
        }
    }
    lines
}

/// Values candidates, a batch at a time; ns for each.
fn ns_per_candidate(worth: &Worth, lines: &[Stamps], prefetch: bool) -> f64 {
    let frames = Frames::<<Watt as PolicySpec>::Hook>::of(lines);
    let mut rng = fastrand::Rng::with_seed(7);
    let (mut drawn, mut values) = ([0u32; BATCH], [0.0f32; BATCH]);
    let start = Instant::now();
    for _ in 0..CANDIDATES / BATCH {
        for frame in &mut drawn {
            *frame = rng.u32(0..frames.len());
            if prefetch {
                frames.prefetch(FrameId(*frame));
            }
        }
        worth.values(stamp(NOW), &mut values, |i| frames.meta(FrameId(drawn[i])));
        black_box(&values);
    }
    start.elapsed().as_nanos() as f64 / CANDIDATES as f64
}

fn main() -> io::Result<()> {
    let tracking = Tracking::new(StampLog::Both, 8, 4);
    let worth = Worth::new(tracking, Aggregate::Max, 0.1, 4.0, 0);
    let sets: Vec<Instructions> =
        Instructions::ALL.into_iter().filter(|set| set.are_here()).collect();
    let mut out = io::stdout();
    write!(out, "{:<34}", "ns per candidate, draw included")?;
    for set in &sets {
        write!(out, "{:>24}", format!("{set:?}"))?;
    }
    writeln!(out)?;
    for (name, count, prefetch) in [
        ("256 lines, in a core's cache", 1 << 8, true),
        ("16 k lines, 1 MiB", 1 << 14, true),
        ("1 M lines, 64 MiB", 1 << 20, true),
        ("1 M lines, not prefetched", 1 << 20, false),
    ] {
        let lines = lines(count, tracking);
        let worths: Vec<Worth> = sets.iter().map(|set| worth.clone().by(*set)).collect();
        let mut all = vec![Vec::new(); sets.len()];
        for _ in 0..ROUNDS {
            for (found, worth) in all.iter_mut().zip(&worths) {
                found.push(ns_per_candidate(worth, &lines, prefetch));
            }
        }
        write!(out, "{name:<34}")?;
        for found in &mut all {
            found.sort_by(f64::total_cmp);
            let (least, median) = (found[0], found[ROUNDS / 2]);
            write!(out, "{:>24}", format!("{median:.1} ({least:.1}–{:.1})", found[ROUNDS - 1]))?;
        }
        writeln!(out)?;
    }
    Ok(())
}
