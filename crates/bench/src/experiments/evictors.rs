//! Speed of eviction while nothing else runs (watt 6.4).
//!
//! The workload fills the pool, then pauses while several threads evict a part of it: once with all
//! pages clean, once with all pages dirty, so that they must be written first. Then it fills the
//! pool again. Policies take turns, in an order dealt for each round, so that ratios within a round
//! do not depend on the machine's mood.

use millpond::internals::pool::Evicted;
use millpond_base::Seed;

use crate::error::BenchError;
use crate::instance::eviction::{Evict, Out, Pages};
use crate::instance::setup::Setup;
use crate::instance::{Instance, InstanceInfo, prepare};
use crate::run::client::Workload;
use crate::run::runner::Observer;
use crate::run::turns;
use millpond_lab::interval::Interval;

/// Policies to compare.
#[derive(Clone, Debug)]
pub struct Contest {
    /// Engine, except for its policy. A pool without a size is half as large as the data.
    pub setup: Setup,
    /// Workload that fills the pool.
    pub workload: Workload,
    /// The policies; ratios are to the first one.
    pub policies: Vec<String>,
    /// Numbers of threads that evict.
    pub threads: Vec<u32>,
    /// Share of the pool to evict.
    pub share: f64,
    /// Rounds.
    pub rounds: u32,
}

/// A policy's result, for one number of threads, clean or dirty.
#[derive(Clone, PartialEq, Debug)]
pub struct Speed {
    /// The instance.
    pub info: InstanceInfo,
    /// Evicting threads, and the share and state of the pages that they evict.
    pub what: Evict,
    /// Evictions per second, of all threads.
    pub per_s: Interval,
    /// Ratio to the first policy, within the rounds.
    pub to_first: Interval,
    /// The cost of each evicted page.
    pub rates: Rates,
}

/// Runs the contest: for each way to evict, a [`Speed`] for each policy.
///
/// # Errors
/// Errors of loading or of a run, or an error if not even one round was finished.
pub fn contest(what: &Contest, observer: &mut dyn Observer) -> Result<Vec<Speed>, BenchError> {
    let mut instances: Vec<Box<dyn Instance>> = Vec::new();
    for policy in &what.policies {
        let mut setup = what.setup.clone();
        setup.options.policy = policy.clone();
        setup.pool = setup.pool.or(Some(millpond_base::Size::Share(0.5)));
        instances.push(prepare(&setup, &what.workload, observer)?);
    }
    let ways = what.threads.iter().flat_map(|threads| {
        let way = |pages| Evict { threads: *threads, share: what.share, pages };
        [Pages::Clean, Pages::Dirty].map(way)
    });
    let ways: Vec<Evict> = ways.collect();
    let mut outs: Vec<Vec<Vec<Out>>> = vec![vec![Vec::new(); instances.len()]; ways.len()];
    let seed = Seed(what.setup.options.lab.seed);
    'rounds: for round in 0..what.rounds {
        for (way, outs) in ways.iter().zip(&mut outs) {
            let pages = way.pages.name();
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
    /// Sums up the rounds, with `threads` threads.
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

/// Returns a policy's speed; `None` without a round, or if a round evicted nothing.
fn speed(info: &InstanceInfo, what: &Evict, own: &[Out], first: &[Out]) -> Option<Speed> {
    let per_s = |outs: &[Out]| -> Vec<f64> { outs.iter().map(Out::per_s).collect() };
    // A stopped contest may have left a round half done.
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
