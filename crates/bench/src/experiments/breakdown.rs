//! CPU time of a workload by component, from call stacks sampled while it runs (gilbert 2.1.2).
//!
//! The same instance runs three times: without the profiler, with it for the requested time, and
//! without it again. The cost of the profiler is the difference to the mean of the first and the
//! last run. So neither a drift of the machine nor growing data count as its cost.

use millpond_profile::{Options, Profile, Sampling};

use crate::error::BenchError;
use crate::instance::setup::Setup;
use crate::instance::{Instance, InstanceInfo, Recorders, prepare};
use crate::run::client::Workload;
use crate::run::runner::{Length, Observer, Outcome, RunSpec};

/// A sampled run, between two that were not sampled.
#[derive(Clone, Debug)]
pub struct Sampled {
    /// The engine.
    pub info: InstanceInfo,
    /// The runs without the profiler, half as long each.
    pub plain: [Outcome; 2],
    /// The run with the profiler.
    pub outcome: Outcome,
    /// Samples of the run.
    pub profile: Profile,
}

impl Sampled {
    /// Returns the approximate share of the throughput that the profiler took; below 0 if the
    /// machine was faster with it.
    pub fn overhead(&self) -> f64 {
        let [before, after] = &self.plain;
        let plain = (before.throughput_per_s + after.throughput_per_s) / 2.0;
        1.0 - self.outcome.throughput_per_s / plain.max(f64::MIN_POSITIVE)
    }

    /// Converts `seconds` of the run's CPU time to microseconds per transaction.
    pub fn per_transaction_us(&self, seconds: f64) -> f64 {
        seconds * 1e6 / self.outcome.transactions.max(1) as f64
    }

    /// Returns the microseconds of CPU time per transaction without the profiler.
    pub fn plain_us_per_tx(&self) -> f64 {
        self.plain.iter().map(Outcome::cpu_us_per_tx).sum::<f64>() / 2.0
    }

    /// Returns `true` if the run was stopped before its time.
    pub fn was_stopped(&self) -> bool {
        self.outcome.was_stopped || self.plain.iter().any(|run| run.was_stopped)
    }
}

fn half(length: Length) -> Length {
    match length {
        Length::Time(time) => Length::Time(time / 2),
        Length::Operations(n) => Length::Operations(n.div_ceil(2)),
    }
}

/// Loads `workload` into an engine, and samples it while it runs.
///
/// # Errors
/// Errors of loading or of a run, or an error if the process may not sample itself.
pub fn sample(
    setup: &Setup,
    workload: &Workload,
    spec: &RunSpec,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Sampled, BenchError> {
    // Fail before loading, not after it.
    drop(Sampling::start(options)?);
    let mut instance = prepare(setup, workload, observer)?;
    sample_instance(instance.as_mut(), workload.name(), spec, options, observer)
}

/// Samples a loaded engine while its workload, called `name`, runs.
///
/// # Errors
/// Any error of the run, or an error if the process may not sample itself.
pub fn sample_instance(
    instance: &mut dyn Instance,
    name: &str,
    spec: &RunSpec,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Sampled, BenchError> {
    let plain = RunSpec { measure: half(spec.measure), ..*spec };
    observer.begin(&format!("{name}, not sampled"));
    let before = instance.run(&plain, &mut |_| Ok(()), observer)?;
    observer.begin(&format!("{name}, sampled"));
    let mut sampling = None;
    let mut start = |_: Recorders<'_>| {
        sampling = Some(Sampling::start(options)?);
        Ok(())
    };
    let outcome =
        instance.run(&RunSpec { warm_up: Length::NONE, ..*spec }, &mut start, observer)?;
    let profile = match sampling {
        Some(sampling) => sampling.stop()?,
        None => Profile::default(),
    };
    observer.begin(&format!("{name}, not sampled"));
    let after =
        instance.run(&RunSpec { warm_up: Length::NONE, ..plain }, &mut |_| Ok(()), observer)?;
    Ok(Sampled { info: instance.info().clone(), plain: [before, after], outcome, profile })
}
