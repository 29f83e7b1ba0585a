//! WATT's live figures (watt 6): reads and writes per transaction, what tracking costs a worker,
//! scaling, and overall performance, against RANDOM, lean eviction and hyperbolic caching.
//!
//! The paper runs 120 workers over 264 to 588 GB with 8 GB of memory. Here data and pools are
//! smaller at its ratios of 1 : 30 to 1 : 70. Reads and writes per transaction do not depend on how
//! fast the device is, so that they are measured over memory; overall performance is measured over
//! memory that is slowed down to an NVMe drive. Evictions per second of an isolated evictor (figs
//! 10 and 12) are in `watt_evictors`.

use millpond::internals::io::SlowProfile;
use millpond::internals::store::HitDelivery;
use millpond_base::Size;
use millpond_lab::experiment::{About, Figure, Grid, Scale};
use millpond_lab::interval::Interval;
use millpond_lab::report::{Bar, BarPlot, Claim, Line, LinePlot, Section};
use millpond_lab::table::Table;

use super::live::{Job, LiveFigure, Loaded, cores};
use super::threads::thread_counts;
use super::verdict::{above, below, claim};
use super::watt_runs::{HYPERBOLIC, LEAN, MIXED, POLICIES, READ_ONLY, Shape, TPCC, WATT, bars};
use super::{watt_evictors, watt_modes};
use crate::instance::setup::DeviceSpec;
use crate::run::runner::Length;

const WORKLOADS: [&str; 3] = [READ_ONLY, MIXED, TPCC];

const FIG_9: About = About {
    id: "9",
    title: "Reads and writes per transaction, live",
    asks: "How many more pages than WATT does each policy read and write per transaction, with \
           data 30 to 70 times as large as the pool?",
    says: "Reads: hyperbolic 1.04 to 1.06, lean eviction 1.07 to 1.12, random 1.11 to 1.14. \
           Writes: hyperbolic 1.10 to 1.13, lean eviction 1.15 to 1.26, random 1.32 to 1.36.",
};

const FIG_11: About = About {
    id: "11",
    title: "Instructions and processor time per transaction of one worker, in memory",
    asks: "What does tracking cost a worker where nothing is evicted?",
    says: "The four policies differ by no more than noise.",
};

const FIG_13: About = About {
    id: "13",
    title: "Overall performance",
    asks: "How many transactions per second are there with each policy, all things together?",
    says: "WATT is the fastest: 6 % before the next one on YCSB 90/10, 7 % on TPC-C, where random \
           is 22 % slower.",
};

const WORKERS: About = About {
    id: "workers",
    title: "Scaling over worker threads, in memory",
    asks: "What does keeping a policy's statistics cost as threads are added? Beside the paper's \
           policies: LRU behind a mutex that every hit takes, and that hits take by the batch.",
    says: "(leanstore V-B, gilbert 1.3.5) A list behind one latch does not scale.",
};

/// Axes of most figures.
const BY_POLICY: [&str; 2] = ["workload", "policy"];

/// Operations of a phase: those of YCSB, and those of TPC-C, which do some twenty times as much.
fn operations(scale: Scale, name: &str, standard: u64) -> Length {
    let all = scale.pick(1_000, standard, standard * 1000);
    Length::Operations(if name == TPCC { (all / 20).max(100) } else { all })
}

fn figure_9(scale: Scale, loaded: &Loaded) -> LiveFigure {
    let ratios: &[u32] = scale.pick(&[30], &[30, 50, 70], &[30, 50, 70]);
    let mut jobs = Vec::new();
    for name in WORKLOADS {
        for ratio in ratios {
            let shape = Shape {
                scale,
                pool: Some(Size::Share(1.0 / f64::from(*ratio))),
                device: DeviceSpec::Memory,
                threads: scale.pick(2, cores(), cores()),
                seconds: scale.pick(0.3, 2.4, 2400.0),
            };
            let length = operations(scale, name, 600_000);
            for policy in POLICIES {
                let axes =
                    vec![("ratio", format!("1 : {ratio}").into()), ("policy", policy.into())];
                let job = shape.job(name, policy, axes);
                jobs.push(Job { warm_up: length, measure: length, ..job });
            }
        }
    }
    LiveFigure::new(FIG_9, jobs, loaded, draw_9)
}

/// The surplus over WATT of one workload, over all ratios.
fn over_watt(grid: &Grid, workload: &str, policy: &str) -> Option<Interval> {
    let ratios = grid.labels(1);
    let pairs: Vec<_> = ratios
        .iter()
        .map(|ratio| (vec![workload, *ratio, policy], vec![workload, *ratio, WATT]))
        .collect();
    grid.ratio_over(&pairs)
}

fn draw_9(rows: &Table) -> Section {
    let axes = ["workload", "ratio", "policy"];
    let mut section = Section {
        note: "Bars are ratios to WATT, geometric means over the pool sizes.".to_string(),
        table: Table::new(["column", "workload", "policy", "over_watt", "low", "high"]),
        ..Section::default()
    };
    for (column, title) in [("reads_per_tx", "page reads"), ("writes_per_tx", "page writes")] {
        let grid = Grid::of(rows, &axes, column);
        let mut plot = BarPlot {
            title: format!("{title} per transaction over WATT's"),
            y: "ratio".to_string(),
            ..BarPlot::default()
        };
        for workload in grid.labels(0) {
            if column == "writes_per_tx" && workload == READ_ONLY {
                continue;
            }
            for policy in grid.labels(2) {
                let Some(value) = over_watt(&grid, workload, policy) else { continue };
                let (group, series) = (workload.to_string(), policy.to_string());
                plot.bars.push(Bar { group, series, value });
                let row = [title.into(), workload.into(), policy.into(), value.mean.into()];
                section
                    .table
                    .rows
                    .push([row.to_vec(), vec![value.low.into(), value.high.into()]].concat());
            }
        }
        section.plots.push(plot.into());
        let of = |policy| -> Vec<(&str, Option<Interval>)> {
            let with_writes = |w: &&str| column == "reads_per_tx" || *w != READ_ONLY;
            let workloads = WORKLOADS.into_iter().filter(with_writes);
            workloads.map(|workload| (workload, over_watt(&grid, workload, policy))).collect()
        };
        let bounds = match column {
            "reads_per_tx" => [1.04, 1.07, 1.11],
            _ => [1.10, 1.15, 1.32],
        };
        for (policy, bound) in [HYPERBOLIC, LEAN, "random"].into_iter().zip(bounds) {
            let says = format!("{policy}: at least {bound} times WATT's {title}");
            section.claims.push(claim(&says, &of(policy), above(bound)));
        }
    }
    section
}

fn figure_11(scale: Scale, loaded: &Loaded) -> LiveFigure {
    let seconds = scale.pick(0.05, 1.5, 300.0);
    let mut jobs = Vec::new();
    for name in [MIXED, TPCC] {
        let shape = Shape { scale, pool: None, device: DeviceSpec::Memory, threads: 1, seconds };
        jobs.extend(
            POLICIES.map(|policy| shape.job(name, policy, vec![("policy", policy.into())])),
        );
    }
    LiveFigure::new(FIG_11, jobs, loaded, draw_11)
}

fn draw_11(rows: &Table) -> Section {
    let title = "processor time per transaction over RANDOM's";
    let mut section = bars(rows, BY_POLICY, "cpu_us_per_tx", title, "random");
    let over = |column| {
        let grid = Grid::of(rows, &["workload", "policy"], column);
        [MIXED, TPCC].map(|w| (w, grid.ratio(&[w, WATT], &[w, "random"])))
    };
    let says = "WATT costs a worker no more than RANDOM does, within 2 %";
    section.claims.push(claim(says, &over("cpu_us_per_tx"), below(1.02)));
    let says = "WATT executes at most 2 % more instructions than RANDOM";
    let instructions = over("instructions_per_tx");
    if instructions.iter().all(|(_, ratio)| ratio.is_none()) {
        section.claims.push(Claim::open(says, "not counted here"));
        section.note = "Instructions are not counted here: the machine has no hardware counter \
                        for them, or lets nobody read it."
            .to_string();
        return section;
    }
    section.claims.push(claim(says, &instructions, below(1.02)));
    let title = "instructions per transaction over RANDOM's";
    let counted = bars(rows, BY_POLICY, "instructions_per_tx", title, "random");
    section.plots.extend(counted.plots);
    section.table.append(counted.table);
    section
}

fn figure_13(scale: Scale, loaded: &Loaded) -> LiveFigure {
    let seconds = scale.pick(0.05, 2.0, 600.0);
    let mut jobs = Vec::new();
    for name in WORKLOADS {
        let shape = Shape {
            scale,
            pool: Some(Size::Share(1.0 / 50.0)),
            device: scale.pick(
                DeviceSpec::Memory,
                DeviceSpec::Slow(SlowProfile::NVME),
                DeviceSpec::Slow(SlowProfile::NVME),
            ),
            threads: scale.pick(2, cores(), cores()),
            seconds,
        };
        jobs.extend(
            POLICIES.map(|policy| shape.job(name, policy, vec![("policy", policy.into())])),
        );
    }
    LiveFigure::new(FIG_13, jobs, loaded, draw_13)
}

fn draw_13(rows: &Table) -> Section {
    let title = "transactions per second over WATT's";
    let mut section = bars(rows, BY_POLICY, "throughput_per_s", title, WATT);
    let grid = Grid::of(rows, &["workload", "policy"], "throughput_per_s");
    let over = |policy: &'static str| {
        WORKLOADS.map(|name| (name, grid.ratio(&[name, policy], &[name, WATT])))
    };
    section.claims = [HYPERBOLIC, LEAN, "random"]
        .map(|policy| claim(&format!("{policy} is slower than WATT"), &over(policy), below(1.0)))
        .to_vec();
    section
}

fn workers(scale: Scale, loaded: &Loaded) -> LiveFigure {
    let seconds = scale.pick(0.05, 1.0, 60.0);
    let batched = format!("lru, {}", HitDelivery::Batched);
    let mut jobs = Vec::new();
    for name in [READ_ONLY, TPCC] {
        for threads in thread_counts() {
            let shape = Shape { scale, pool: None, device: DeviceSpec::Memory, threads, seconds };
            for label in [WATT, LEAN, "random", "lru", &batched] {
                let policy = if label == batched { "lru" } else { label };
                let axes = vec![("workers", threads.into()), ("policy", label.into())];
                let mut job = shape.job(name, policy, axes);
                if label == batched {
                    job.setup.options.lab.hit_delivery = HitDelivery::Batched;
                }
                jobs.push(job);
            }
        }
    }
    LiveFigure::new(WORKERS, jobs, loaded, draw_workers)
}

fn draw_workers(rows: &Table) -> Section {
    let grid = Grid::of(rows, &["workload", "workers", "policy"], "throughput_per_s");
    let mut section = Section::default();
    let (threads, policies) = (grid.labels(1), grid.labels(2));
    let (Some(least), Some(most)) = (threads.first(), threads.last()) else { return section };
    section.table = Table::new(["workload", "policy", "workers", "tx/s", "speed-up"]);
    for workload in grid.labels(0) {
        let mut lines = Vec::new();
        for policy in &policies {
            let mut line = Line { label: (*policy).to_string(), ..Line::default() };
            for count in &threads {
                let Some(value) = grid.interval(&[workload, count, policy]) else { continue };
                line.points.push((count.parse().unwrap_or(0.0), value.mean));
                line.band.push((value.low, value.high));
                let speed_up = grid.ratio(&[workload, count, policy], &[workload, least, policy]);
                let row = [workload.into(), (*policy).into(), (*count).into(), value.mean.into()];
                let speed_up = speed_up.map(|ratio| ratio.mean).into();
                section.table.rows.push(row.into_iter().chain([speed_up]).collect());
            }
            lines.push(line);
        }
        let plot = LinePlot {
            title: format!("{workload}, in memory"),
            x: "worker threads".to_string(),
            y: "transactions per second".to_string(),
            lines,
            ..LinePlot::default()
        };
        section.plots.push(plot.into());
    }
    let batched = format!("lru, {}", HitDelivery::Batched);
    let over = |above: &str, below: &str| {
        [READ_ONLY, TPCC].map(|name| (name, grid.ratio(&[name, most, above], &[name, most, below])))
    };
    section.claims = vec![
        claim(
            "with all threads, LRU behind a mutex is slower than RANDOM",
            &over("lru", "random"),
            below(1.0),
        ),
        claim(
            "with batched hits, it is faster than with exact ones",
            &over(&batched, "lru"),
            above(1.0),
        ),
        claim("WATT is at most 2 % slower than RANDOM", &over(WATT, "random"), above(0.98)),
    ];
    section
}

/// The live figures for one scale.
pub fn figures(scale: Scale) -> Vec<Box<dyn Figure>> {
    let loaded = Loaded::default();
    let live = |figure: LiveFigure| Box::new(figure) as Box<dyn Figure>;
    let [figure_10, figure_12] = watt_evictors::figures(scale, &loaded);
    vec![
        live(figure_9(scale, &loaded)),
        figure_10,
        live(figure_11(scale, &loaded)),
        figure_12,
        live(figure_13(scale, &loaded)),
        live(workers(scale, &loaded)),
        live(watt_modes::figure(scale, &loaded)),
    ]
}
