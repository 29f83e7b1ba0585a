//! CPU time by component, sampled (gilbert figs 2.13–2.18, table 2.1).

use crate::experiment::{About, Figure, Grid};
use millpond_lab::interval::Interval;
use millpond_lab::report::{Bar, BarPlot, Claim, Section};
use millpond_lab::table::Table;
use millpond_profile::{Components, Options};

use super::course::{ARMS, CONVENTIONAL, Course, MODERN, WORKLOADS};
use super::published::{COMPONENTS, Column, of_ours};
use crate::live::{Job, LiveFigure, Loaded};
use millpond_bench::error::BenchError;
use millpond_bench::experiments::breakdown::{Sampled, sample_instance};
use millpond_bench::experiments::table::Row;
use millpond_bench::instance::Instance;
use millpond_bench::run::runner::{Observer, RunSpec};
use millpond_lab::verdict::{Evidence, above, below, between, claim, listed};

const ABOUT: About = About {
    id: "2.13",
    title: "CPU time by component (figs 2.13–2.18, table 2.1)",
    asks: "Which component of a conventional engine, and of this one, takes the CPU time of \
           look-ups, updates and TPC-C, with one thread and with many?",
    says: "One thread: logging 42 % of TPC-C, locks 34 % of look-ups, logging 24 and locks 22 % of \
           updates. 24 threads: the B-tree 65 % of TPC-C; locks 78 % of look-ups and half of \
           updates.",
};

/// Component name in the rows about the whole run.
pub(super) const ALL: &str = "all";

pub(super) fn figure(course: Course, loaded: &Loaded) -> Box<dyn Figure> {
    let seconds = course.scale.pick(0.2, 2.5, 300.0);
    let mut jobs = Vec::new();
    for workload in WORKLOADS {
        for threads in course.counts() {
            jobs.extend(ARMS.map(|arm| {
                let mut job = course.arm(arm, workload, threads, seconds);
                // The sampled run is between two runs of half that length.
                job.need.seconds += seconds;
                job
            }));
        }
    }
    Box::new(LiveFigure::new(ABOUT, jobs, loaded, draw).with_course(run))
}

/// Samples the job's workload on an instance.
pub(super) fn sampled(
    job: &Job,
    instance: &mut dyn Instance,
    observer: &mut dyn Observer,
) -> Result<Sampled, BenchError> {
    let spec = RunSpec { warm_up: job.warm_up, ..RunSpec::of(job.measure) };
    let options = Options::default();
    let sampled = sample_instance(instance, job.workload.name(), &spec, &options, observer)?;
    if sampled.was_stopped() { Err(BenchError::Stopped) } else { Ok(sampled) }
}

/// Returns a row for the whole run, and one for each component.
pub(super) fn rows_of(sampled: &Sampled) -> Result<Vec<Row>, BenchError> {
    let breakdown = sampled.profile.breakdown(&Components::shipped()?);
    let us = |seconds| sampled.per_transaction_us(seconds);
    // His 2.4.2 is about setting memory, which the C library does; it names few of its
    // functions.
    let hottest = sampled.profile.hottest().into_iter();
    let memory = hottest.filter(|(frame, _)| frame.module.contains("libc.so"));
    let memory: u64 = memory.map(|(_, samples)| samples).sum();
    let all = Row::default()
        .with("component", ALL)
        .with_outcome(&sampled.outcome, sampled.info.engine)
        .with("sampled_us_per_tx", us(breakdown.cpu_s))
        // CPU time without the profiler.
        .with("plain_us_per_tx", sampled.plain_us_per_tx())
        .with("libc_share", memory as f64 / breakdown.samples.max(1) as f64)
        .with("samples", breakdown.samples)
        .with("unassigned", breakdown.unassigned)
        .with("lost", breakdown.lost)
        .with("overhead", sampled.overhead())
        .with_facts(&sampled.info);
    let component = |share: &millpond_profile::Share| {
        Row::default()
            .with("component", share.component.as_str())
            .with("share", share.share)
            .with("share_low", share.share_low)
            .with("share_high", share.share_high)
            .with("component_us_per_tx", us(share.cpu_s))
            .with("samples", share.samples)
    };
    Ok([all].into_iter().chain(breakdown.shares.iter().map(component)).collect())
}

/// Samples a job; returns the rows of the whole run and of its components.
pub(super) fn run(
    job: &Job,
    instance: &mut dyn Instance,
    observer: &mut dyn Observer,
) -> Result<Vec<Row>, BenchError> {
    rows_of(&sampled(job, instance, observer)?)
}

/// One run's shares by his components, as the mean over the repetitions.
struct Shares<'t> {
    rows: &'t Table,
}

impl Shares<'_> {
    /// Returns the CPU time per transaction, in µs, of the components that satisfy
    /// `counts`, by repetition.
    fn micros(
        &self,
        place: &[&str; 3],
        counts: impl Fn(&str) -> bool,
    ) -> std::collections::BTreeMap<u64, f64> {
        let mut sums = std::collections::BTreeMap::new();
        for row in 0..self.rows.rows.len() {
            let text = |name: &str| self.rows.get(row, name).map(ToString::to_string);
            let axes = [text("arm"), text("workload"), text("threads")];
            if !axes.iter().map(Option::as_deref).eq(place.iter().map(|axis| Some(*axis))) {
                continue;
            }
            let (Some(component), Some(us)) = (text("component"), self.number(row)) else {
                continue;
            };
            let repetition = self.rows.get(row, "repetition").and_then(|v| v.number());
            let sum = sums.entry(repetition.unwrap_or(1.0) as u64).or_insert(0.0);
            if counts(&component) {
                *sum += us;
            }
        }
        sums
    }

    fn number(&self, row: usize) -> Option<f64> {
        self.rows.get(row, "component_us_per_tx")?.number()
    }

    /// Returns the share of some of his components in all of them.
    fn of_his(&self, place: &[&str; 3], which: &[&str]) -> Option<Interval> {
        let all = self.micros(place, |component| of_ours(component).is_some());
        let some = self
            .micros(place, |component| of_ours(component).is_some_and(|his| which.contains(&his)));
        let shares: Vec<f64> =
            all.iter().map(|(at, all)| some.get(at).unwrap_or(&0.0) / all.max(1e-9)).collect();
        Interval::of(&shares)
    }
}

const LOCKS: [&str; 2] = ["locking", "locking, latching"];

fn pool() -> Vec<&'static str> {
    COMPONENTS.iter().copied().filter(|name| name.starts_with("pool")).collect()
}

fn draw(rows: &Table) -> Section {
    let shares = Shares { rows };
    let grid = Grid::of(rows, &["arm", "workload", "threads"], "sampled_us_per_tx");
    let (workloads, counts) = (grid.labels(1), grid.labels(2));
    let mut section = Section {
        note: "The plots have µs of CPU time per transaction, for every component of ours. The \
               table has his components in per cent of all of them, as he counts: without the \
               driver; transactions with locking, what a component latches beside it. “conventional” \
               is a page table, shared latches and RANDOM, as his engine has; “modern” is the \
               engine that ships. His: table 2.1, on 12 cores with 24 threads."
            .to_string(),
        table: Table::new(["workload", "threads", "component", "conventional", "modern", "his"]),
        ..Section::default()
    };
    for workload in &workloads {
        for threads in &counts {
            section.plots.push(bars(rows, workload, threads).into());
            let his = Column::of(workload, *threads == "1");
            for component in COMPONENTS {
                let ours = ARMS.map(|arm| shares.of_his(&[arm, workload, threads], &[component]));
                let his = his.map(|column| column.share(component) * 100.0);
                let cells = [(*workload).into(), (*threads).into(), component.into()];
                let percent = |share: Option<Interval>| share.map(|share| share.mean * 100.0);
                let ours = ours.map(|share| percent(share).into());
                section
                    .table
                    .rows
                    .push(cells.into_iter().chain(ours).chain([his.into()]).collect());
            }
        }
    }
    section.claims = claims(&shares, &grid, &counts);
    section
}

/// Plots his chart of one workload with one number of threads: µs per transaction by
/// component.
fn bars(rows: &Table, workload: &str, threads: &str) -> BarPlot {
    let axes = ["workload", "threads", "component", "arm"];
    let grid = Grid::of(rows, &axes, "component_us_per_tx");
    let mut bars = Vec::new();
    for component in grid.labels(2) {
        for arm in grid.labels(3) {
            let Some(value) = grid.interval(&[workload, threads, component, arm]) else { continue };
            bars.push(Bar { group: component.to_string(), series: arm.to_string(), value });
        }
    }
    let largest = bars.iter().map(|bar| bar.value.mean).fold(0.0, f64::max);
    // Slivers would show only their names.
    let is_seen =
        |group: &str| bars.iter().any(|b| b.group == group && b.value.mean > largest / 50.0);
    let kept = bars.iter().filter(|bar| is_seen(&bar.group)).cloned().collect();
    BarPlot {
        title: format!("{workload}, threads: {threads}"),
        note: "Components of at least a fiftieth of the largest.".to_string(),
        y: "µs of CPU time per transaction".to_string(),
        bars: kept,
    }
}

fn claims(shares: &Shares<'_>, grid: &Grid, counts: &[&str]) -> Vec<Claim> {
    let (Some(one), Some(many)) = (counts.first(), counts.last()) else { return Vec::new() };
    let of = |workload: &str, threads: &str, which: &[&str]| {
        ARMS.map(|arm| (arm, shares.of_his(&[arm, workload, threads], which)))
    };
    // Near means within a fifth of his share, on either side.
    let near = |share: f64| between(share * 0.8, share * 1.2);
    let mut all = Vec::new();
    let mut judge = |threads: &str, is_single: bool, workload: &str, name: &str, which: &[&str]| {
        let Some(column) = Column::of(workload, is_single) else { return };
        let his: f64 = which.iter().map(|component| column.share(component)).sum();
        let says = format!(
            "{workload} with {} of his threads: {name} {:.1} % of CPU time, within a fifth of that",
            column.threads,
            his * 100.0
        );
        all.push(claim(&says, &of(workload, threads, which), near(his)));
    };
    let pool = pool();
    judge(one, true, "tpcc", "logging", &["logging"]);
    judge(one, true, "tpcc", "the pool", &pool);
    judge(one, true, "tpcc", "the B-tree", &["B-tree"]);
    judge(one, true, "ycsb-read", "locks and transactions", &LOCKS);
    judge(one, true, "ycsb-update", "logging", &["logging"]);
    judge(one, true, "ycsb-update", "locks and transactions", &LOCKS);
    judge(many, false, "tpcc", "logging", &["logging"]);
    judge(many, false, "tpcc", "the pool", &pool);
    judge(many, false, "tpcc", "the B-tree", &["B-tree"]);
    judge(many, false, "tpcc", "locks and transactions", &LOCKS);
    judge(many, false, "ycsb-read", "locks and transactions", &LOCKS);
    judge(many, false, "ycsb-update", "logging", &["logging"]);
    judge(many, false, "ycsb-update", "locks and transactions", &LOCKS);
    if one != many {
        let grown = |arm: &str, workload: &str| {
            let grown = grid.ratio(&[arm, workload, many], &[arm, workload, one]);
            (format!("{arm}, {workload}"), grown)
        };
        let grown: Vec<_> = [CONVENTIONAL, MODERN]
            .into_iter()
            .flat_map(|arm| WORKLOADS.map(|workload| grown(arm, workload)))
            .collect();
        let grown: Vec<_> = grown.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        all.push(claim("CPU time per transaction grows with threads", &grown, above(1.0)));
    }
    all.push(erased(shares.rows));
    all
}

/// Judges his 2.4.2: 3.3 % of TPC-C's CPU time is in `bzero`.
fn erased(rows: &Table) -> Claim {
    let grid = Grid::of(rows, &["arm", "workload"], "libc_share");
    let values = ARMS.map(|arm| (arm, grid.interval(&[arm, "tpcc"])));
    let says = "TPC-C spends 3.3 % of CPU time in setting memory to zero, of which a line too many \
                was 28 % (fig. 2.23: 0.67 % more throughput without it)";
    let here = format!(
        "in all of the C library, which also copies, compares and allocates: {}",
        listed(&values)
    );
    // `bzero` is part of a larger quantity. If that is below his share, so is `bzero`.
    let below_his =
        Evidence::all(values.iter().map(|(_, value)| Evidence::of(*value, below(0.033))));
    Evidence { yes: 1.0, no: below_his.yes }.claim(says, here)
}
