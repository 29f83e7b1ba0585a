//! A live run under a spy and the simulator's run over the same references, compared.

use millpond::EvictionMode;
use millpond::internals::store::TranslationMode;
use millpond_base::Size;
use millpond_lab::registry::{PolicyError, Registry};
use millpond_lab::sim::SimOptions;
use millpond_policies::config::Spec;
use millpond_policies::contract::Shape;
use millpond_workload::trace::Batch;

use super::diary::{Diary, Event};
use super::fed::{self, Agreed, Differs};
use super::spy::spies;
use crate::error::{BenchError, BesideError};
use crate::instance::prepare;
use crate::instance::setup::Setup;
use crate::run::client::Workload;
use crate::run::runner::{Length, Observer, RunSpec};

/// Set-up of the run in both worlds.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The workload, with one thread.
    pub workload: Workload,
    /// Bytes of a page.
    pub page_size: u32,
    /// The pool.
    pub pool: Size,
    /// Operations of the warm-up, and operations that count.
    pub operations: (u64, u64),
    /// Seed of data, workload and policy.
    pub seed: u64,
}

impl Plan {
    /// Returns the live pool that is most like the simulator: one thread, a page table, one page
    /// at a time, each hit delivered at once, nothing in the background, and a cold start.
    pub fn exact(&self, policy: &str) -> Setup {
        let mut setup = Setup { pool: Some(self.pool), cold: true, ..Setup::new() };
        setup.options = setup.options.page_size(self.page_size).policy(policy);
        setup.options.lab.eviction = EvictionMode::Worker;
        setup.options = setup.options.lab(|lab| {
            lab.translation = TranslationMode::Hashed;
            lab.batch = Some(1);
            lab.background_writer = false;
            lab.tiny_pages = true;
            lab.latency_sample_period = 0;
            lab.seed = self.seed;
        });
        setup
    }

    /// Returns the spec of the run, in operations.
    pub fn spec(&self) -> RunSpec {
        let (warm_up, measure) = self.operations;
        RunSpec {
            warm_up: Length::Operations(warm_up),
            measure: Length::Operations(measure),
            interval: std::time::Duration::from_secs(1),
        }
    }
}

/// A run under a spy.
pub struct Spied {
    /// All calls of the pool to the policy since the pool was opened.
    pub events: Vec<Event>,
    /// The pool's frames.
    pub frames: u32,
}

/// Runs `plan` under a spy on `policy`, in a pool set up by `setup`.
///
/// # Errors
/// Any error of the run.
pub fn spied(
    plan: &Plan,
    mut setup: Setup,
    observer: &mut dyn Observer,
) -> Result<Spied, BenchError> {
    setup.options.own_policies = spies();
    let mut instance = prepare(&setup, &plan.workload, observer)?;
    // The instance was reopened, cold, with the last policy that this thread created.
    let diary = Diary::latest();
    instance.run(&plan.spec(), &mut |_| Ok(()), observer)?;
    let frames = instance.info().frames.unwrap_or_default();
    let events = diary.map(|diary| diary.take()).unwrap_or_default();
    Ok(Spied { events, frames })
}

impl Spied {
    fn references(&self) -> impl Iterator<Item = (u64, millpond_base::Mark, bool)> + '_ {
        self.events.iter().filter_map(|event| match event {
            Event::Referenced { page, mark, hit } => Some((page.0, *mark, *hit)),
            _ => None,
        })
    }

    /// Returns the references as a trace.
    pub fn trace(&self) -> Batch {
        let mut batch = Batch::default();
        for (page, mark, _) in self.references() {
            batch.pages.push(page);
            batch.marks.push(mark);
        }
        batch
    }

    /// Returns the references that missed.
    pub fn misses(&self) -> Vec<u64> {
        let missed = self.references().enumerate().filter(|(_, (_, _, hit))| !hit);
        missed.map(|(at, _)| at as u64).collect()
    }

    /// Returns the references that miss in the simulator without any input from the live pool.
    ///
    /// # Errors
    /// [`BesideError`].
    pub fn simulated_misses(
        &self,
        policy: &str,
        registry: &Registry,
        seed: u64,
    ) -> Result<Vec<u64>, BesideError> {
        let spec = Spec::parse(policy)?;
        let options =
            SimOptions { seed, scan_hints: true, ..SimOptions::new(self.frames.max(1), None) };
        let mut simulation = registry.find(&spec.id)?.simulation(&spec, &options)?;
        let (mut missed, mut before) = (Vec::new(), 0);
        let mut one = Batch::default();
        for (at, (page, mark, _)) in self.references().enumerate() {
            one.pages.clear();
            one.marks.clear();
            one.pages.push(page);
            one.marks.push(mark);
            simulation.run(&one, None)?;
            let misses = simulation.counts().misses();
            if misses > before {
                missed.push(at as u64);
            }
            before = misses;
        }
        Ok(missed)
    }

    /// Feeds the diary, with the pool's refusals, to the simulator, and compares the two worlds.
    ///
    /// # Errors
    /// [`BesideError`]; the inner error is the point where the worlds differ.
    pub fn fed(&self, policy: &str, seed: u64) -> Result<Result<Agreed, Differs>, BesideError> {
        let spec = Spec::parse(policy)?;
        let shape = Shape { frames: self.frames, pages_dense: None, seed };
        let unknown = || PolicyError::Unknown { id: spec.id.clone(), hint: String::new() };
        Ok(fed::play(&spec, &shape, &self.events).ok_or_else(unknown)??)
    }
}
