//! Several setups against each other, in one run.
//!
//! All setups are loaded first and stay loaded. Then rounds follow. In each round, every step runs
//! once, in an order dealt for the round. So neither a step's predecessor nor a slow hour of the
//! machine favours one of them. Ratios are taken within rounds.

use millpond_base::Seed;

use crate::error::BenchError;
use crate::instance::setup::{DeviceSpec, Engine, Setup};
use crate::instance::{Instance, InstanceInfo, prepare};
use crate::interval::Interval;
use crate::run::client::Workload;
use crate::run::runner::{Observer, Outcome, RunSpec};
use crate::run::turns;

/// One of the setups.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// Name of the step in results.
    pub name: String,
    /// The engine.
    pub setup: Setup,
    /// Workload of the step.
    pub workload: Workload,
}

/// Result of a step.
#[derive(Clone, Debug)]
pub struct StepResult {
    /// Name of the step.
    pub name: String,
    /// Instance of the step.
    pub info: InstanceInfo,
    /// Rounds of the step, in order; as many for each step.
    pub rounds: Vec<Outcome>,
    /// Throughput of the step.
    pub throughput: Interval,
    /// Throughput over the first step's.
    pub to_first: Interval,
    /// Throughput over the last step's.
    pub to_last: Interval,
    /// Transactions per processor second, over the first step's and over the last step's. These
    /// ratios stay comparable when other programs use the machine.
    pub cpu_to_first: Interval,
    /// CPU time over the last step's.
    pub cpu_to_last: Interval,
}

/// Returns the five steps of leanstore fig. 7, from a classic pool to no pool, on otherwise equal
/// setups.
pub fn ladder(base: &Setup, workload: &Workload) -> Vec<Step> {
    use millpond::internals::store::{LatchingMode as L, TranslationMode as T};
    let step = |name: &str, engine, translation, latching, policy: &str| {
        let mut setup = Setup { engine, records: false, ..base.clone() };
        setup.options.lab.translation = translation;
        setup.options.lab.latching = latching;
        setup.options.policy = policy.to_string();
        Step { name: name.to_string(), setup, workload: *workload }
    };
    vec![
        step("baseline", Engine::Pool, T::Hashed, L::Latched, "lru"),
        step("+swizzling", Engine::Pool, T::Swizzled, L::Latched, "lru"),
        step("+lean-evict", Engine::Pool, T::Swizzled, L::Latched, "lean-evict"),
        step("+optimistic", Engine::Pool, T::Swizzled, L::Optimistic, "lean-evict"),
        step("twin", Engine::Twin, T::Swizzled, L::Optimistic, "lean-evict"),
    ]
}

/// Returns the steps of leanstore table I: one thread, all threads, with a warehouse for each,
/// with memory touched beforehand, with the pool divided among `nodes` NUMA nodes.
pub fn affinity(base: &Setup, workload: &Workload, threads: u32, nodes: u32) -> Vec<Step> {
    let step = |name: &str, threads: u32, has_affinity: bool, prefault: bool, nodes: u32| {
        let mut setup = base.clone();
        setup.options.lab.prefault = prefault;
        setup.options.lab.numa_nodes = Some(nodes);
        let mut workload = workload.with_threads(threads);
        if let Workload::Tpcc(config) = &mut workload {
            config.has_affinity = has_affinity;
        }
        Step { name: name.to_string(), setup, workload }
    };
    vec![
        step("one thread", 1, false, false, 1),
        step("baseline", threads, false, false, 1),
        step("+affinity", threads, true, false, 1),
        step("+prefault", threads, true, true, 1),
        step("+numa", threads, true, true, nodes),
    ]
}

/// Returns the steps that show the cost of transactions: without any, with locks, with a log, with
/// both, on otherwise equal setups.
pub fn acid(base: &Setup, workload: &Workload) -> Vec<Step> {
    let step = |name: &str, log: bool, locks: bool| {
        let mut setup = base.clone();
        setup.options = setup.options.lab(|lab| lab.log = log).lab(|lab| lab.locks = locks);
        // Each step has its own files.
        if let DeviceSpec::File(path) = &mut setup.device {
            let mut own = std::mem::take(path).into_os_string();
            own.push(format!(".{}", name.replace(' ', "-")));
            *path = own.into();
        }
        Step { name: name.to_string(), setup, workload: *workload }
    };
    vec![
        step("neither", false, false),
        step("locks", false, true),
        step("log", true, false),
        step("log and locks", true, true),
    ]
}

/// Runs the steps against each other, `rounds` times.
///
/// An observer that stops the contest gets the results of the finished rounds.
///
/// # Errors
/// Any error of the step, or an error if not even one round was finished.
pub fn contest(
    steps: &[Step],
    rounds: u32,
    spec: &RunSpec,
    observer: &mut dyn Observer,
) -> Result<Vec<StepResult>, BenchError> {
    let mut instances: Vec<Box<dyn Instance>> = Vec::new();
    for step in steps {
        observer.begin(&format!("{}: loading", step.name));
        instances.push(prepare(&step.setup, &step.workload, observer)?);
        if observer.stop() {
            return Err(BenchError::Stopped);
        }
    }
    let mut outcomes: Vec<Vec<Outcome>> = steps.iter().map(|_| Vec::new()).collect();
    let seed = Seed(steps.first().map_or(0, |step| step.setup.options.lab.seed));
    'rounds: for round in 0..rounds {
        let mut of_round: Vec<Option<Outcome>> = steps.iter().map(|_| None).collect();
        for at in turns::order(seed, round, steps.len()) {
            observer.begin(&format!("round {} of {rounds}: {}", round + 1, steps[at].name));
            match instances[at].run(spec, &mut |_| Ok(()), observer) {
                Ok(outcome) if !outcome.was_stopped => of_round[at] = Some(outcome),
                Ok(_) | Err(BenchError::Stopped) => break 'rounds,
                Err(error) => return Err(error),
            }
        }
        for (all, one) in outcomes.iter_mut().zip(of_round) {
            all.extend(one);
        }
    }
    for (step, instance) in steps.iter().zip(&instances) {
        if let Some(report) = instance.check()?
            && !report.is_consistent()
        {
            let error = format!("{}: the data is inconsistent: {report:?}", step.name);
            return Err(BenchError::Drive(error.into()));
        }
    }
    results(steps, &instances, &outcomes)
}

fn results(
    steps: &[Step],
    instances: &[Box<dyn Instance>],
    outcomes: &[Vec<Outcome>],
) -> Result<Vec<StepResult>, BenchError> {
    let of_rounds = |speed: fn(&Outcome) -> f64| -> Vec<Vec<f64>> {
        outcomes.iter().map(|rounds| rounds.iter().map(speed).collect()).collect()
    };
    let speeds = of_rounds(|outcome| outcome.throughput_per_s);
    let per_cpu = of_rounds(|outcome| outcome.transactions as f64 / outcome.cpu_s.max(1e-9));
    let ends = |of: &[Vec<f64>], step: usize| {
        let last = of.len() - 1;
        let first = Interval::of_ratios(&of[step], &of[0]);
        first.zip(Interval::of_ratios(&of[step], &of[last]))
    };
    let mut all = Vec::new();
    for (at, rounds) in outcomes.iter().enumerate() {
        // There is no interval without a round.
        let none = || BenchError::Stopped;
        let (to_first, to_last) = ends(&speeds, at).ok_or_else(none)?;
        let (cpu_to_first, cpu_to_last) = ends(&per_cpu, at).ok_or_else(none)?;
        all.push(StepResult {
            name: steps[at].name.clone(),
            info: instances[at].info().clone(),
            rounds: rounds.clone(),
            throughput: Interval::of_rates(&speeds[at]).ok_or_else(none)?,
            to_first,
            to_last,
            cpu_to_first,
            cpu_to_last,
        });
    }
    Ok(all)
}
