//! Costs of hits and victims over pool sizes, in rounds.

use std::time::Duration;

use crate::cost::{CostMeter, Meters, References, Tally};
use millpond_base::Seed;
use millpond_lab::interval::Interval;
use millpond_policies::config::Spec;

use millpond_bench::error::{BenchError, BesideError};
use millpond_bench::run::runner::Observer;
use millpond_bench::run::turns;

/// Number of policies that are in memory at once and take turns.
const GROUP: usize = 8;
/// Minimum victims of a round.
const VICTIMS_LEAST: u64 = 20_000;

/// Set-up of the measurement.
#[derive(Clone, Debug)]
pub struct Costs {
    /// Policies.
    pub policies: Vec<Spec>,
    /// Pool sizes, in frames.
    pub frames: Vec<u32>,
    /// Rounds, after one for warm-up.
    pub rounds: u32,
    /// Time limit of one policy's round, without its last block.
    pub limit: Duration,
    /// Seed of references, policies and turns.
    pub seed: u64,
}

/// Costs of a policy in a pool of one size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    /// Frames of the pool.
    pub frames: u32,
    /// Nanoseconds of a hit, over the rounds.
    pub hit_ns: Interval,
    /// Nanoseconds of a victim, with the admission of the page that replaces it.
    pub victim_ns: Interval,
    /// Number of measured victims.
    pub victims: u64,
    /// Number of measured hits.
    pub hits: u64,
    /// Bytes of the policy's state at the end, ghosts included.
    pub bytes: usize,
}

/// Returns the victims of a round: one and a half pools. A policy that sorts when three quarters of
/// its order are used up then sorts equally often in each round.
pub fn victims_of(frames: u32) -> u64 {
    (u64::from(frames) * 3 / 2).max(VICTIMS_LEAST)
}

/// Measures the costs of each policy, in the order of the sizes.
///
/// # Errors
/// A policy cannot be built or finds no victim, or the observer stopped the run.
pub fn costs(
    what: &Costs,
    meters: &Meters,
    observer: &mut dyn Observer,
) -> Result<Vec<Vec<Cost>>, BesideError> {
    let mut all: Vec<Vec<Cost>> = vec![Vec::new(); what.policies.len()];
    for frames in &what.frames {
        observer.begin(&format!("references to a pool of {frames} frames"));
        let references = References::new(*frames, what.seed);
        for (group, of_group) in what.policies.chunks(GROUP).zip(all.chunks_mut(GROUP)) {
            let costs = in_turns(what, group, *frames, &references, meters, observer)?;
            of_group.iter_mut().zip(costs).for_each(|(all, cost)| all.push(cost));
        }
    }
    Ok(all)
}

/// Measures policies that take turns in pools of one size.
fn in_turns(
    what: &Costs,
    policies: &[Spec],
    frames: u32,
    references: &References,
    every: &Meters,
    observer: &mut dyn Observer,
) -> Result<Vec<Cost>, BesideError> {
    let mut meters: Vec<Box<dyn CostMeter>> = Vec::new();
    let victims = victims_of(frames);
    for spec in policies {
        begin(observer, &format!("{frames} frames, warm-up: {spec}"))?;
        let mut meter = every.meter(spec, frames, references, what.seed)?;
        meter.run(victims, what.limit)?;
        meters.push(meter);
    }
    let mut tallies: Vec<Vec<Tally>> = vec![Vec::new(); policies.len()];
    for round in 0..what.rounds {
        for at in turns::order(Seed(what.seed), round, policies.len()) {
            let (of, name) = (what.rounds, &policies[at]);
            begin(observer, &format!("{frames} frames, round {} of {of}: {name}", round + 1))?;
            tallies[at].push(meters[at].run(victims, what.limit)?);
        }
    }
    let cost = |(bytes, tallies): (usize, &Vec<Tally>)| {
        let of = |ns: fn(&Tally) -> Option<f64>| {
            let each: Vec<f64> = tallies.iter().filter_map(ns).collect();
            Interval::of_rates(&each).ok_or(BenchError::Stopped)
        };
        Ok(Cost {
            frames,
            hit_ns: of(Tally::hit_ns)?,
            victim_ns: of(Tally::victim_ns)?,
            victims: tallies.iter().map(|tally| tally.victims).sum(),
            hits: tallies.iter().map(|tally| tally.hits).sum(),
            bytes,
        })
    };
    meters.iter().map(|meter| meter.bytes()).zip(&tallies).map(cost).collect()
}

fn begin(observer: &mut dyn Observer, what: &str) -> Result<(), BenchError> {
    observer.begin(what);
    if observer.stop() { Err(BenchError::Stopped) } else { Ok(()) }
}
