//! A guide to writing a live figure of a paper, on the framework of [`crate::experiment`].
//!
//! A figure lists its cells, each with its needs, and runs one on request. Between calls it keeps
//! everything that cells share, a loaded store above all. Cells run in the order of the list (every
//! second repetition backwards), so cells with shared data should be adjacent. Time is the sum of
//! loading, warm-up and measurement. The framework corrects estimates by the actual times, and
//! leaves out the last repetitions if they do not fit.
//!
//! Throughput and misses per transaction over pool sizes, for some policies:
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use millpond_base::Size;
//! use millpond_bench::instance::prepare;
//! use millpond_bench::run::client::Workload;
//! use millpond_bench::error::BenchError;
//! use millpond_papers::live::watched::{Watched, failed};
//! use millpond_bench::run::runner::{Length, RunSpec};
//! use millpond_bench::instance::setup::Setup;
//! use millpond_bench::experiments::table::Row;
//! use millpond_papers::experiment::{About, Cell, Fields, Figure, FigureError, Grid, Need, Scale,
//!     Watch};
//! use millpond_lab::report::{Line, LinePlot, Section};
//! use millpond_lab::table::Table;
//! use millpond_workload::tpcc;
//!
//! struct OverSizes {
//!     scale: Scale,
//! }
//!
//! impl Figure for OverSizes {
//!     fn about(&self) -> About {
//!         About { id: "1.29", title: "Throughput over pool sizes", asks: "…", says: "…" }
//!     }
//!
//!     fn cells(&self, repetition: u32) -> Vec<Cell> {
//!         let seconds = self.scale.pick(0.3, 2.0, 30.0);
//!         let need = Need { seconds: seconds * 1.5 + 2.0, memory: 512 << 20, disk: 0 };
//!         let mut cells = Vec::new();
//!         for percent in [1.0, 5.0, 20.0] {
//!             for policy in ["lru", "lean-evict", "watt"] {
//!                 let cell = Cell::new("1.29", repetition, need);
//!                 cells.push(cell.with("percent", percent).with("policy", policy));
//!             }
//!         }
//!         cells
//!     }
//!
//!     fn run(
//!         &mut self,
//!         cells: &[&Cell],
//!         watch: &mut dyn Watch,
//!     ) -> Result<Vec<Vec<Fields>>, FigureError> {
//!         let mut all = Vec::new();
//!         for cell in cells {
//!             let share = cell.number("percent").unwrap_or(100.0) / 100.0;
//!             let options = Setup::new().options.policy(&cell.text("policy"));
//!             let seed = u64::from(cell.repetition);
//!             let options = options.lab(|lab| lab.seed = seed);
//!             let setup = Setup { options, pool: Some(Size::Share(share)), ..Setup::new() };
//!             let config = tpcc::Config::standard(tpcc::Scale::tiny(1), 1);
//!             let mut observer = Watched(watch);
//!             // A figure with much data keeps the instance, and uses `Instance::reopen`.
//!             let mut instance =
//!                 prepare(&setup, &Workload::Tpcc(config), &mut observer).map_err(failed)?;
//!             let length = Duration::from_millis(self.scale.pick(100, 2000, 30_000));
//!             let measure = Length::Time(length);
//!             let spec = RunSpec { warm_up: Length::Operations(100), ..RunSpec::of(measure) };
//!             let outcome = instance.run(&spec, &mut |_| Ok(()), &mut observer).map_err(failed)?;
//!             if outcome.was_stopped {
//!                 return Err(FigureError::Stopped);
//!             }
//!             let row = Row::default().with_outcome(&outcome, instance.info().engine);
//!             all.push(vec![row.with_facts(instance.info()).into_fields()]);
//!         }
//!         Ok(all)
//!     }
//!
//!     fn section(&self, rows: &Table) -> Section {
//!         let grid = Grid::of(rows, &["percent", "policy"], "throughput_per_s");
//!         let mut lines = Vec::new();
//!         for policy in grid.labels(1) {
//!             let mut line = Line { label: policy.to_string(), ..Line::default() };
//!             for percent in grid.labels(0) {
//!                 let Some(value) = grid.interval(&[percent, policy]) else { continue };
//!                 line.points.push((percent.parse().unwrap_or(0.0), value.mean));
//!                 line.band.push((value.low, value.high));
//!             }
//!             lines.push(line);
//!         }
//!         let plot = LinePlot { lines, is_log: true, ..LinePlot::default() };
//!         Section { plots: vec![plot.into()], ..Section::default() }
//!     }
//! }
//! # fn main() {}
//! ```

use crate::experiment::{FigureError, Watch};

use millpond_bench::error::BenchError;
use millpond_bench::run::runner::{Observer, Tick};

/// Observer of one live run that reports to the experiment's watcher.
pub struct Watched<'a>(pub &'a mut dyn Watch);

impl Observer for Watched<'_> {
    fn begin(&mut self, what: &str) {
        self.0.detail(what);
    }

    fn tick(&mut self, tick: &Tick) {
        let rate = tick.transactions as f64 / tick.seconds.max(1e-9);
        let phase = if tick.is_warm_up { " (warm-up)" } else { "" };
        self.0.detail(&format!("{rate:.0} tx/s{phase}"));
    }

    fn stop(&self) -> bool {
        self.0.stop()
    }
}

/// Converts the error of a live run to a figure's error: stopped, or failed.
pub fn failed(error: BenchError) -> FigureError {
    match error {
        BenchError::Stopped => FigureError::Stopped,
        other => FigureError::of(other),
    }
}
