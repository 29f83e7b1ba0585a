//! Many stories, what they saw in all, and what went wrong.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::story::{Tally, tell};
use crate::subject::Subject;

/// A story that takes so long does not end.
const PATIENCE: Duration = Duration::from_secs(120);
/// Failures after which the campaign ends.
const FAILURES_MAX: usize = 20;

/// Which seeds.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    pub from: u64,
    pub count: u64,
}

/// One story in a thread of its own: it may panic, and it may hang.
pub fn attempt(subject: &Arc<dyn Subject>, seed: u64) -> Result<Tally, String> {
    let (sender, receiver) = mpsc::channel();
    let subject = subject.clone();
    std::thread::spawn(move || {
        let told = catch_unwind(AssertUnwindSafe(|| tell(&*subject, seed)));
        let told = told.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            Err(format!("a panic: {}", text.unwrap_or_default()))
        });
        // Nobody listens any more if it took too long.
        let _ = sender.send(told);
    });
    let hangs = |_| Err(format!("the story does not end within {PATIENCE:?}"));
    receiver.recv_timeout(PATIENCE).unwrap_or_else(hangs)
}

/// Tells all stories. Prints failures at once, and a table at the end.
pub fn run(subject: &Arc<dyn Subject>, seeds: Seeds) -> (Tally, Vec<u64>) {
    let (mut tally, mut failures) = (Tally::default(), Vec::new());
    let tenth = seeds.count.div_ceil(10).max(1);
    for (done, seed) in (1..).zip(seeds.from..seeds.from + seeds.count) {
        match attempt(subject, seed) {
            Ok(told) => tally += told,
            Err(what) => {
                println!("seed {seed} FAILED: {what}");
                failures.push(seed);
            }
        }
        if failures.len() >= FAILURES_MAX {
            println!("{FAILURES_MAX} failures are enough");
            break;
        }
        if done % tenth == 0 && seeds.count > 100 {
            let crashes: u64 = tally.crashes.iter().sum();
            println!("{done} of {} stories, {crashes} crashes", seeds.count);
        }
    }
    print(&tally, &failures);
    (tally, failures)
}

fn print(tally: &Tally, failures: &[u64]) {
    let [run, recovery, again] = tally.crashes;
    let rows = [
        ("stories", tally.stories),
        ("times opened and used", tally.lives),
        ("crashes", run + recovery + again),
        ("  in the run", run),
        ("  in recovery", recovery),
        ("  in recovery's recovery", again),
        ("I/O errors", tally.faults),
        ("stores closed", tally.closes),
        ("stores checked", tally.checks),
        ("commits", tally.commits),
        ("aborts", tally.aborts),
        ("reads compared", tally.reads),
        ("I/O operations", tally.operations),
        ("failures", failures.len() as u64),
    ];
    for (name, number) in rows {
        println!("{name:<26} {number:>12}");
    }
    if !failures.is_empty() {
        println!("failed seeds: {failures:?}");
    }
}
