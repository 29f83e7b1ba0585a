//! Many stories at once, the sum of their counts, and their failures.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crate::plan::Plan;
use crate::story::tell;
use crate::telling::{alone, asked_for, tell_all};
use crate::world::Tally;

/// Failures after which the campaign ends, unless `READS_FAILURES` asks for another number.
const FAILURES_MAX: u64 = 20;

/// Stories of a campaign, and the number told at once.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    pub from: u64,
    pub count: u64,
    pub jobs: usize,
}

impl Seeds {
    /// Returns the seeds that the environment asks for, with `or` as the default.
    pub fn asked_for(or: Seeds) -> Seeds {
        Seeds {
            from: asked_for("READS_FROM").unwrap_or(or.from),
            count: asked_for("READS_SEEDS").unwrap_or(or.count),
            jobs: asked_for("READS_JOBS").map_or(or.jobs, |jobs: u64| jobs.max(1) as usize),
        }
    }
}

/// One story.
pub fn attempt(seed: u64) -> Result<Tally, String> {
    alone(move || tell(seed)).map_err(|what| {
        // What hangs, or panics, has not told.
        let plan = format!("{:?}", Plan::of(seed));
        if what.contains(&plan) { what } else { format!("{what}\n  {plan}") }
    })
}

/// Tells all stories. Prints failures at once, and a table at the end.
pub fn run(seeds: Seeds) -> (Tally, Vec<u64>) {
    let (mut tally, mut failures) = (Tally::default(), Vec::new());
    let tales: Vec<u64> = (seeds.from..seeds.from + seeds.count).collect();
    let mut shown = Instant::now();
    let failures_max = asked_for("READS_FAILURES").unwrap_or(FAILURES_MAX) as usize;
    tell_all(&tales, seeds.jobs, attempt, |seed, came| {
        match came {
            Ok(told) => tally += told,
            Err(what) => {
                println!("seed {seed} FAILED: {what}");
                let again = "cargo xtask crash --reads --seeds 1 --from";
                println!("  repeat it with: {again} {seed}\n");
                failures.push(seed);
            }
        }
        if shown.elapsed() > Duration::from_secs(5) {
            let (done, total) = (tally.stories, seeds.count);
            println!("{done} of {total} stories, {} failures", failures.len());
            shown = Instant::now();
        }
        if failures.len() < failures_max {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
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
        ("copies misread, write-back", tally.copies_misread),
        ("  errors that named one", tally.copy_errors),
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
