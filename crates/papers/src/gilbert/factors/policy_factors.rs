//! The table: three factors for each policy, and their bytes.

use std::time::Duration;

use crate::cost::Meters;
use crate::experiment::Scale;
use millpond::OwnPolicies;
use millpond_lab::interval::Interval;
use millpond_lab::registry::{PolicyError, Registry};
use millpond_lab::table::{Table, Value};
use millpond_policies::config::Spec;
use millpond_policies::contract::Hit;
use millpond_policies::info::Tier;

use super::corrections::{self, Correction, LEAN, LOOP};
use super::costs::{Cost, Costs, costs};
use super::live_rounds::{hits, rounds};
use millpond_bench::error::{BenchError, BesideError};
use millpond_bench::run::runner::Observer;

/// His search of all frames for each victim (algorithm 1.14).
const LINEAR: [&str; 2] = ["lrd-v1(search=linear)", "lrd-v2(search=linear)"];

/// Live runs of TPC-C, for hit rates.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Live {
    /// Size of its data, and length of its run.
    pub scale: Scale,
    /// The pool, in per cent of the loaded data.
    pub percent: f64,
}

/// Set-up of the measurement.
#[derive(Clone, Debug)]
pub struct Factors {
    /// Policies that run live.
    pub policies: Vec<Spec>,
    /// Pool sizes for the costs, in frames.
    pub frames: Vec<u32>,
    /// Rounds of everything.
    pub rounds: u32,
    /// Time that a round of one policy's hits and victims may take.
    pub limit: Duration,
    /// Run that measures hit rates, if they are measured.
    pub live: Option<Live>,
    /// The scale at which his figures are judged, if they are.
    pub corrections: Option<Scale>,
    /// Seed of references, policies and turns.
    pub seed: u64,
    /// The user's own policies.
    pub own: OwnPolicies,
}

/// A row of the table.
#[derive(Clone, PartialEq, Debug)]
pub struct PolicyFactors {
    /// The policy.
    pub policy: String,
    /// Cost class of a hit: nothing, the frame's metadata, or the policy itself.
    pub hit: Hit,
    /// Hits in per cent of references, live; none where that was not run, or stalled.
    pub hit_percent: Option<Interval>,
    /// Costs, in the order of the sizes.
    pub costs: Vec<Cost>,
    /// Bytes that do not grow with the pool.
    pub fixed_bytes: usize,
}

impl PolicyFactors {
    /// Bytes for each frame, ghosts included, in the largest pool; none without a pool.
    pub fn bytes_per_frame(&self) -> Option<f64> {
        let largest = self.costs.iter().max_by_key(|cost| cost.frames)?;
        let grown = largest.bytes as f64 - self.fixed_bytes as f64;
        Some(grown / f64::from(largest.frames.max(1)))
    }

    /// Returns the cost of a victim in the largest pool over that in the smallest one, from end to
    /// end of both intervals; `None` without two sizes.
    pub fn growth(&self) -> Option<Interval> {
        let least = self.costs.iter().min_by_key(|cost| cost.frames)?;
        let most = self.costs.iter().max_by_key(|cost| cost.frames)?;
        let (below, above) = (least.victim_ns, most.victim_ns);
        (most.frames > least.frames).then(|| Interval {
            mean: above.mean / below.mean,
            low: above.low / below.high,
            high: above.high / below.low,
            runs: 0,
        })
    }
}

/// Everything that came out.
#[derive(Clone, PartialEq, Debug)]
pub struct Result {
    /// The table.
    pub policies: Vec<PolicyFactors>,
    /// Corrections beside the table.
    pub corrections: Vec<Correction>,
}

/// The policies of the table: all of the registry that run live, and what gilbert has beside our
/// defaults.
pub fn table_policies(registry: &Registry) -> std::result::Result<Vec<Spec>, PolicyError> {
    let mut all = Vec::new();
    for entry in registry.entries() {
        if !entry.info.live || entry.info.tier != Tier::First || entry.needs_future {
            continue;
        }
        let id = entry.info.id;
        all.push(Spec { id: id.to_string(), params: Vec::new() });
        let more = [LOOP, LEAN].into_iter().chain(LINEAR);
        for text in more.filter(|text| text.split('(').next() == Some(id)) {
            let wrong = |error| PolicyError::Param { id: id.to_string(), error };
            all.push(Spec::parse(text).map_err(wrong)?);
        }
    }
    Ok(all)
}

/// Measures.
///
/// # Errors
/// A policy that cannot be, or finds no victim; a live run that failed; or the observer stopped
/// it: then nothing is kept.
pub fn factors(
    what: &Factors,
    meters: &Meters,
    observer: &mut dyn Observer,
) -> std::result::Result<Result, BesideError> {
    let wanted = Costs {
        policies: what.policies.clone(),
        frames: what.frames.clone(),
        rounds: what.rounds,
        limit: what.limit,
        seed: what.seed,
    };
    let costs = costs(&wanted, meters, observer)?;
    let names: Vec<String> = what.policies.iter().map(Spec::to_string).collect();
    let hit_rates = match what.live {
        None => vec![None; names.len()],
        Some(live) => hit_rates(what, live, &names, observer)?,
    };
    let mut policies = Vec::new();
    for (((spec, policy), costs), hit_percent) in
        what.policies.iter().zip(names).zip(costs).zip(hit_rates)
    {
        let entry = meters.registry().find(&spec.id)?;
        let fixed_bytes = meters.fixed_bytes(spec)?;
        policies.push(PolicyFactors { policy, hit: entry.hit, hit_percent, costs, fixed_bytes });
    }
    let corrections = match what.corrections {
        None => Vec::new(),
        Some(scale) => {
            let jobs = corrections::jobs(scale, &what.own);
            corrections::corrections(&rounds(&jobs, what.rounds, what.seed, observer)?)
        }
    };
    Ok(Result { policies, corrections })
}

/// Hits in per cent of references, for each policy.
fn hit_rates(
    what: &Factors,
    live: Live,
    names: &[String],
    observer: &mut dyn Observer,
) -> std::result::Result<Vec<Option<Interval>>, BenchError> {
    let job = |name: &String| hits(live.scale, live.percent, name, &what.own);
    let jobs: Vec<_> = names.iter().map(job).collect();
    let rows = rounds(&jobs, what.rounds, what.seed, observer)?;
    Ok(names.iter().map(|name| hit_percent(&rows, name)).collect())
}

/// Returns the policy's hits over the rounds in per cent; `None` where a round did not end.
fn hit_percent(rows: &Table, policy: &str) -> Option<Interval> {
    let own = (0..rows.rows.len()).filter(|row| rows.get(*row, "policy") == Some(&policy.into()));
    let percent = |row| Some(100.0 * rows.get(row, "hit_ratio").and_then(Value::number)?);
    Interval::of_rates(&own.map(percent).collect::<Option<Vec<f64>>>()?)
}
