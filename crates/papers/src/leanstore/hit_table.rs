//! The table of hit rates of leanstore VI-B: page references of lookups in a tree larger than the
//! pool, recorded from the engine and simulated under each policy.
//!
//! The paper has 41 M rows of 8 and 120 bytes in pages of 16 KiB, a pool of a fifth of the data,
//! and lookups of Zipf-distributed keys with exponent 1.0. It counts hits over all page accesses.
//! It does not state the placement of popular keys, or the way of loading the tree. Here the rows
//! are bulk-loaded, and popular keys may be neighbours or scattered.

use crate::simulated::{KindHits, hits_by_kind};
use millpond_base::Size;
use millpond_lab::registry::Registry;
use millpond_lab::sim::{Future, Renumber, SimOptions};
use millpond_policies::config::Spec;
use millpond_workload::keys::{Distribution, Scramble};
use millpond_workload::trace::Batch;
use millpond_workload::ycsb::{self, LoadOrder};

use millpond_bench::error::{BenchError, BesideError};
use millpond_bench::instance::setup::Setup;
use millpond_bench::instance::{Recorders, prepare};
use millpond_bench::run::client::Workload;
use millpond_bench::run::counts::Counts;
use millpond_bench::run::record::Kept;
use millpond_bench::run::runner::{Length, Observer, RunSpec};

/// Rows of the paper's data set.
pub const PAPER_ROWS: u64 = 41_000_000;

/// Policies with the paper's hit rates, in per cent.
pub const PAPER: [(&str, f64); 9] = [
    ("random", 92.5),
    ("fifo", 92.5),
    ("lean-evict(cooling=5%)", 92.7),
    ("lean-evict(cooling=10%)", 92.8),
    ("lean-evict(cooling=20%)", 92.9),
    ("lean-evict(cooling=50%)", 93.0),
    ("lru", 93.1),
    ("2q", 93.8),
    ("opt", 96.3),
];

/// Policy of the live pool.
pub const LIVE: &str = "lean-evict(cooling=10%)";

/// Set-up of the experiment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Experiment {
    /// Rows of the tree.
    pub rows: u64,
    /// Bytes of a page.
    pub page_size: u32,
    /// The exponent of the Zipf distribution.
    pub theta: f64,
    /// Spread of popular keys over the tree.
    pub scramble: Scramble,
    /// Lookups of the warm-up of pool and policies.
    pub warm_up: u64,
    /// Lookups that count.
    pub lookups: u64,
    /// Seed of keys and policies.
    pub seed: u64,
}

impl Experiment {
    /// Returns the paper's experiment, with its data divided by `divisor`.
    pub fn paper(divisor: u64) -> Experiment {
        let rows = PAPER_ROWS / divisor.max(1);
        Experiment {
            rows,
            page_size: 16384,
            theta: 1.0,
            scramble: Scramble::Permute,
            warm_up: rows / 2,
            lookups: rows / 2,
            seed: 1,
        }
    }

    fn setup(&self) -> Setup {
        let mut options = Setup::new().options.page_size(self.page_size).policy(LIVE);
        options = options.lab(|lab| {
            lab.tiny_pages = true;
            lab.seed = self.seed;
        });
        Setup { options, pool: Some(Size::Share(0.2)), records: true, ..Setup::new() }
    }

    fn workload(&self) -> Workload {
        Workload::Ycsb(ycsb::Config {
            distribution: Distribution::Zipf { theta: self.theta },
            scramble: self.scramble,
            load_order: LoadOrder::Ascending,
            ..ycsb::Config::leanstore(self.rows)
        })
    }
}

/// Results of the experiment.
#[derive(Clone, Debug)]
pub struct HitTable {
    /// Pages of the data.
    pub pages: u64,
    /// Frames of the pool.
    pub frames: u32,
    /// Page references per lookup: the height of the tree.
    pub references_per_lookup: f64,
    /// Counts of the live pool.
    pub live: Counts,
    /// Each policy of [`PAPER`], in order, simulated over the same references.
    pub simulated: Vec<KindHits>,
}

/// Runs the experiment.
///
/// # Errors
/// [`BesideError`].
pub fn hit_table(
    experiment: &Experiment,
    registry: &Registry,
    observer: &mut dyn Observer,
) -> Result<HitTable, BesideError> {
    let mut instance = prepare(&experiment.setup(), &experiment.workload(), observer)?;
    let kept = Kept::default();
    let mut spec = RunSpec::of(Length::Operations(experiment.warm_up));
    spec.warm_up = Length::NONE;
    observer.begin("lookups, warming up");
    let mut start = |recorders: Recorders<'_>| match recorders.pages {
        Some(recorder) => {
            recorder.start(Box::new(kept.clone()), false);
            Ok(())
        }
        None => Err(BenchError::Usage("this pool cannot record".to_string())),
    };
    let warm = instance.run(&spec, &mut start, observer)?;
    spec.measure = Length::Operations(experiment.lookups);
    observer.begin("lookups");
    let outcome = instance.run(&spec, &mut |_| Ok(()), observer)?;
    if warm.was_stopped || outcome.was_stopped {
        return Err(BenchError::Stopped.into());
    }
    let stopped = instance.recorders().pages.map_or(Ok(0), |recorder| recorder.stop());
    stopped.map_err(BenchError::Record)?;
    let (pages, frames) = (instance.info().pages, instance.info().frames.unwrap_or(0));
    drop(instance);
    let live = outcome.counts.unwrap_or_default();
    let trace = kept.take();
    let from = trace.len().saturating_sub(live.references as usize);
    let simulated = simulate(experiment, trace, from, frames, registry, observer)?;
    let references_per_lookup = live.references as f64 / outcome.transactions.max(1) as f64;
    Ok(HitTable { pages, frames, references_per_lookup, live, simulated })
}

/// Simulates the policies of [`PAPER`] over a trace, counting from some position on.
fn simulate(
    experiment: &Experiment,
    mut trace: Batch,
    from: usize,
    frames: u32,
    registry: &Registry,
    observer: &mut dyn Observer,
) -> Result<Vec<KindHits>, BesideError> {
    let mut numbers = Renumber::new();
    numbers.apply(&mut trace);
    let distinct = numbers.distinct();
    let future = Future::of(&trace, distinct);
    let mut all = Vec::new();
    for (policy, _) in PAPER {
        observer.begin(&format!("simulating {policy}"));
        if observer.stop() {
            return Err(BenchError::Stopped.into());
        }
        let spec = Spec::parse(policy)?;
        let options =
            SimOptions { seed: experiment.seed, ..SimOptions::new(frames, Some(distinct)) };
        let mut simulation = registry.find(&spec.id)?.simulation(&spec, &options)?;
        all.push(hits_by_kind(simulation.as_mut(), &trace, Some(&future), from)?);
    }
    Ok(all)
}
