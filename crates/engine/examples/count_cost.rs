//! What counting and timing cost: `cargo run --release -p millpond --example count_cost`.
//!
//! Each line is the best and the median of several interleaved rounds, in ns per call; a round
//! makes a million calls with an empty barrier between them.

use std::hint::black_box;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use millpond::internals::stats::counters::{Counter, Counters, Timing};
use millpond::internals::stats::histogram::Latencies;

const CALLS: u32 = 1_000_000;
const ROUNDS: usize = 31;

fn ns_per_call(mut call: impl FnMut(u64)) -> f64 {
    let start = Instant::now();
    for i in 0..CALLS {
        call(black_box(u64::from(i)));
    }
    start.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

/// The same by two threads at once: their mean.
fn ns_by_two(call: impl Fn(u64) + Sync) -> f64 {
    thread::scope(|scope| {
        let other = scope.spawn(|| ns_per_call(&call));
        let own = ns_per_call(&call);
        other.join().map_or(f64::NAN, |theirs| (own + theirs) / 2.0)
    })
}

fn main() -> io::Result<()> {
    let counters = Counters::new();
    let (always, sampled) = (Latencies::new(1), Latencies::new(64));
    let shared = AtomicU64::new(0);
    let cases: [(&str, &dyn Fn() -> f64); 9] = [
        ("nothing", &|| ns_per_call(|_| ())),
        ("Counters::count", &|| ns_per_call(|_| counters.count(Counter::References))),
        ("Counters::here, three counts", &|| {
            ns_per_call(|bytes| {
                let here = counters.here();
                here.count(Counter::Reads);
                here.count(Counter::Misses);
                here.add(Counter::BytesRead, bytes);
            })
        }),
        ("atomic addition", &|| {
            ns_per_call(|_| {
                shared.fetch_add(1, Ordering::Relaxed);
            })
        }),
        ("Latencies::record", &|| ns_per_call(|ns| always.record(Timing::ReadTime, ns))),
        ("start and stop, each timed", &|| {
            ns_per_call(|_| always.stop(Timing::GetTime, always.start(Timing::GetTime)))
        }),
        ("start and stop, 1 in 64 timed", &|| {
            ns_per_call(|_| sampled.stop(Timing::GetTime, sampled.start(Timing::GetTime)))
        }),
        ("2 threads: Counters::count", &|| ns_by_two(|_| counters.count(Counter::References))),
        ("2 threads: atomic addition", &|| {
            ns_by_two(|_| {
                shared.fetch_add(1, Ordering::Relaxed);
            })
        }),
    ];
    let mut times = vec![Vec::new(); cases.len()];
    for _ in 0..ROUNDS {
        for ((_, measure), times) in cases.iter().zip(&mut times) {
            times.push(measure());
        }
    }
    let mut out = io::stdout().lock();
    for ((name, _), times) in cases.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        writeln!(out, "{name:30} best {:6.2}  median {:6.2}", times[0], times[ROUNDS / 2])?;
    }
    Ok(())
}
