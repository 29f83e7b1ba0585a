//! Many stories, the sum of their counts, and their failures.
//!
//! `CRASH_SEEDS`, `CRASH_SWEEPS` and `CRASH_FROM` say how many and which, where a test lets them,
//! and `CRASH_JOBS` how many at once; `cargo xtask crash` sets them.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use millpond_device::Fault;

use crate::plan::{Blow, FailurePhase, Forced, Plan};
use crate::story::{Tally, tell, tell_forced};
use crate::subject::Subject;
use crate::telling::{alone, asked_for, tell_all};

/// Failures after which the campaign ends, unless `CRASH_FAILURES` asks for another number.
const FAILURES_MAX: u64 = 20;

/// Seeds of a campaign.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    pub from: u64,
    /// Stories.
    pub count: u64,
    /// Stories that are told once for each operation.
    pub sweeps: u64,
    /// Told at once.
    pub jobs: usize,
}

/// A story, or a sweep of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tale {
    Story(u64),
    Sweep(u64),
}

impl Seeds {
    /// Returns the seeds that the environment asks for, with `or` as the default.
    pub fn asked_for(or: Seeds) -> Seeds {
        let (from, count) = (asked_for("CRASH_FROM"), asked_for("CRASH_SEEDS"));
        Seeds {
            from: from.unwrap_or(or.from),
            count: count.unwrap_or(or.count),
            sweeps: asked_for("CRASH_SWEEPS").unwrap_or(or.sweeps),
            jobs: asked_for("CRASH_JOBS").map_or(or.jobs, |jobs: u64| jobs.max(1) as usize),
        }
    }

    fn stories(self) -> impl Iterator<Item = Tale> {
        (self.from..self.from + self.count).map(Tale::Story)
    }

    fn sweeps(self) -> impl Iterator<Item = Tale> {
        (self.from..self.from + self.sweeps).map(Tale::Sweep)
    }

    /// Sweeps, then stories.
    pub fn sweeps_first(self) -> Vec<Tale> {
        self.sweeps().chain(self.stories()).collect()
    }
}

/// One story.
pub fn attempt(subject: &Arc<dyn Subject>, seed: u64) -> Result<Tally, String> {
    let subject = subject.clone();
    alone(move || tell(&*subject, seed)).map_err(|what| {
        // What hangs has not told.
        let plan = Plan::of(seed, &mut fastrand::Rng::with_seed(seed));
        if what.contains("{ seed") { what } else { format!("{what}\n  {plan:?}") }
    })
}

/// One story with a blow at each operation of its run in turn, and then of its recovery.
pub fn sweep(subject: &Arc<dyn Subject>, seed: u64) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let blows = [Blow::Cut, Blow::Fails(Fault::Error), Blow::Fails(Fault::DiskFull)];
    for (place, blow) in
        [FailurePhase::Run, FailurePhase::Recovery].into_iter().flat_map(|p| blows.map(|b| (p, b)))
    {
        for at in 1.. {
            let forced = Forced { place, blow, at };
            let subject = subject.clone();
            let told = alone(move || tell_forced(&*subject, seed, forced));
            let (told, happened) = told.map_err(|what| format!("{forced:?}: {what}"))?;
            tally += told;
            if !happened {
                break;
            }
        }
    }
    Ok(tally)
}

/// A story, or a sweep.
pub fn tell_tale(subject: &Arc<dyn Subject>, tale: Tale) -> Result<Tally, String> {
    match tale {
        Tale::Story(seed) => attempt(subject, seed),
        Tale::Sweep(seed) => sweep(subject, seed),
    }
}

/// Tells all stories; and sweeps. Prints failures at once, and a table at the end.
pub fn run(subject: &Arc<dyn Subject>, seeds: Seeds) -> (Tally, Vec<u64>) {
    let (mut tally, mut failures) = (Tally::default(), Vec::new());
    let tales = seeds.sweeps_first();
    let (mut done, mut shown) = (0, Instant::now());
    let failures_max = asked_for("CRASH_FAILURES").unwrap_or(FAILURES_MAX) as usize;
    let told = |tale, came: Result<Tally, String>| {
        done += 1;
        match came {
            Ok(told) => tally += told,
            Err(what) => {
                let (how, seed) = match tale {
                    Tale::Story(seed) => ("--seeds 1", seed),
                    Tale::Sweep(seed) => ("--seeds 0 --sweeps 1", seed),
                };
                println!("seed {seed} FAILED: {what}");
                println!("  repeat it with: cargo xtask crash {how} --from {seed}\n");
                failures.push(seed);
                if failures.len() == failures_max {
                    println!("{failures_max} failures are enough");
                }
            }
        }
        if shown.elapsed() > Duration::from_secs(5) {
            let crashes: u64 = tally.crashes.iter().sum();
            println!("{done} of {}: {crashes} crashes, {} failures", tales.len(), failures.len());
            shown = Instant::now();
        }
        if failures.len() < failures_max {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    };
    tell_all(&tales, seeds.jobs, |tale| tell_tale(subject, tale), told);
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
        ("deaths of the process", tally.deaths),
        ("I/O errors", tally.faults),
        ("stores closed", tally.closes),
        ("stores checked", tally.checks),
        ("commits", tally.commits),
        ("aborts", tally.aborts),
        ("reads compared", tally.reads),
        ("backups opened", tally.backups),
        ("undone on a full disk", tally.crowded),
        ("refused without their data", tally.refused),
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
