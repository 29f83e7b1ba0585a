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
use millpond_lab::table::{Table, Value};

use super::live::{Job, LiveFigure, Loaded, cores};
use super::threads::thread_counts;
use super::watt_runs::{
    HYPERBOLIC, LEAN, LEAN_GRID, MIXED, POLICIES, READ_ONLY, Shape, TPCC, WATT, bars,
};
use super::{watt_evictors, watt_modes};
use crate::instance::setup::DeviceSpec;
use crate::run::runner::Length;
use millpond_lab::verdict::{above, at_least, below, claim};

const WORKLOADS: [&str; 3] = [READ_ONLY, MIXED, TPCC];

const FIG_9: About = About {
    id: "9",
    title: "Reads and writes per transaction, live",
    asks: "How many more pages than WATT does each policy read and write per transaction, with \
           data 30 to 70 times as large as the pool?",
    says: "Over WATT's, hyperbolic, lean eviction and random: read-only YCSB reads 1.05, 1.12, \
           1.11; YCSB 90/10 writes 1.11, 1.26, 1.36; TPC-C with data 33 times as large as the \
           pool reads 1.06, 1.07, 1.14 and writes 1.10, 1.15, 1.33, with data 73 times as large \
           1.04, 1.10, 1.14 and 1.13, 1.19, 1.32.",
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
    says: "WATT is the fastest everywhere: on YCSB 90/10 6 % faster than hyperbolic, on TPC-C of \
           both sizes 7 % faster than hyperbolic and lean eviction, and random is at least 22 % \
           slower than WATT there.",
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

/// The policies of a figure, and where lean eviction is judged, the grid that tunes it.
fn with_grid(scale: Scale, is_judged: bool) -> Vec<&'static str> {
    let mut policies = POLICIES.to_vec();
    if is_judged && scale != Scale::Quick {
        policies.extend(LEAN_GRID.into_iter().filter(|lean| *lean != LEAN));
    }
    policies
}

/// The policies that a claim about one is about. The paper's lean eviction is tuned by a grid
/// search: what WATT leads by holds for the best one of a grid if it holds for each, and that
/// selects nothing.
fn judged(policy: &'static str) -> Vec<&'static str> {
    if policy == LEAN { LEAN_GRID.to_vec() } else { vec![policy] }
}

/// How a claim names them.
fn named(policy: &str) -> &str {
    if policy == LEAN { "lean eviction, with each cooling stage," } else { policy }
}

/// Values of those that a claim is about, without a name where there is one.
fn of_each<'p>(
    policies: &[&'p str],
    ratio: impl Fn(&str) -> Option<Interval>,
) -> Vec<(&'p str, Option<Interval>)> {
    let name = |policy: &'p str| if policies.len() == 1 { "" } else { policy };
    policies.iter().map(|policy| (name(policy), ratio(policy))).collect()
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
            let ratio = format!("1 : {ratio}");
            let is_printed = PRINTED_9.iter().any(|(w, r, ..)| (*w, *r) == (name, ratio.as_str()));
            for policy in with_grid(scale, is_printed) {
                let axes = vec![("ratio", ratio.as_str().into()), ("policy", policy.into())];
                let job = shape.job(name, policy, axes);
                jobs.push(Job { warm_up: length, measure: length, ..job });
            }
        }
    }
    LiveFigure::new(FIG_9, jobs, loaded, draw_9)
}

/// Workload, how many times as large as the pool its data are, policy.
const BY_SETTING: [&str; 3] = ["workload", "ratio", "policy"];

/// Ratios to WATT's of one column, in each setting by itself.
fn over_watt(grid: &Grid, title: &str, section: &mut Section) {
    if section.table.columns.is_empty() {
        let columns = ["what", "workload", "ratio", "policy", "over WATT", "low", "high"];
        section.table = Table::new(columns);
    }
    let mut plot = BarPlot {
        title: format!("{title} over WATT's"),
        y: "ratio".to_string(),
        ..BarPlot::default()
    };
    for workload in grid.labels(0) {
        for ratio in grid.labels(1) {
            for policy in grid.labels(2) {
                let place = |policy| [workload, ratio, policy];
                let Some(value) = grid.ratio(&place(policy), &place(WATT)) else { continue };
                let (group, series) = (format!("{workload}, {ratio}"), policy.to_string());
                plot.bars.push(Bar { group, series, value });
                let place = [title, workload, ratio, policy].map(Value::from);
                let numbers = [value.mean, value.low, value.high].map(Value::from);
                section.table.rows.push([&place[..], &numbers[..]].concat());
            }
        }
    }
    section.plots.push(plot.into());
}

const READS: &str = "page reads per transaction";
const WRITES: &str = "page writes per transaction";

/// What is printed for hyperbolic, lean eviction and random, over WATT's: the workload, the ratio
/// here that is nearest to the paper's, and what.
const PRINTED_9: [(&str, &str, &str, [f64; 3]); 6] = [
    (READ_ONLY, "1 : 50", READS, [1.05, 1.12, 1.11]),
    (MIXED, "1 : 50", WRITES, [1.11, 1.26, 1.36]),
    (TPCC, "1 : 30", READS, [1.06, 1.07, 1.14]),
    (TPCC, "1 : 30", WRITES, [1.10, 1.15, 1.33]),
    (TPCC, "1 : 70", READS, [1.04, 1.10, 1.14]),
    (TPCC, "1 : 70", WRITES, [1.13, 1.19, 1.32]),
];

fn draw_9(rows: &Table) -> Section {
    let mut section = Section {
        note: "Bars are ratios to WATT. Each claim is about one setting, with the number that is \
               printed for it."
            .to_string(),
        ..Section::default()
    };
    let grids = [("reads_per_tx", READS), ("writes_per_tx", WRITES)]
        .map(|(column, title)| (title, Grid::of(rows, &BY_SETTING, column)));
    for (title, grid) in &grids {
        over_watt(grid, title, &mut section);
    }
    for (workload, ratio, what, printed) in PRINTED_9 {
        let Some((_, grid)) = grids.iter().find(|(title, _)| *title == what) else { continue };
        for (policy, bound) in [HYPERBOLIC, LEAN, "random"].into_iter().zip(printed) {
            let says = format!(
                "{workload}, {ratio}: {} at least {bound:.2} times WATT's {what}",
                named(policy)
            );
            let over = of_each(&judged(policy), |policy| {
                grid.ratio(&[workload, ratio, policy], &[workload, ratio, WATT])
            });
            section.claims.push(claim(&says, &over, at_least(bound)));
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
    // The data of the quick scale are too small for a seventieth of them.
    let settings = [(READ_ONLY, 50), (MIXED, 50), (TPCC, 30), (TPCC, 70)];
    for (name, ratio) in settings.into_iter().take(scale.pick(3, 4, 4)) {
        let shape = Shape {
            scale,
            pool: Some(Size::Share(1.0 / f64::from(ratio))),
            device: scale.pick(
                DeviceSpec::Memory,
                DeviceSpec::Slow(SlowProfile::NVME),
                DeviceSpec::Slow(SlowProfile::NVME),
            ),
            threads: scale.pick(2, cores(), cores()),
            seconds,
        };
        jobs.extend(with_grid(scale, true).into_iter().map(|policy| {
            let axes = vec![("ratio", format!("1 : {ratio}").into()), ("policy", policy.into())];
            shape.job(name, policy, axes)
        }));
    }
    LiveFigure::new(FIG_13, jobs, loaded, draw_13)
}

/// What the slower policies reach of WATT's transactions per second: where a number is printed
/// that, else less than all.
const PRINTED_13: [(&str, &str, &str, Option<f64>); 12] = [
    (READ_ONLY, "1 : 50", HYPERBOLIC, None),
    (READ_ONLY, "1 : 50", LEAN, None),
    (READ_ONLY, "1 : 50", "random", None),
    (MIXED, "1 : 50", HYPERBOLIC, Some(1.06)),
    (MIXED, "1 : 50", LEAN, None),
    (MIXED, "1 : 50", "random", None),
    (TPCC, "1 : 30", HYPERBOLIC, Some(1.07)),
    (TPCC, "1 : 30", LEAN, Some(1.07)),
    (TPCC, "1 : 30", "random", Some(1.0 / 0.78)),
    (TPCC, "1 : 70", HYPERBOLIC, Some(1.07)),
    (TPCC, "1 : 70", LEAN, Some(1.07)),
    (TPCC, "1 : 70", "random", Some(1.0 / 0.78)),
];

fn draw_13(rows: &Table) -> Section {
    let grid = Grid::of(rows, &BY_SETTING, "throughput_per_s");
    let mut section = Section::default();
    over_watt(&grid, "transactions per second", &mut section);
    for (workload, ratio, policy, printed) in PRINTED_13 {
        let over = of_each(&judged(policy), |policy| {
            grid.ratio(&[workload, ratio, WATT], &[workload, ratio, policy])
        });
        let (says, bound) = match printed {
            Some(printed) => (format!("at least {printed:.2} times"), at_least(printed)),
            None => ("more than".to_string(), above(1.0)),
        };
        let policy = named(policy);
        let says = format!("{workload}, {ratio}: WATT does {says} what {policy} does");
        section.claims.push(claim(&says, &over, bound));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of three repetitions in which each policy has these values, in every setting.
    fn rows(columns: [&str; 2], value: impl Fn(&str, &str, &str) -> [f64; 2]) -> Table {
        let axes = ["workload", "ratio", "policy", "repetition"];
        let mut table = Table::new(axes.into_iter().chain(columns));
        for (workload, ratio) in [(READ_ONLY, 50), (MIXED, 50), (TPCC, 30), (TPCC, 50), (TPCC, 70)]
        {
            for policy in with_grid(Scale::Standard, true) {
                for repetition in 1..=3_u64 {
                    let ratio = format!("1 : {ratio}");
                    let noise = 1.0 + repetition as f64 / 10_000.0;
                    let values = value(workload, &ratio, policy).map(|v| (v * noise).into());
                    let mut row: Vec<Value> =
                        vec![workload.into(), ratio.as_str().into(), policy.into()];
                    row.push(repetition.into());
                    row.extend(values);
                    table.rows.push(row);
                }
            }
        }
        table
    }

    fn verdicts(section: &Section) -> Vec<Option<bool>> {
        section.claims.iter().map(|claim| claim.holds).collect()
    }

    /// The value printed for a policy, times something; 1 for WATT.
    fn printed(workload: &str, ratio: &str, what: &str, policy: &str, times: f64) -> f64 {
        let policy = if LEAN_GRID.contains(&policy) { LEAN } else { policy };
        let of = [HYPERBOLIC, LEAN, "random"].iter().position(|p| *p == policy);
        let row = PRINTED_9.iter().find(|(w, r, of, _)| (*w, *r, *of) == (workload, ratio, what));
        of.zip(row).map_or(1.0, |(at, row)| row.3[at] * times)
    }

    #[test]
    fn each_setting_of_figure_9_is_judged_by_its_own_number() {
        let columns = ["reads_per_tx", "writes_per_tx"];
        let all = |times| {
            let section = draw_9(&rows(columns, |workload, ratio, policy| {
                [READS, WRITES].map(|what| printed(workload, ratio, what, policy, times))
            }));
            assert_eq!(section.plots.len(), 2);
            verdicts(&section)
        };
        assert_eq!(all(1.0), [Some(true); 18]);
        assert_eq!(all(0.99), [Some(false); 18]);
        // What another setting has decides nothing: here TPC-C at 1 : 70 alone falls short.
        let section = draw_9(&rows(columns, |workload, ratio, policy| {
            let times = if (workload, ratio) == (TPCC, "1 : 70") { 0.97 } else { 1.1 };
            [READS, WRITES].map(|what| printed(workload, ratio, what, policy, times))
        }));
        assert_eq!(verdicts(&section), [[Some(true); 12], [Some(false); 12]].concat()[..18]);
    }

    #[test]
    fn figure_13_wants_the_lead_that_is_printed_and_else_a_lead() {
        let columns = ["throughput_per_s", "other"];
        let lead = |random: f64, others: f64| {
            let section = draw_13(&rows(columns, |_, _, policy| match policy {
                WATT => [1000.0, 0.0],
                "random" => [1000.0 / random, 0.0],
                _ => [1000.0 / others, 0.0],
            }));
            verdicts(&section)
        };
        assert_eq!(lead(1.3, 1.07), [Some(true); 12]);
        let behind = [3, 6, 7, 8, 9, 10, 11];
        for (at, verdict) in lead(1.2, 1.03).into_iter().enumerate() {
            assert_eq!(verdict, Some(!behind.contains(&at)), "{:?}", PRINTED_13[at]);
        }
        assert_eq!(lead(0.9, 0.9), [Some(false); 12]);
    }

    #[test]
    fn lean_eviction_is_judged_by_the_best_of_its_grid() {
        let columns = ["throughput_per_s", "reads_per_tx"];
        let of = |best: f64| {
            rows(columns, move |_, _, policy| match policy {
                WATT => [1000.0, 1.0],
                "lean-evict(cooling=50%)" => [1000.0 / best, best],
                _ => [1000.0 / 1.5, 1.5],
            })
        };
        let lean = |section: Section| {
            let all = section.claims.into_iter().filter(|claim| claim.says.contains("lean"));
            all.filter(|claim| !claim.says.contains("writes"))
                .map(|claim| claim.holds)
                .collect::<Vec<_>>()
        };
        assert_eq!(lean(draw_13(&of(1.2))), [Some(true); 4]);
        assert_eq!(lean(draw_13(&of(0.9))), [Some(false); 4], "one stage is faster than WATT");
        assert_eq!(lean(draw_9(&of(1.2))), [Some(true); 3]);
        assert_eq!(lean(draw_9(&of(1.0))), [Some(false); 3], "one stage reads as little");
        let mut rows = of(1.2);
        rows.rows.retain(|row| row[2] != "lean-evict(cooling=50%)".into());
        assert_eq!(lean(draw_13(&rows)), [None; 4], "a stage was not run");
    }
}
