//! What WATT's live figures share: policies, workloads, the shape of a run, bars of ratios.

use millpond_base::Size;
use millpond_lab::experiment::{Grid, Need, Scale};
use millpond_lab::report::{Bar, BarPlot, Section};
use millpond_lab::table::{Table, Value};
use millpond_workload::{tpcc, ycsb};

use super::live::{Job, lengths};
use crate::instance::setup::{DeviceSpec, Setup};
use crate::run::client::Workload;

pub(super) const WATT: &str = "watt";
pub(super) const LEAN: &str = "lean-evict(cooling=30%)";
/// Lean eviction over a grid of cooling stages: what the paper tuned it by (watt 6.1).
pub(super) const LEAN_GRID: [&str; 3] =
    [LEAN, "lean-evict(cooling=10%)", "lean-evict(cooling=50%)"];
pub(super) const HYPERBOLIC: &str = "hyperbolic";
/// Hyperbolic caching as the paper runs it in an engine: it shares WATT's sample, threshold and
/// candidates (watt 6.1).
pub(super) const HYPERBOLIC_SHARED: &str = "hyperbolic(sample=8,candidates=64)";
pub(super) const POLICIES: [&str; 4] = [WATT, HYPERBOLIC, LEAN, "random"];

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

/// A job on a pool of a size, or with room for everything.
pub(super) struct Shape {
    pub scale: Scale,
    pub pool: Option<Size>,
    pub device: DeviceSpec,
    pub threads: u32,
    /// How long is measured.
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

/// Ratios to those of one place on the second axis, by the first.
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
