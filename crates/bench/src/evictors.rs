//! How fast pages are evicted while nothing else runs (watt 6.4).
//!
//! The workload fills the pool; then it pauses while a number of threads evict a part of it: once
//! when all pages are clean, once when all are dirty and must be written first. Then it fills the
//! pool again. Policies take turns, in an order dealt for each round, so that ratios within a round
//! say more than the machine's mood.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use millpond::internals::pool::{Evicted, Pool, PoolError, PoolStrategy};
use millpond_base::{Reason, Seed};

use crate::client::Workload;
use crate::error::BenchError;
use crate::instance::{Instance, InstanceInfo, prepare};
use crate::runner::Observer;
use crate::setup::Setup;
use crate::turns;
use millpond_lab::interval::Interval;

/// What is to be evicted, and by whom.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Evict {
    /// Threads that evict.
    pub threads: u32,
    /// The share of the pool that is evicted.
    pub share: f64,
    /// Whether all pages are dirty; else all are clean.
    pub dirty: bool,
}

/// The result of one eviction run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Out {
    /// Seconds from the first thread's start to the last one's end.
    pub seconds: f64,
    /// What all threads did.
    pub evicted: Evicted,
}

/// Runs the workload, a number of operations at a time, until hardly a frame is free.
pub(crate) fn fill<M: PoolStrategy>(
    pool: &Pool<M>,
    mut run: impl FnMut(u64) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    /// Times in a row that the workload may bring no page that was not there.
    const FRUITLESS_MAX: u32 = 8;
    let frames = pool.frames();
    // Evicting in batches leaves some free at any time.
    let full = frames / 50 + 3 * (frames / 64).clamp(1, 64);
    let (mut free, mut fruitless) = (pool.frames_free(), 0);
    while fruitless < FRUITLESS_MAX {
        if free <= full {
            return Ok(());
        }
        run(u64::from(frames).max(1_000))?;
        let now = pool.frames_free();
        fruitless = if now < free { 0 } else { fruitless + 1 };
        free = now;
    }
    Err(BenchError::Usage(format!(
        "the workload does not fill the pool: {free} of {frames} frames are still free. More rows \
         or a smaller pool will do"
    )))
}

/// Evicts a part of a pool that no other thread uses.
pub(crate) fn evict<M: PoolStrategy>(pool: &Pool<M>, what: &Evict) -> Result<Out, BenchError> {
    pool.flush(Reason::Recov)?;
    if what.dirty && pool.make_dirty() == 0 {
        let text = "no page can be made dirty: a store with a log (--log on) cannot be measured so";
        return Err(BenchError::Usage(text.into()));
    }
    let (free, frames) = (pool.frames_free(), pool.frames());
    let target = (free + (f64::from(frames) * what.share) as u32).min(frames);
    let start_line = Barrier::new(what.threads as usize + 1);
    let work = || {
        start_line.wait();
        let start = Instant::now();
        (start, pool.evict_until(target), Instant::now())
    };
    let all = thread::scope(|scope| {
        let threads: Vec<_> = (0..what.threads).map(|_| scope.spawn(work)).collect();
        start_line.wait();
        threads.into_iter().map(thread::ScopedJoinHandle::join).collect::<Result<Vec<_>, _>>()
    });
    let all = all.map_err(|_| BenchError::Drive("an evicting thread panicked".into()))?;
    let first = all.iter().map(|(start, ..)| *start).min();
    let last = all.iter().map(|(.., end)| *end).max();
    let seconds = first.zip(last).map_or(0.0, |(first, last)| (last - first).as_secs_f64());
    let parts: Result<Vec<Evicted>, PoolError> = all.into_iter().map(|(_, part, _)| part).collect();
    let evicted = parts?.into_iter().fold(Evicted::default(), |all, part| all + part);
    if pool.frames_free() < target {
        let text = format!("only {} of {target} frames could be freed", pool.frames_free());
        return Err(BenchError::Drive(text.into()));
    }
    Ok(Out { seconds, evicted })
}

/// Policies against each other.
#[derive(Clone, Debug)]
pub struct Contest {
    /// The engine, but for its policy; a pool without a size is half as large as the data.
    pub setup: Setup,
    /// What fills the pool.
    pub workload: Workload,
    /// The policies; ratios are to the first one.
    pub policies: Vec<String>,
    /// Numbers of threads that evict.
    pub threads: Vec<u32>,
    /// The share of the pool that is evicted.
    pub share: f64,
    /// Rounds.
    pub rounds: u32,
}

/// A policy's result, for one number of threads, clean or dirty.
#[derive(Clone, PartialEq, Debug)]
pub struct Speed {
    /// The bed.
    pub info: InstanceInfo,
    /// What was evicted by whom.
    pub what: Evict,
    /// Evictions per second, of all threads.
    pub per_s: Interval,
    /// The same over the first policy's, within the rounds.
    pub to_first: Interval,
    /// The cost of each evicted page.
    pub rates: Rates,
}

/// Runs the contest: for each way to evict, a [`Speed`] for each policy.
///
/// # Errors
/// What loading or a run reports, or that not even one round was finished.
pub fn contest(what: &Contest, observer: &mut dyn Observer) -> Result<Vec<Speed>, BenchError> {
    let mut instances: Vec<Box<dyn Instance>> = Vec::new();
    for policy in &what.policies {
        let mut setup = what.setup.clone();
        setup.options.policy = policy.clone();
        setup.pool = setup.pool.or(Some(millpond_base::Size::Share(0.5)));
        instances.push(prepare(&setup, &what.workload, observer)?);
    }
    let ways = what.threads.iter().flat_map(|threads| {
        [false, true].map(|dirty| Evict { threads: *threads, share: what.share, dirty })
    });
    let ways: Vec<Evict> = ways.collect();
    let mut outs: Vec<Vec<Vec<Out>>> = vec![vec![Vec::new(); instances.len()]; ways.len()];
    let seed = Seed(what.setup.options.lab.seed);
    'rounds: for round in 0..what.rounds {
        for (way, outs) in ways.iter().zip(&mut outs) {
            let pages = if way.dirty { "dirty" } else { "clean" };
            for at in turns::order(seed, round, instances.len()) {
                let name = &what.policies[at];
                let (of, threads) = (what.rounds, way.threads);
                observer.begin(&format!("round {} of {of}: {name}, {threads}, {pages}", round + 1));
                if observer.stop() {
                    break 'rounds;
                }
                outs[at].push(instances[at].evict(way, observer)?);
            }
        }
    }
    let mut speeds = Vec::new();
    for (way, outs) in ways.iter().zip(&outs) {
        for (instance, own) in instances.iter().zip(outs) {
            speeds.push(speed(instance.info(), way, own, &outs[0]).ok_or(BenchError::Stopped)?);
        }
    }
    Ok(speeds)
}

/// The result of several rounds of eviction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rates {
    /// Pages evicted.
    pub pages: u64,
    /// Candidates that the policy examined for each evicted page.
    pub looked: f64,
    /// Pages written for each evicted page.
    pub written: f64,
    /// Nanoseconds for each candidate, everything included.
    pub candidate_ns: f64,
}

impl Rates {
    /// The rounds together, with `threads` threads.
    pub fn of(outs: &[Out], threads: u32) -> Rates {
        let evicted = outs.iter().fold(Evicted::default(), |all, out| all + out.evicted);
        let (pages, looked) = (evicted.pages.max(1) as f64, evicted.looked as f64);
        let seconds: f64 = outs.iter().map(|out| out.seconds).sum();
        Rates {
            pages: evicted.pages,
            looked: looked / pages,
            written: evicted.written as f64 / pages,
            candidate_ns: seconds * 1e9 * f64::from(threads) / looked.max(1.0),
        }
    }
}

impl Out {
    /// Evictions per second.
    pub fn per_s(&self) -> f64 {
        self.evicted.pages as f64 / self.seconds.max(1e-9)
    }
}

/// `None` without a round, or with one in which nothing went.
fn speed(info: &InstanceInfo, what: &Evict, own: &[Out], first: &[Out]) -> Option<Speed> {
    let per_s = |outs: &[Out]| -> Vec<f64> { outs.iter().map(Out::per_s).collect() };
    // A contest that was stopped may have left rounds half done.
    let rounds = own.len().min(first.len());
    let (own, first) = (own.get(..rounds)?, first.get(..rounds)?);
    let rates = Rates::of(own, what.threads);
    Some(Speed {
        info: info.clone(),
        what: *what,
        per_s: Interval::of_rates(&per_s(own))?,
        to_first: Interval::of_ratios(&per_s(own), &per_s(first))?,
        rates,
    })
}
