//! CPU time by removing one component after the other, in two orders (gilbert 2.1.4), beside
//! sampled times.
//!
//! All runs have one thread, since there can be no second one without latches.

use crate::experiment::{About, Figure, Grid};
use millpond_lab::report::{Bar, BarPlot, Claim, Section};
use millpond_lab::table::{Table, Value};

use super::counted::{Counter, StepRun};
use super::course::{Course, WORKLOADS};
use super::published::of_ours;
use super::sampled::{ALL, rows_of, sampled};
use super::step_list::{FULL, LOCKS, LOG, POOL, StepList};
use super::with_counts::{Counted, WithCounts, instructions};
use crate::live::{Job, LiveFigure, Loaded};
use millpond_bench::error::BenchError;
use millpond_bench::experiments::table::Row;
use millpond_bench::instance::Instance;
use millpond_bench::run::runner::{Observer, RunSpec};

const ABOUT: About = About {
    id: "removal",
    title: "CPU time and instructions by removal (2.1.4)",
    asks: "How much CPU time, and how many instructions, does a transaction need \
           less when logging, locking, latching, the page table, replacement and the pool are taken away one after the other; and do \
           samples of the whole engine rank them alike?",
    says: "Harizopoulos et al. took components out of Shore until a tree in memory was left, which \
           executed a tiny fraction of the instructions.",
};

const LISTS: [StepList; 2] = [StepList::LogFirst, StepList::PoolFirst];

pub(super) fn figure(course: Course, loaded: &Loaded, counter: Option<Counter>) -> Box<dyn Figure> {
    let seconds = course.scale.pick(0.1, 1.5, 60.0);
    let (mut jobs, mut counted) = (Vec::new(), Vec::new());
    for workload in WORKLOADS {
        for list in LISTS {
            for (steps, (step, setup)) in list.engines().enumerate() {
                let axes = vec![
                    ("workload", workload.into()),
                    ("order", list.name().into()),
                    ("step", step.into()),
                ];
                let mut job = course.job(setup, course.workload(workload, 1), seconds);
                job.axes.clone_from(&axes);
                jobs.push(job);
                counted
                    .push(Counted { run: StepRun::of(list, steps, workload, course.scale), axes });
            }
        }
    }
    let live = LiveFigure::new(ABOUT, jobs, loaded, draw).with_course(run);
    Box::new(WithCounts::new(live, counted, counter))
}

/// Samples the whole engine once, between two runs that are not sampled; every other engine runs
/// once.
fn run(
    job: &Job,
    instance: &mut dyn Instance,
    observer: &mut dyn Observer,
) -> Result<Vec<Row>, BenchError> {
    let is = |what: &str| job.axes.iter().any(|(_, value)| *value == Value::from(what));
    if is(FULL) && is(LISTS[0].name()) {
        return rows_of(&sampled(job, instance, observer)?);
    }
    let spec = RunSpec { warm_up: job.warm_up, ..RunSpec::of(job.measure) };
    let outcome = instance.run(&spec, &mut |_| Ok(()), observer)?;
    if outcome.was_stopped {
        return Err(BenchError::Stopped);
    }
    let info = instance.info();
    let row = Row::default().with("component", ALL).with_outcome(&outcome, info.engine);
    Ok(vec![row.with("plain_us_per_tx", outcome.cpu_us_per_tx()).with_facts(info)])
}

fn draw(rows: &Table) -> Section {
    let axes = ["workload", "order", "step"];
    let grid = Grid::of(rows, &axes, "plain_us_per_tx");
    let (instructions, source) = instructions(rows, &axes);
    let mut section = Section {
        note: "µs of CPU time per transaction, and what share of the whole engine's that is. What \
               a step saves is charged to what it takes away, and with it goes what that cost \
               others: copies that nobody reads any more, cache lines, predictions. So both orders \
               give each component another price. "
            .to_string()
            + source,
        table: Table::new([
            "workload",
            "order",
            "step",
            "µs",
            "of all",
            "low",
            "high",
            "saved",
            "instructions",
            "of all's",
        ]),
        ..Section::default()
    };
    for workload in grid.labels(0) {
        let mut plot = BarPlot {
            title: format!("{workload}: what is left"),
            y: "µs of CPU time per transaction".to_string(),
            ..BarPlot::default()
        };
        for list in LISTS {
            let (order, mut before) = (list.name(), 1.0);
            for (step, _) in list.steps() {
                let (place, full) = ([workload, order, *step], [workload, order, FULL]);
                let Some(value) = grid.interval(&place) else { continue };
                let Some(ratio) = grid.ratio(&place, &full) else { continue };
                let numbers = [value.mean, ratio.mean, ratio.low, ratio.high, before - ratio.mean];
                let of_all = instructions.ratio(&place, &full).map(|ratio| ratio.mean);
                let counts = [instructions.mean(&place), of_all].map(Value::from);
                let names = place.map(Value::from).into_iter();
                let cells = names.chain(numbers.map(Value::from)).chain(counts);
                section.table.rows.push(cells.collect());
                before = ratio.mean;
                plot.bars.push(Bar {
                    group: (*step).to_string(),
                    series: order.to_string(),
                    value,
                });
            }
        }
        section.plots.push(plot.into());
        section.claims.push(agree(rows, &grid, workload));
    }
    section
}

/// Groups of components that both removal and samples can distinguish.
const GROUPS: [&str; 3] = ["logging", "locking and transactions", "pool"];

/// Returns the share that removing each group saves, log first.
fn by_removal(grid: &Grid, workload: &str) -> Option<[f64; 3]> {
    let left = |step: &str| {
        let order = LISTS[0].name();
        let ratio = grid.ratio(&[workload, order, step], &[workload, order, FULL]);
        ratio.map(|ratio| ratio.mean)
    };
    let (log, locks) = (left(LOG)?, left(LOCKS)?);
    Some([1.0 - log, log - locks, locks - left(POOL)?])
}

/// Returns each group's share in the samples of the whole engine.
fn by_samples(rows: &Table, workload: &str) -> Option<[f64; 3]> {
    let grid = Grid::of(rows, &["workload", "order", "step", "component"], "component_us_per_tx");
    let total = Grid::of(rows, &["workload", "order", "step"], "sampled_us_per_tx");
    let order = LISTS[0].name();
    let whole = total.mean(&[workload, order, FULL])?;
    let mut sums = [0.0; 3];
    for component in grid.labels(3) {
        let at = match of_ours(component) {
            Some("logging") => 0,
            Some("locking" | "locking, latching") => 1,
            Some(pool) if pool.starts_with("pool") => 2,
            _ => continue,
        };
        sums[at] += grid.mean(&[workload, order, FULL, component]).unwrap_or(0.0);
    }
    Some(sums.map(|sum| sum / whole))
}

/// Compares each group's share by removal and by samples. The samples' shares have no interval, so
/// the claim stays open.
fn agree(rows: &Table, grid: &Grid, workload: &str) -> Claim {
    let says = format!("{workload}: by removal and by samples, components rank alike (ours)");
    let Some((removal, samples)) = by_removal(grid, workload).zip(by_samples(rows, workload))
    else {
        return Claim::open(&says, "not all of it was run");
    };
    let each =
        GROUPS.iter().zip(removal.iter().zip(&samples)).map(|(group, (removal, samples))| {
            format!("{group} {:.1} % removed, {:.1} % sampled", removal * 100.0, samples * 100.0)
        });
    let here = each.collect::<Vec<_>>().join("; ");
    Claim::open(&says, here)
}
