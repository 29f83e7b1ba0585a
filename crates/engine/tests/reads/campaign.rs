//! Many stories at once, what they saw in all, and what went wrong.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use crate::plan::Plan;
use crate::story::tell;
use crate::world::Tally;

/// A story that takes so long does not end.
const PATIENCE: Duration = Duration::from_secs(120);
/// Failures after which the campaign ends.
const FAILURES_MAX: usize = 20;

/// Which stories, and how many at once.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    pub from: u64,
    pub count: u64,
    pub jobs: usize,
}

impl Seeds {
    /// Those that the environment asks for, or these.
    pub fn asked_for(or: Seeds) -> Seeds {
        let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        Seeds {
            from: number("READS_FROM").unwrap_or(or.from),
            count: number("READS_SEEDS").unwrap_or(or.count),
            jobs: number("READS_JOBS").map_or(or.jobs, |jobs| jobs.max(1) as usize),
        }
    }
}

/// One story, in a thread of its own: it may panic, and it may hang.
pub fn attempt(seed: u64) -> Result<Tally, String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let told = catch_unwind(AssertUnwindSafe(|| tell(seed))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            Err(format!("a panic: {}\n  {:?}", text.unwrap_or_default(), Plan::of(seed)))
        });
        // Nobody listens any more if it took too long.
        let _ = sender.send(told);
    });
    receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        Err(format!("seed {seed} does not end within {PATIENCE:?}\n  {:?}", Plan::of(seed)))
    })
}

/// Tells all stories. Prints failures at once, and a table at the end.
pub fn run(seeds: Seeds) -> (Tally, Vec<u64>) {
    let next = AtomicU64::new(seeds.from);
    let all = Mutex::new((Tally::default(), Vec::new(), Instant::now()));
    std::thread::scope(|scope| {
        for _ in 0..seeds.jobs {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.from + seeds.count {
                        return;
                    }
                    let told = attempt(seed);
                    let mut all = all.lock().unwrap();
                    let (tally, failures, shown) = &mut *all;
                    match told {
                        Ok(told) => *tally += told,
                        Err(what) => {
                            println!("seed {seed} FAILED: {what}");
                            let again = "cargo xtask crash --reads --seeds 1 --from";
                            println!("  repeat it with: {again} {seed}\n");
                            failures.push(seed);
                        }
                    }
                    if failures.len() >= FAILURES_MAX {
                        return;
                    }
                    if shown.elapsed() > Duration::from_secs(5) {
                        let (done, total) = (tally.stories, seeds.count);
                        println!("{done} of {total} stories, {} failures", failures.len());
                        *shown = Instant::now();
                    }
                }
            });
        }
    });
    let (tally, mut failures, _) = all.into_inner().unwrap();
    failures.sort_unstable();
    print(&tally, &failures);
    (tally, failures)
}

fn print(tally: &Tally, failures: &[u64]) {
    let rows = [
        ("stories", tally.stories),
        ("answers judged", tally.answers),
        ("errors judged", tally.errors),
        ("reads that went wrong", tally.misreads),
        ("  with other bytes", tally.changed),
        ("opens that failed", tally.opens_failed),
        ("recoveries", tally.recoveries),
        ("backups opened", tally.backups),
        ("stores checked", tally.checks),
        ("pages lost by errors", tally.lost_pages),
        ("lost writes that fitted each other", tally.entangled_stories),
        ("stories with a stale answer", tally.stale_stories),
        ("  stale answers", tally.stale_answers),
        ("failures", failures.len() as u64),
    ];
    for (name, number) in rows {
        println!("{name:<28} {number:>12}");
    }
    if !failures.is_empty() {
        println!("failed seeds: {failures:?}");
    }
}
