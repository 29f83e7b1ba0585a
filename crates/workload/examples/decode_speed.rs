//! Measures the speed of decoding traces: `cargo run --release --example decode_speed -- TRACE…`
//!
//! Prints the best of five passes over each file, after one that warms the page cache, in
//! millions of references per second of wall time.
#![allow(clippy::print_stdout, reason = "a program for people")]

use std::time::Instant;

use millpond_workload::formats::{ReadOptions, open};
use millpond_workload::trace::{BATCH_LEN, Batch, TraceError};

fn main() -> Result<(), TraceError> {
    for path in std::env::args().skip(1) {
        let mut best = f64::INFINITY;
        let mut references = 0;
        for _ in 0..6 {
            let start = Instant::now();
            references = pass(&path)?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        let speed = references as f64 / best / 1e6;
        println!("{speed:8.1} M refs/s  {:8.1} ms  {references:10} refs  {path}", best * 1e3);
    }
    Ok(())
}

/// Reads the whole trace and counts; the sum keeps the pages from being optimised away.
fn pass(path: &str) -> Result<u64, TraceError> {
    let mut source = open(path, &ReadOptions::default())?;
    let mut batch = Batch::with_capacity(BATCH_LEN);
    let (mut references, mut sum) = (0, 0u64);
    loop {
        batch.clear();
        match source.fill(&mut batch, BATCH_LEN)? {
            0 => break,
            n => references += n as u64,
        }
        sum = sum.wrapping_add(batch.pages[batch.len() / 2]);
    }
    std::hint::black_box(sum);
    Ok(references)
}
