//! The repetitions: each runs every arm (an engine variant under a workload) once, in a dealt
//! order.

use millpond_base::Seed;
use millpond_profile::{Components, Options, Sampling};

use super::arms::{ARMS, Arm, Load};
use super::cost::{Cost, LOCKING, LOGGING, Repetition};
use crate::error::BenchError;
use crate::experiments::breakdown::sample_instance;
use crate::instance::prepare;
use crate::instance::setup::Setup;
use crate::run::client::Workload;
use crate::run::runner::{Observer, RunSpec};
use crate::run::turns;

/// Set-up of the measurement.
#[derive(Clone, Debug)]
pub struct Overheads {
    /// Engine, except for log, locks and twin.
    pub base: Setup,
    /// TPC-C; the arms set their own numbers of threads.
    pub tpcc: Workload,
    /// Key-value lookups; the arms set their own numbers of threads.
    pub ycsb: Workload,
    /// Lengths of each arm's run.
    pub spec: RunSpec,
    /// Number of times that each arm runs.
    pub repetitions: u32,
}

/// Runs the repetitions.
///
/// An observer that stops the run gets the finished repetitions.
///
/// # Errors
/// Errors of loading or of a run, or an error if the process may not sample itself, or if not
/// even one repetition was finished.
pub fn overheads(
    what: &Overheads,
    components: &Components,
    observer: &mut dyn Observer,
) -> Result<Vec<Repetition>, BenchError> {
    // Fail before loading, not after it.
    drop(Sampling::start(&Options::default())?);
    let seed = Seed(what.base.options.lab.seed);
    let mut all = Vec::new();
    'repetitions: for turn in 0..what.repetitions {
        let mut base = what.base.clone();
        base.options.lab.seed = seed.derive(&format!("repetition {turn}")).0;
        let mut costs: Vec<Cost> = ARMS.into_iter().map(Cost::none).collect();
        for at in turns::order(seed, turn, ARMS.len()) {
            let name = format!("repetition {} of {}: {}", turn + 1, what.repetitions, ARMS[at]);
            match cost(&ARMS[at], what, &base, components, &name, observer) {
                Ok(cost) => costs[at] = cost,
                Err(BenchError::Stopped) => break 'repetitions,
                Err(error) => return Err(error),
            }
        }
        all.push(Repetition(costs));
    }
    if all.is_empty() { Err(BenchError::Stopped) } else { Ok(all) }
}

/// Loads an arm and runs it. To measure components, a sampled run is placed between two
/// others.
///
/// No other arm is loaded at the same time, since its threads and dirty pages would take CPU
/// time.
fn cost(
    arm: &Arm,
    what: &Overheads,
    base: &Setup,
    components: &Components,
    name: &str,
    observer: &mut dyn Observer,
) -> Result<Cost, BenchError> {
    if observer.stop() {
        return Err(BenchError::Stopped);
    }
    let workload = match arm.load {
        Load::Tpcc => what.tpcc,
        Load::YcsbRead => what.ycsb,
    };
    let setup = arm.setup(base);
    let mut instance = prepare(&setup, &workload.with_threads(arm.threads), observer)?;
    if !arm.is_sampled() {
        observer.begin(name);
        let outcome = instance.run(&what.spec, &mut |_| Ok(()), observer)?;
        if outcome.was_stopped {
            return Err(BenchError::Stopped);
        }
        let throughput_per_s = outcome.throughput_per_s;
        return Ok(Cost { us: outcome.cpu_us_per_tx(), throughput_per_s, ..Cost::none(*arm) });
    }
    let options = Options::default();
    let sampled = sample_instance(instance.as_mut(), name, &what.spec, &options, observer)?;
    if sampled.was_stopped() {
        return Err(BenchError::Stopped);
    }
    let breakdown = sampled.profile.breakdown(components);
    // The sampled run's CPU time includes the profiler's own time, but the samples' shares do
    // not.
    let us = sampled.plain_us_per_tx();
    let component = |whole| Some(breakdown.whole_share(components, whole) * us);
    Ok(Cost {
        arm: *arm,
        us,
        logging_us: component(LOGGING),
        locking_us: component(LOCKING),
        throughput_per_s: sampled.plain.iter().map(|run| run.throughput_per_s).sum::<f64>() / 2.0,
        samples: breakdown.samples,
        unassigned: breakdown.unassigned,
        caveats: breakdown.caveats(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use millpond_workload::tpcc::{self, Scale};
    use millpond_workload::ycsb;

    use super::*;
    use crate::run::runner::{Length, Unwatched};

    /// Stops after this number of checks.
    struct Impatient(std::cell::Cell<u32>);

    impl Observer for Impatient {
        fn stop(&self) -> bool {
            self.0.set(self.0.get().saturating_sub(1));
            self.0.get() == 0
        }
    }

    fn few(repetitions: u32) -> Overheads {
        let operations = Length::Operations(20);
        let tpcc = tpcc::Config::standard(Scale::tiny(1), 1);
        let interval = Duration::from_secs(1);
        Overheads {
            base: Setup::new(),
            tpcc: Workload::Tpcc(tpcc),
            ycsb: Workload::Ycsb(ycsb::Config::gilbert(200, 0)),
            spec: RunSpec { warm_up: Length::NONE, measure: operations, interval },
            repetitions,
        }
    }

    /// Returns `None`, with a message, if the process may not sample itself.
    #[allow(clippy::print_stdout)]
    fn measured(what: &Overheads, observer: &mut dyn Observer) -> Option<Vec<Repetition>> {
        let found = overheads(what, &Components::shipped().unwrap(), observer);
        match found {
            Err(BenchError::Profile(error)) => {
                println!("skipped: {error}");
                None
            }
            Err(BenchError::Stopped) => Some(Vec::new()),
            other => Some(other.unwrap()),
        }
    }

    #[test]
    fn every_arm_runs_once_in_each_repetition() {
        let Some(all) = measured(&few(2), &mut Unwatched) else { return };
        assert_eq!(all.len(), 2);
        for repetition in &all {
            let arms: Vec<Arm> = repetition.0.iter().map(|cost| cost.arm).collect();
            assert_eq!(arms, ARMS);
            for cost in &repetition.0 {
                assert!(cost.us > 0.0 && cost.throughput_per_s > 0.0, "{cost:?}");
                assert_eq!(cost.logging_us.is_some(), cost.arm.is_sampled(), "{cost:?}");
                let sum = cost.logging_us.unwrap_or(0.0) + cost.locking_us.unwrap_or(0.0);
                assert!(sum <= cost.us * 1.000_001, "{cost:?}");
            }
        }
    }

    #[test]
    fn a_repetition_that_was_not_finished_is_not_counted() {
        let Some(none) = measured(&few(2), &mut Impatient(std::cell::Cell::new(3))) else { return };
        assert!(none.is_empty());
    }
}
