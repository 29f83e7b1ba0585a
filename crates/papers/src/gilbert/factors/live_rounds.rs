//! Runs of the engine in rounds, outside the framework of an experiment.

use crate::experiment::{Scale, Watch};
use millpond::OwnPolicies;
use millpond_base::Seed;
use millpond_lab::table::Table;

use super::super::course::Course;
use crate::live::{Job, LiveFigure, Loaded};
use millpond_bench::error::BenchError;
use millpond_bench::experiments::table::{Row, table};
use millpond_bench::instance::setup::DeviceSpec;
use millpond_bench::run::runner::{Length, Observer};
use millpond_bench::run::turns;

/// Passes a figure's messages on to an observer.
struct Watching<'a>(&'a mut dyn Observer);

impl Watch for Watching<'_> {
    fn stop(&self) -> bool {
        self.0.stop()
    }
}

/// Returns the job of his TPC-C.
pub(super) fn job(scale: Scale, percent: f64, policy: &str, own: &OwnPolicies) -> Job {
    let mut job = Course::new(scale).job(percent, policy);
    job.setup.options.own_policies = own.clone();
    job
}

/// Returns a job that measures only hits: on memory, and by operations.
pub(super) fn hits(scale: Scale, percent: f64, policy: &str, own: &OwnPolicies) -> Job {
    let mut job = job(scale, percent, policy, own);
    job.setup.device = DeviceSpec::Memory;
    job.setup.warms_up_fast = false;
    job.warm_up = Length::Operations(scale.pick(50, 3000, 300_000));
    job.measure = Length::Operations(scale.pick(100, 3000, 300_000));
    job
}

/// Runs the jobs in rounds, in an order dealt for each round. All jobs of a round have the
/// same data.
pub(super) fn rounds(
    jobs: &[Job],
    rounds: u32,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<Table, BenchError> {
    let figure = LiveFigure::shared(&Loaded::default());
    let mut rows = Vec::new();
    for round in 0..rounds {
        for at in turns::order(Seed(seed), round, jobs.len()) {
            let job = &jobs[at];
            let name: Vec<String> = job.axes.iter().map(|(_, value)| value.to_string()).collect();
            let of = format!("TPC-C, round {} of {rounds}: {}", round + 1, name.join(" %, "));
            observer.begin(&of);
            if observer.stop() {
                return Err(BenchError::Stopped);
            }
            for row in figure.play(job, round + 1, &mut Watching(observer))? {
                rows.push(with_axes(job, round + 1, row));
            }
        }
    }
    Ok(table(rows))
}

fn with_axes(job: &Job, repetition: u32, row: Row) -> Row {
    let axes =
        job.axes.iter().fold(Row::default(), |row, (name, value)| row.with(name, value.clone()));
    let is_axis = |name: &str| job.axes.iter().any(|(axis, _)| *axis == name);
    let fields = row.into_fields().into_iter().filter(|(name, _)| !is_axis(name));
    fields.fold(axes.with("repetition", repetition), |row, (name, value)| row.with(&name, value))
}
