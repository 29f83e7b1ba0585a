//! Many stories, what they saw in all, and what went wrong.
//!
//! `CRASH_SEEDS`, `CRASH_SWEEPS` and `CRASH_FROM` say how many and which, where a test lets them,
//! and `CRASH_JOBS` how many at once; `cargo xtask crash` sets them. A story's threads wait more
//! than they run, so that some more of them at once than there are processors end sooner.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use millpond::internals::io::Fault;

use crate::plan::{Blow, Forced, Place, Plan};
use crate::story::{Tally, tell, tell_forced};
use crate::subject::Subject;

/// A story that takes so long does not end.
const PATIENCE: Duration = Duration::from_secs(120);
/// Failures after which the campaign ends.
const FAILURES_MAX: usize = 20;

/// Which seeds.
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

/// How many tales are told at once where nothing else is asked for.
pub fn jobs() -> usize {
    2 * std::thread::available_parallelism().map_or(1, usize::from)
}

impl Seeds {
    /// Those that the environment asks for, or these.
    pub fn asked_for(or: Seeds) -> Seeds {
        let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
        let (from, count) = (number("CRASH_FROM"), number("CRASH_SEEDS"));
        Seeds {
            from: from.unwrap_or(or.from),
            count: count.unwrap_or(or.count),
            sweeps: number("CRASH_SWEEPS").unwrap_or(or.sweeps),
            jobs: number("CRASH_JOBS").map_or(or.jobs, |jobs: u64| jobs.max(1) as usize),
        }
    }

    fn stories(self) -> impl Iterator<Item = Tale> {
        (self.from..self.from + self.count).map(Tale::Story)
    }

    fn sweeps(self) -> impl Iterator<Item = Tale> {
        (self.from..self.from + self.sweeps).map(Tale::Sweep)
    }

    /// Stories, then sweeps.
    #[cfg(feature = "planted")]
    pub fn stories_first(self) -> Vec<Tale> {
        self.stories().chain(self.sweeps()).collect()
    }

    /// Sweeps, then stories.
    pub fn sweeps_first(self) -> Vec<Tale> {
        self.sweeps().chain(self.stories()).collect()
    }
}

/// What is told in a thread of its own: it may panic, and it may hang.
fn alone<T: Send + 'static>(
    told: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let told = catch_unwind(AssertUnwindSafe(told)).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            Err(format!("a panic: {}", text.unwrap_or_default()))
        });
        // Nobody listens any more if it took too long.
        let _ = sender.send(told);
    });
    let orphaned = |_| Err(format!("the story does not end within {PATIENCE:?}"));
    receiver.recv_timeout(PATIENCE).unwrap_or_else(orphaned)
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
        [Place::Run, Place::Recovery].into_iter().flat_map(|p| blows.map(|b| (p, b)))
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

/// Tells `tales`, up to `jobs` at once, and hands each with what came of it to `told`, in the order
/// in which they end, until that breaks; those under way are then still handed to it.
pub fn tell_all(
    subject: &Arc<dyn Subject>,
    tales: &[Tale],
    jobs: usize,
    told: &mut dyn FnMut(Tale, Result<Tally, String>) -> ControlFlow<()>,
) {
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let (sender, next, is_over) = (sender.clone(), &next, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed)
                    && let Some(&tale) = tales.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let came = match tale {
                        Tale::Story(seed) => attempt(subject, seed),
                        Tale::Sweep(seed) => sweep(subject, seed),
                    };
                    if sender.send((tale, came)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (tale, came) in receiver {
            if told(tale, came).is_break() {
                is_over.store(true, Ordering::Relaxed);
            }
        }
    });
}

/// Tells all stories; and sweeps. Prints failures at once, and a table at the end.
pub fn run(subject: &Arc<dyn Subject>, seeds: Seeds) -> (Tally, Vec<u64>) {
    let (mut tally, mut failures) = (Tally::default(), Vec::new());
    let tales = seeds.sweeps_first();
    let (mut done, mut shown) = (0, Instant::now());
    tell_all(subject, &tales, seeds.jobs, &mut |tale, came| {
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
                if failures.len() == FAILURES_MAX {
                    println!("{FAILURES_MAX} failures are enough");
                }
            }
        }
        if shown.elapsed() > Duration::from_secs(5) {
            let crashes: u64 = tally.crashes.iter().sum();
            println!("{done} of {}: {crashes} crashes, {} failures", tales.len(), failures.len());
            shown = Instant::now();
        }
        if failures.len() < FAILURES_MAX {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
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
