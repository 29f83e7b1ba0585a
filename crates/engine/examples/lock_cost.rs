//! What an uncontended lock costs: nanoseconds per key for taking and releasing it.
//!
//! `cargo run --release -p millpond --example lock_cost [-- ROUNDS]`
//!
//! One and two threads, each with keys of its own in the same tree, in transactions of 1, 10 and
//! 40 keys in `X` or `S`; a range of keys; and what a read costs that looks whether anybody writes
//! and takes no lock. The rounds of all settings are interleaved; median, least and most are
//! printed, of processor time, which others on the machine disturb least, and by the clock.

use std::hint::black_box;
use std::io::{self, Write};
use std::ops::Bound::Included;
use std::sync::{Arc, Barrier};
use std::time::Instant;

use millpond::internals::lock::{LockManager, LockMode, LockOptions, LockOwner};

const KEYS: usize = 2_000_000;

/// What is measured.
#[derive(Clone, Copy)]
enum Work {
    /// Transactions with this number of keys, an owner reused.
    Keys(LockMode, usize),
    /// One key, and an owner made for it.
    Fresh,
    /// One range of keys.
    Range,
    /// No lock, but a look at whether anybody writes.
    Quiet,
}

fn work(manager: &Arc<LockManager>, thread: u64, work: Work) {
    let mut owner = LockOwner::begin(manager, thread);
    let mut rng = fastrand::Rng::with_seed(thread);
    let mut id = thread;
    let mut next = |owner: &mut LockOwner| {
        id += 2;
        owner.renew(id);
        // Threads have halves of the keys.
        (rng.u64(..1 << 40) << 1 | thread & 1).to_be_bytes()
    };
    match work {
        Work::Keys(mode, count) => {
            for _ in 0..KEYS / count {
                let mut key = next(&mut owner);
                for n in 0..count {
                    key[0] = n as u8;
                    owner.lock_key(5, &key, mode).expect("there is nobody to wait for");
                }
            }
        }
        Work::Fresh => {
            for _ in 0..KEYS {
                let key = next(&mut owner);
                let mut owner = LockOwner::begin(manager, thread);
                owner.lock_key(5, &key, LockMode::X).expect("there is nobody to wait for");
            }
        }
        Work::Range => {
            for _ in 0..KEYS {
                let key = next(&mut owner);
                let range = owner.lock_range(5, Included(&key), Included(&key));
                range.expect("there is nobody to wait for");
            }
        }
        Work::Quiet => {
            for _ in 0..KEYS {
                let token = manager.quiet();
                black_box(token.is_some_and(|token| manager.still_quiet(token)));
            }
        }
    }
}

/// Nanoseconds per key in the slowest thread: of the processor, and by the clock.
fn measure(threads: u64, what: Work) -> [f64; 2] {
    let manager = Arc::new(LockManager::new(LockOptions::default()));
    let start = Barrier::new(threads as usize);
    let slowest = std::thread::scope(|scope| {
        let run = |thread| {
            let (manager, start) = (&manager, &start);
            scope.spawn(move || {
                start.wait();
                let (begun, used) = (Instant::now(), processor_ns());
                work(manager, thread, what);
                [processor_ns() - used, begun.elapsed().as_nanos() as f64]
            })
        };
        let threads: Vec<_> = (0..threads).map(run).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, [f64; 2]>| {
            thread.join().expect("a thread that measures does not panic")
        };
        let slower = |a: [f64; 2], b: [f64; 2]| [a[0].max(b[0]), a[1].max(b[1])];
        threads.into_iter().map(join).fold([0.0; 2], slower)
    });
    slowest.map(|ns| ns / KEYS as f64)
}

/// Processor time of the calling thread.
fn processor_ns() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

fn main() -> io::Result<()> {
    let rounds = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(7usize);
    let settings = [
        ("X, 1 key a transaction", Work::Keys(LockMode::X, 1)),
        ("X, 10 keys", Work::Keys(LockMode::X, 10)),
        ("X, 40 keys", Work::Keys(LockMode::X, 40)),
        ("S, 1 key a transaction", Work::Keys(LockMode::S, 1)),
        ("S, 10 keys", Work::Keys(LockMode::S, 10)),
        ("S, 40 keys", Work::Keys(LockMode::S, 40)),
        ("X, 1 key, owner not reused", Work::Fresh),
        ("a range a transaction", Work::Range),
        ("no lock, quiet?", Work::Quiet),
    ];
    let mut taken = vec![[const { Vec::new() }; 2]; settings.len()];
    for _ in 0..rounds.max(1) {
        for (taken, (_, what)) in taken.iter_mut().zip(settings) {
            for (taken, threads) in taken.iter_mut().zip([1, 2]) {
                taken.push(measure(threads, what));
            }
        }
    }
    let mut out = io::stdout();
    writeln!(out, "{:<28} {:>30} {:>30}", "ns per key", "1 thread", "2 threads")?;
    for (taken, (name, _)) in taken.iter().zip(settings) {
        let [one, two] = taken.each_ref().map(|taken| {
            let [processor, clock] = [0, 1].map(|which| {
                let mut taken: Vec<f64> = taken.iter().map(|both: &[f64; 2]| both[which]).collect();
                taken.sort_by(f64::total_cmp);
                let (least, most) = (taken[0], taken[taken.len() - 1]);
                format!("{:.0} ({least:.0}-{most:.0})", taken[taken.len() / 2])
            });
            format!("{processor} / {clock}")
        });
        writeln!(out, "{name:<28} {one:>30} {two:>30}")?;
    }
    Ok(())
}
