//! Choice of the default policy, which runs if no policy is named: an experiment of ours, not of
//! any paper.
//!
//! The figure `pages` runs candidates and classics with TPC-C in full-size warehouses and with
//! key-value operations, in pools of several sizes, and judges them by regret ([`repeated`]).
//! Regret is the distance from the best policy of each cell, in page reads plus twice the page
//! writes. The figure `throughput` runs the best policies with all threads, in memory and beyond
//! it.

use std::collections::BTreeMap;

use crate::experiment::{About, Experiment, Figure, Grid, Need, Scale};
use millpond_device::SlowProfile;
use millpond_lab::interval::Interval;
use millpond_lab::method::{Bootstrap, CellCost, Regret, repeated};
use millpond_lab::report::{Bar, BarPlot, Claim, Section};
use millpond_lab::table::{Table, Value};
use millpond_lab::verdict::{above, below, claim};
use millpond_workload::keys::Distribution;
use millpond_workload::ycsb::{LoadOrder, Mix};
use millpond_workload::{tpcc, ycsb};

use crate::live::{Job, LiveFigure, Loaded, cores, lengths, percent};
use millpond_bench::instance::setup::{DeviceSpec, Setup};
use millpond_bench::run::client::Workload;
use millpond_bench::run::runner::Length;

/// Former default, with which the candidates are compared.
const FORMER: &str = "watt";

/// Candidates, chosen by simulated regret before any of these runs.
const CANDIDATES: [&str; 6] = [
    "tide",
    "s3-fifo",
    "s3-fifo(dirty_rounds=3)",
    "s3-fifo(small=2%,ghost=45%,threshold=1,dirty_rounds=3)",
    "watt(sample=32)",
    "watt(sample=32,epochs=16)",
];

/// Further policies, so that the best one of a cell is the best of many.
const OTHERS: [&str; 17] = [
    "watt(epochs=16)",
    "watt(epochs=64)",
    "s3-fifo(dirty_rounds=1)",
    "sieve",
    "clock-pro",
    "car",
    "lirs",
    "w-tinylfu",
    "2q",
    "mq",
    "arc",
    "slru",
    "hyperbolic",
    "lean-evict",
    "lru",
    "clock",
    "random",
];

/// Cost of a page write in page reads.
const WRITE_WEIGHT: f64 = 2.0;

const TPCC: &str = "tpcc";
const LOOKUPS: &str = "lookups";
const UPDATES: &str = "updates";
const SCANS: &str = "scans";

/// Each workload, and its pool sizes in per cent of the data.
const CELLS: [(&str, &[u32]); 4] = [
    (TPCC, &[2, 5, 20, 25, 50]),
    (LOOKUPS, &[5, 20, 50]),
    (UPDATES, &[5, 20, 50]),
    (SCANS, &[5, 20, 50]),
];

const BY_SETTING: [&str; 3] = ["workload", "pool", "policy"];

const PAGES: About = About {
    id: "pages",
    title: "Pages read and written, and the regret of each policy",
    asks: "How far is each policy from the best one of each workload and pool size, in page reads \
           plus twice the page writes?",
    says: "None asks it: WATT's compares each with its own policy, Gilbert's compares means.",
};

const THROUGHPUT: About = About {
    id: "throughput",
    title: "Throughput of the best ones",
    asks: "What do the candidates cost where everything is in memory, and what do they bring on an \
           NVMe drive, with a fifth of the data in memory?",
    says: "Gilbert's (1.3.5) has misses as what decides beyond memory, and latched lists as the \
           slowest within it.",
};

/// Returns the experiment for one scale.
pub fn experiment(scale: Scale) -> Experiment {
    let loaded = Loaded::default();
    let figures: Vec<Box<dyn Figure>> =
        vec![Box::new(pages(scale, &loaded)), Box::new(throughput(scale, &loaded))];
    Experiment {
        paper: "default",
        title: "Which policy decides where nothing names one".to_string(),
        note: format!(
            "Candidates were chosen by regret in simulation before they were run here. TPC-C has \
             warehouses in full. Page counts are those of one worker; throughput has {} of them. \
             Rows of key-value operations have 8 + 120 bytes and are drawn by Zipf 0.9; one in \
             ten operations is an update, or one in twenty an update and one in twenty a scan of \
             100 rows.",
            cores()
        ),
        scale,
        figures,
    }
}

fn workload(scale: Scale, name: &str, threads: u32) -> Workload {
    if name == TPCC {
        let data = scale.pick(tpcc::Scale::tiny(2), tpcc::Scale::full(4), tpcc::Scale::full(100));
        return Workload::Tpcc(tpcc::Config::standard(data, threads));
    }
    let mix = match name {
        UPDATES => Mix::updates(10),
        SCANS => Mix { read: 90, update: 5, scan: 5, ..Mix::default() },
        _ => Mix::READ,
    };
    let rows = scale.pick(10_000, 300_000, 30_000_000);
    Workload::Ycsb(ycsb::Config {
        mix,
        threads,
        distribution: Distribution::Zipf { theta: 0.9 },
        scan_rows: (100, 100),
        load_order: LoadOrder::Ascending,
        ..ycsb::Config::leanstore(rows)
    })
}

fn policies(scale: Scale) -> Vec<&'static str> {
    if scale == Scale::Quick {
        return vec![FORMER, CANDIDATES[0], "s3-fifo", "random"];
    }
    [&[FORMER], &CANDIDATES[..], &OTHERS[..]].concat()
}

fn setup(policy: &str) -> Setup {
    let setup = Setup::new();
    Setup { options: setup.options.policy(policy), growth: 256 << 20, ..setup }
}

fn memory(scale: Scale) -> u64 {
    scale.pick(128 << 20, 2 << 30, 140 << 30)
}

fn pages(scale: Scale, loaded: &Loaded) -> LiveFigure {
    let mut jobs = Vec::new();
    for (name, pools) in CELLS {
        let operations = match name {
            TPCC => scale.pick(500, 60_000, 10_000_000),
            SCANS => scale.pick(500, 150_000, 10_000_000),
            _ => scale.pick(2_000, 500_000, 50_000_000),
        };
        let (warm_up, measure) =
            (Length::Operations(operations / 2), Length::Operations(operations));
        let pools = if scale == Scale::Quick { &pools[1..2] } else { pools };
        for pool in pools {
            for policy in policies(scale) {
                let axes: Vec<(&'static str, Value)> = vec![
                    ("workload", name.into()),
                    ("pool", format!("{pool}%").into()),
                    ("policy", policy.into()),
                ];
                let seconds = scale.pick(0.2, if name == TPCC { 2.6 } else { 0.9 }, 600.0);
                jobs.push(Job {
                    axes,
                    setup: Setup { pool: Some(percent(f64::from(*pool))), ..setup(policy) },
                    workload: workload(scale, name, 1),
                    warm_up,
                    measure,
                    need: Need { seconds, memory: memory(scale), disk: 0 },
                });
            }
        }
    }
    LiveFigure::new(PAGES, jobs, loaded, draw_pages)
}

fn throughput(scale: Scale, loaded: &Loaded) -> LiveFigure {
    let mut jobs = Vec::new();
    let in_memory = (None, DeviceSpec::Memory, "all");
    let beyond = (Some(percent(20.0)), DeviceSpec::Slow(SlowProfile::NVME), "20%");
    let chosen = [&[FORMER], &CANDIDATES[..], &["random"]].concat();
    let chosen = if scale == Scale::Quick { policies(scale) } else { chosen };
    for (name, (pool, device, label)) in
        [(LOOKUPS, in_memory.clone()), (TPCC, in_memory), (UPDATES, beyond.clone()), (TPCC, beyond)]
    {
        let workload = workload(scale, name, scale.pick(2, cores(), cores()));
        let seconds = scale.pick(0.2, 1.5, 600.0);
        let (warm_up, measure) = lengths(scale, &workload, seconds, 0.3);
        for policy in &chosen {
            jobs.push(Job {
                axes: vec![
                    ("workload", name.into()),
                    ("pool", label.into()),
                    ("policy", (*policy).into()),
                ],
                setup: Setup { pool, device: device.clone(), ..setup(policy) },
                workload,
                warm_up,
                measure,
                need: Need { seconds: seconds * 1.4 + 0.3, memory: memory(scale), disk: 0 },
            });
        }
    }
    LiveFigure::new(THROUGHPUT, jobs, loaded, draw_throughput)
}

/// Returns page reads plus twice the page writes, per operation.
fn cost(rows: &Table, row: usize) -> Option<f64> {
    let number = |column| rows.get(row, column)?.number();
    Some(number("reads_per_tx")? + WRITE_WEIGHT * number("writes_per_tx")?)
}

/// Returns the costs of each complete repetition.
fn costs(rows: &Table) -> Vec<Vec<CellCost>> {
    let mut by_repetition: BTreeMap<u64, Vec<CellCost>> = BTreeMap::new();
    for row in 0..rows.rows.len() {
        let text = |column| rows.get(row, column).map(Value::to_string);
        let repetition = rows.get(row, "repetition").and_then(Value::number);
        let axes = (text("workload"), text("pool"), text("policy"));
        if let (Some(cost), Some(repetition), (Some(trace), Some(size), Some(policy))) =
            (cost(rows, row), repetition, axes)
        {
            let cost = CellCost { trace, size, policy, cost, is_candidate: true };
            by_repetition.entry(repetition as u64).or_default().push(cost);
        }
    }
    let most = by_repetition.values().map(Vec::len).max().unwrap_or(0);
    by_repetition.into_values().filter(|costs| costs.len() == most).collect()
}

fn draw_pages(rows: &Table) -> Section {
    let regrets = match repeated(&costs(rows), Bootstrap::default(), Some(FORMER)) {
        Ok(regrets) => regrets,
        Err(error) => return Section { note: error.to_string(), ..Section::default() },
    };
    let grid = Grid::with(rows, &BY_SETTING, |row| cost(rows, row));
    Section {
        note: format!(
            "Cost is page reads plus {WRITE_WEIGHT} times the page writes. The regret of a policy \
             in a cell, which is a workload and a pool size, is its cost over the least one of \
             the cell, less one. Intervals are of a bootstrap over repetitions: they say what \
             would come out again, and nothing of other workloads."
        ),
        plots: vec![bars(&regrets).into()],
        table: table_of(&regrets),
        claims: cheaper(&grid),
        ..Section::default()
    }
}

/// Returns the regrets in per cent.
fn table_of(regrets: &[Regret]) -> Table {
    let mut table = Table::new([
        "policy",
        "median",
        "median_low",
        "median_high",
        "p90",
        "p90_low",
        "p90_high",
        "less_former",
        "less_low",
        "less_high",
        "worst",
        "worst_at",
        "best_in",
    ]);
    let percents = |interval: Interval| {
        [interval.mean, interval.low, interval.high].map(|v| Value::from(v * 100.0))
    };
    for regret in regrets {
        let mut row = vec![regret.policy.as_str().into()];
        row.extend(percents(regret.median));
        row.extend(percents(regret.p90));
        row.extend(regret.beside.map_or([Value::Empty, Value::Empty, Value::Empty], percents));
        let (workload, pool) = &regret.worst_at;
        row.extend([
            (regret.worst * 100.0).into(),
            format!("{workload}, {pool}").into(),
            (regret.wins as u64).into(),
        ]);
        table.rows.push(row);
    }
    table
}

fn bars(regrets: &[Regret]) -> BarPlot {
    let mut plot = BarPlot {
        title: "Regret: what nine of ten cells do not exceed, and the median".to_string(),
        y: "per cent".to_string(),
        ..BarPlot::default()
    };
    for regret in regrets {
        for (series, value) in [("nine of ten", regret.p90), ("median", regret.median)] {
            let percent = |v: f64| v * 100.0;
            let value = Interval {
                mean: percent(value.mean),
                low: percent(value.low),
                high: percent(value.high),
                ..value
            };
            plot.bars.push(Bar { group: regret.policy.clone(), series: series.to_string(), value });
        }
    }
    plot
}

/// Compares each candidate with the former default by the geometric mean over all settings, in
/// each repetition.
fn cheaper(grid: &Grid) -> Vec<Claim> {
    let of = |policy: &'static str| {
        let mut pairs = Vec::new();
        for workload in grid.labels(0) {
            for pool in grid.labels(1) {
                let place = |policy| vec![workload, pool, policy];
                if grid.mean(&place(policy)).is_some() {
                    pairs.push((place(policy), place(FORMER)));
                }
            }
        }
        let says = format!("{policy} costs less than {FORMER}, over all workloads and pools");
        (!pairs.is_empty()).then(|| claim(&says, &[("", grid.ratio_over(&pairs))], below(1.0)))
    };
    CANDIDATES.into_iter().filter_map(of).collect()
}

/// Minimum share of the former default's throughput that a candidate must reach.
const LOSS: f64 = 0.97;

fn draw_throughput(rows: &Table) -> Section {
    let columns = ["workload", "pool", "policy", "what", "times", "low", "high"];
    let mut section = Section {
        note: format!("Ratios to {FORMER}. A loss of 3 % is our bound."),
        table: Table::new(columns),
        ..Section::default()
    };
    for (title, column) in [("throughput", "throughput_per_s"), ("processor time", "cpu_us_per_tx")]
    {
        let grid = Grid::of(rows, &BY_SETTING, column);
        let mut plot = BarPlot {
            title: format!("{title} over that of {FORMER}"),
            y: "ratio".to_string(),
            ..BarPlot::default()
        };
        for workload in grid.labels(0) {
            for pool in grid.labels(1) {
                for policy in grid.labels(2) {
                    let place = |policy| [workload, pool, policy];
                    let Some(value) = grid.ratio(&place(policy), &place(FORMER)) else { continue };
                    let (group, series) = (format!("{workload}, {pool}"), policy.to_string());
                    plot.bars.push(Bar { group, series, value });
                    let texts = [workload, pool, policy, title].map(Value::from);
                    let numbers = [value.mean, value.low, value.high].map(Value::from);
                    section.table.rows.push([&texts[..], &numbers[..]].concat());
                    if column == "throughput_per_s" && CANDIDATES.contains(&policy) {
                        let says = format!(
                            "{workload}, pool {pool}: {policy} has more than {LOSS} of {FORMER}'s \
                             throughput"
                        );
                        section.claims.push(claim(&says, &[("", Some(value))], above(LOSS)));
                    }
                }
            }
        }
        section.plots.push(plot.into());
    }
    section
}

#[cfg(test)]
mod tests {
    use millpond::internals::store::options::POLICY_DEFAULT;

    use super::*;

    /// Makes rows of three repetitions of two TPC-C settings. Each policy has the given cost in
    /// pages read, throughput and processor time, with a little noise.
    fn made_up(policies: &[(&str, f64, f64)]) -> Table {
        let columns = ["workload", "pool", "policy", "repetition", "reads_per_tx", "writes_per_tx"];
        let more = ["throughput_per_s", "cpu_us_per_tx"];
        let mut table = Table::new(columns.into_iter().chain(more));
        for pool in ["5%", "20%"] {
            for (at, (policy, cost, speed)) in policies.iter().enumerate() {
                for repetition in 1..=3_u64 {
                    // Each policy has its own order of lucky repetitions.
                    let luck = (repetition as usize * (at + 1)) % 3;
                    let noise = 1.0 + luck as f64 / 1000.0;
                    let mut row: Vec<Value> = [TPCC, pool, *policy].map(Value::from).into();
                    row.push(repetition.into());
                    // A third of the cost is writes, each of which counts twice.
                    let numbers = [cost * noise / 3.0, cost * noise / 3.0, speed * noise, 1.0];
                    row.extend(numbers.map(Value::from));
                    table.rows.push(row);
                }
            }
        }
        table
    }

    fn verdict(section: &Section, says: &str) -> Vec<Option<bool>> {
        let about = section.claims.iter().filter(|claim| claim.says.contains(says));
        about.map(|claim| claim.holds).collect()
    }

    #[test]
    fn regret_and_claims_follow_the_costs() {
        let rows = made_up(&[(FORMER, 10.0, 1.0), ("tide", 8.0, 1.0), ("s3-fifo", 12.0, 1.0)]);
        let section = draw_pages(&rows);
        let value = |row, column| section.table.get(row, column).unwrap().number().unwrap();
        let names: Vec<_> = (0..3).map(|row| section.table.get(row, "policy").unwrap()).collect();
        assert_eq!(
            names.iter().map(|n| n.to_string()).collect::<Vec<_>>(),
            ["tide", FORMER, "s3-fifo"]
        );
        assert!((value(1, "p90") - 25.0).abs() < 0.2 && (value(2, "p90") - 50.0).abs() < 0.2);
        assert!((value(0, "less_former") + 25.0).abs() < 0.2 && value(0, "best_in") == 2.0);
        assert_eq!(verdict(&section, "tide costs less"), [Some(true)]);
        assert_eq!(verdict(&section, "s3-fifo costs less"), [Some(false)]);
        // The same cost decides nothing.
        let section = draw_pages(&made_up(&[(FORMER, 10.0, 1.0), ("tide", 10.0, 1.0)]));
        assert_eq!(verdict(&section, "tide costs less"), [None]);
    }

    #[test]
    fn a_cell_that_a_repetition_lacks_leaves_that_repetition_out() {
        let mut rows = made_up(&[(FORMER, 10.0, 1.0), ("tide", 8.0, 1.0)]);
        rows.rows.pop();
        assert_eq!(costs(&rows).len(), 2);
        assert_eq!(draw_pages(&rows).table.rows.len(), 2);
        let none = draw_pages(&Table::new(["workload", "pool", "policy", "repetition"]));
        assert!(none.table.rows.is_empty() && none.note.contains("no cell has a cost"));
    }

    #[test]
    fn throughput_is_judged_on_both_sides_of_the_loss() {
        let of = |speed| draw_throughput(&made_up(&[(FORMER, 1.0, 1.0), ("tide", 1.0, speed)]));
        assert_eq!(verdict(&of(0.99), "tide has more"), [Some(true); 2]);
        assert_eq!(verdict(&of(0.95), "tide has more"), [Some(false); 2]);
        assert_eq!(of(0.99).table.rows.len(), 8, "two settings, two policies, two columns");
    }

    #[test]
    fn the_plan_has_every_candidate_and_the_default_in_each_cell() {
        let standard = policies(Scale::Standard);
        for policy in CANDIDATES.into_iter().chain([FORMER, POLICY_DEFAULT]) {
            assert_eq!(standard.iter().filter(|p| **p == policy).count(), 1, "{policy}");
        }
        let figure = pages(Scale::Standard, &Loaded::default());
        assert_eq!(figure.cells(1).len(), 14 * standard.len());
    }
}
