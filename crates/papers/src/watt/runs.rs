//! Common parts of WATT's live figures: policies, workloads, the shape of runs, bars of ratios.

use crate::experiment::{Grid, Need, Scale};
use millpond_base::Size;
use millpond_lab::interval::Interval;
use millpond_lab::report::{Bar, BarPlot, Section};
use millpond_lab::table::{Table, Value};
use millpond_workload::{tpcc, ycsb};

use crate::live::{Job, lengths};
use millpond_bench::instance::setup::{DeviceSpec, Setup};
use millpond_bench::run::client::Workload;

pub(super) const WATT: &str = "watt";
pub(super) const LEAN: &str = "lean-evict(cooling=30%)";
/// Lean eviction over a grid of cooling stages, by which the paper tuned it (watt 6.1).
pub(super) const LEAN_GRID: [&str; 3] =
    [LEAN, "lean-evict(cooling=10%)", "lean-evict(cooling=50%)"];
/// Hyperbolic caching as shipped, which draws a sample for each victim.
pub(super) const HYPERBOLIC: &str = "hyperbolic";
/// Hyperbolic caching as the paper runs it in an engine, with WATT's sample, threshold and
/// candidates (watt 6.1).
pub(super) const HYPERBOLIC_SHARED: &str = "hyperbolic(sample=8,candidates=64)";
pub(super) const POLICIES: [&str; 4] = [WATT, HYPERBOLIC_SHARED, LEAN, "random"];

pub(super) const READ_ONLY: &str = "ycsb read-only";
pub(super) const MIXED: &str = "ycsb 90/10";
pub(super) const TPCC: &str = "tpcc";
pub(super) fn workload(scale: Scale, name: &str, threads: u32) -> Workload {
    let rows = scale.pick(10_000, 400_000, 180_000_000);
    let updates = if name == MIXED { 10 } else { 0 };
    let miniature = tpcc::Scale { warehouses: 8, items: 10_000, customers: 300 };
    match name {
        TPCC => {
            let data = scale.pick(tpcc::Scale::tiny(2), miniature, tpcc::Scale::full(250));
            Workload::Tpcc(tpcc::Config::standard(data, threads))
        }
        _ => Workload::Ycsb(ycsb::Config { threads, ..ycsb::Config::watt(rows, updates) }),
    }
}

/// Shape of a job: a pool of some size, or with room for everything.
pub(super) struct Shape {
    pub scale: Scale,
    pub pool: Option<Size>,
    pub device: DeviceSpec,
    pub threads: u32,
    /// Seconds of the measurement.
    pub seconds: f64,
}

impl Shape {
    pub fn job(&self, name: &str, policy: &str, axes: Vec<(&'static str, Value)>) -> Job {
        let setup = Setup::new();
        let options = setup.options.policy(policy);
        let workload = workload(self.scale, name, self.threads);
        let memory: u64 = self.scale.pick(128 << 20, 1 << 30, 140 << 30);
        let (warm_up, measure) = lengths(self.scale, &workload, self.seconds, 0.4);
        let growth = match (self.pool, self.scale) {
            (None, Scale::Paper) => 40 << 30,
            _ => 256 << 20,
        };
        Job {
            axes: [vec![("workload", name.into())], axes].concat(),
            setup: Setup { options, pool: self.pool, device: self.device.clone(), growth, ..setup },
            workload,
            warm_up,
            measure,
            need: Need { seconds: self.seconds * 1.5 + 0.4, memory, disk: 0 },
        }
    }
}

/// Returns bars of the ratios to one place on the second axis, by the first axis.
pub(super) fn bars(
    rows: &Table,
    axes: [&str; 2],
    column: &str,
    title: &str,
    base: &str,
) -> Section {
    let grid = Grid::of(rows, &axes, column);
    let mut plot =
        BarPlot { title: title.to_string(), y: "ratio".to_string(), ..BarPlot::default() };
    let mut table = Table::new([axes[0], axes[1], column, "ratio", "low", "high"]);
    for workload in grid.labels(0) {
        for policy in grid.labels(1) {
            let Some(value) = grid.ratio(&[workload, policy], &[workload, base]) else { continue };
            let (group, series) = (workload.to_string(), policy.to_string());
            plot.bars.push(Bar { group, series, value });
            let mean = grid.mean(&[workload, policy]);
            let ends = [value.mean.into(), value.low.into(), value.high.into()];
            let row = [workload.into(), policy.into(), mean.into()];
            table.rows.push(row.into_iter().chain(ends).collect());
        }
    }
    Section { plots: vec![plot.into()], table, ..Section::default() }
}

/// Returns the policies of a figure. If they are judged, the list includes the grid that tunes
/// lean eviction, and shipped hyperbolic caching, which no claim concerns.
pub(super) fn with_grid(scale: Scale, is_judged: bool) -> Vec<&'static str> {
    let mut policies = POLICIES.to_vec();
    if is_judged && scale != Scale::Quick {
        policies.extend(LEAN_GRID.into_iter().filter(|lean| *lean != LEAN));
        policies.push(HYPERBOLIC);
    }
    policies
}

/// Returns the policies that a claim about one policy covers. The paper tunes lean eviction by a
/// grid search. A lead of WATT over the best of the grid holds if it holds over each, and that
/// needs no selection.
pub(super) fn judged(policy: &'static str) -> Vec<&'static str> {
    if policy == LEAN { LEAN_GRID.to_vec() } else { vec![policy] }
}

/// Returns the name of a policy in claims.
pub(super) fn named(policy: &str) -> &str {
    if policy == LEAN { "lean eviction, with each cooling stage," } else { policy }
}

/// Returns the values of the covered policies, without a name if there is only one.
pub(super) fn of_each<'p>(
    policies: &[&'p str],
    ratio: impl Fn(&str) -> Option<Interval>,
) -> Vec<(&'p str, Option<Interval>)> {
    let name = |policy: &'p str| if policies.len() == 1 { "" } else { policy };
    policies.iter().map(|policy| (name(policy), ratio(policy))).collect()
}

/// Axes: workload, ratio of data to pool, policy.
pub(super) const BY_SETTING: [&str; 3] = ["workload", "ratio", "policy"];

/// Draws the ratios of one column to WATT's, in each setting.
pub(super) fn over_watt(grid: &Grid, title: &str, section: &mut Section) {
    over(WATT, grid, title, section);
}

/// Draws the ratios of one column to those of the policy `base`.
pub(super) fn over(base: &str, grid: &Grid, title: &str, section: &mut Section) {
    if section.table.columns.is_empty() {
        let columns = ["what", "workload", "ratio", "policy", "over", "times", "low", "high"];
        section.table = Table::new(columns);
    }
    let mut plot = BarPlot {
        title: format!("{title} over those of {base}"),
        y: "ratio".to_string(),
        ..BarPlot::default()
    };
    for workload in grid.labels(0) {
        for ratio in grid.labels(1) {
            for policy in grid.labels(2) {
                let place = |policy| [workload, ratio, policy];
                let Some(value) = grid.ratio(&place(policy), &place(base)) else { continue };
                let (group, series) = (format!("{workload}, {ratio}"), policy.to_string());
                plot.bars.push(Bar { group, series, value });
                let place = [title, workload, ratio, policy, base].map(Value::from);
                let numbers = [value.mean, value.low, value.high].map(Value::from);
                section.table.rows.push([&place[..], &numbers[..]].concat());
            }
        }
    }
    section.plots.push(plot.into());
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Makes rows of three repetitions in which each policy has these values, in each setting.
    pub fn made_up(
        settings: &[(&str, &str)],
        columns: [&str; 2],
        value: impl Fn(&str, &str, &str) -> [f64; 2],
    ) -> Table {
        let axes = ["workload", "ratio", "policy", "repetition"];
        let mut table = Table::new(axes.into_iter().chain(columns));
        for (workload, ratio) in settings {
            for policy in with_grid(Scale::Standard, true) {
                for repetition in 1..=3_u64 {
                    let noise = 1.0 + repetition as f64 / 10_000.0;
                    let values = value(workload, ratio, policy).map(|v| (v * noise).into());
                    let mut row: Vec<Value> = [*workload, *ratio, policy].map(Value::from).into();
                    row.push(repetition.into());
                    row.extend(values);
                    table.rows.push(row);
                }
            }
        }
        table
    }

    pub fn verdicts(section: &Section) -> Vec<Option<bool>> {
        section.claims.iter().map(|claim| claim.holds).collect()
    }

    #[test]
    fn what_is_judged_is_also_run_beside_the_shipped_form() {
        let policies = with_grid(Scale::Standard, true);
        for policy in POLICIES.into_iter().flat_map(judged).chain([HYPERBOLIC]) {
            assert!(policies.contains(&policy), "{policy}");
        }
        assert_eq!(with_grid(Scale::Standard, false), POLICIES);
        assert!(!judged(HYPERBOLIC_SHARED).contains(&HYPERBOLIC));
    }
}
