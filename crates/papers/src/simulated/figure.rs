//! A simulated figure: settings of policies × traces × sizes.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use millpond_policies::config::Spec;
use rayon::prelude::*;

use super::library::Library;
use crate::experiment::{About, Cell, Fields, Figure, FigureError, Need, Watch};
use millpond_lab::registry::{PolicyError, Registry};
use millpond_lab::report::Section;
use millpond_lab::sim::{Counts, Recorded, SimOptions};
use millpond_lab::table::{Table, Value};

/// A policy with its parameters, and its label on the figure's axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// Policy, such as `watt(sample=16)`.
    pub policy: String,
    /// Place on the figure's own axis, such as `16`; empty if policies are compared.
    pub value: String,
}

impl Setting {
    /// Returns a policy for comparison with others.
    pub fn policy(policy: &str) -> Setting {
        Setting { policy: policy.to_string(), value: String::new() }
    }

    /// Returns a policy at some value of the figure's axis.
    pub fn at(value: impl ToString, policy: String) -> Setting {
        Setting { policy, value: value.to_string() }
    }
}

/// Extent of a figure's simulations: the product of its parts.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SimPlan {
    /// Traces by name, with the approximate number of references.
    pub traces: Vec<(&'static str, u64)>,
    /// Pool sizes, in percent of a trace's pages.
    pub percents: Vec<f64>,
    /// Policies.
    pub settings: Vec<Setting>,
    /// Maximum number of repetitions.
    pub repetitions: u32,
}

/// Makes a figure's section from its rows.
type Draw = Box<dyn Fn(&Table) -> Section>;

/// A simulated figure.
pub struct SimFigure {
    about: About,
    plan: SimPlan,
    registry: Registry,
    library: Rc<RefCell<Library>>,
    draw: Draw,
    cores: usize,
}

impl SimFigure {
    /// Creates a figure from its plan and its drawing function.
    ///
    /// # Errors
    /// A policy cannot be built.
    pub fn new(
        about: About,
        plan: SimPlan,
        library: &Rc<RefCell<Library>>,
        draw: impl Fn(&Table) -> Section + 'static,
    ) -> Result<SimFigure, PolicyError> {
        let registry = Registry::builtin();
        for setting in &plan.settings {
            let spec = parsed(&setting.policy)?;
            registry.find(&spec.id)?.values(&spec)?;
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let library = library.clone();
        Ok(SimFigure { about, plan, registry, library, draw: Box::new(draw), cores })
    }

    /// Estimates the need of a simulation from typical nanoseconds per reference; a sampling
    /// policy reads many cache lines per miss.
    fn estimate(&self, policy: &str, references: u64) -> Need {
        let ns = match policy.split('(').next().unwrap_or_default() {
            "random" | "clock" | "fifo" => 15.0,
            "lean-evict" | "lru" | "lru-wsr" | "cflru" => 30.0,
            "watt" => 120.0,
            _ => 60.0,
        };
        let seconds = references as f64 * ns * 1e-9 / self.cores as f64;
        // Memory of the kept traces, and of a store from which one is recorded.
        let memory = (64 << 20) + references * 400;
        Need { seconds: seconds + 2e-4, memory, disk: 16 << 20 }
    }
}

/// Runs one simulation from a cold start.
fn simulated(
    registry: &Registry,
    cell: &Cell,
    trace: &Recorded,
) -> Result<Vec<Fields>, FigureError> {
    let spec = parsed(&cell.text("policy")).map_err(FigureError::of)?;
    let entry = registry.find(&spec.id).map_err(FigureError::of)?;
    let frames = trace.frames(cell.number("percent").unwrap_or(100.0));
    let seed = u64::from(cell.repetition);
    let options = SimOptions { seed, ..SimOptions::new(frames, Some(trace.distinct)) };
    let mut simulation = entry.simulation(&spec, &options).map_err(FigureError::of)?;
    let future = entry.needs_future.then(|| trace.future());
    simulation.run(&trace.batch, future).map_err(FigureError::of)?;
    Ok(vec![fields(frames, trace.distinct, &simulation.counts())])
}

fn parsed(policy: &str) -> Result<Spec, PolicyError> {
    let id = policy.to_string();
    Spec::parse(policy).map_err(|error| PolicyError::Param { id, error })
}

fn fields(frames: u32, distinct: u64, counts: &Counts) -> Fields {
    let fields: [(&str, Value); 10] = [
        ("size", frames.into()),
        ("pages", distinct.into()),
        ("references", counts.references.into()),
        ("hits", counts.hits.into()),
        ("misses", counts.misses().into()),
        ("writes", counts.writes().into()),
        ("io", (counts.misses() + counts.writes()).into()),
        ("evictions", counts.evictions.into()),
        ("offers_per_eviction", counts.offers_per_eviction().into()),
        ("policy_bytes", counts.policy_bytes.into()),
    ];
    fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

impl Figure for SimFigure {
    fn about(&self) -> About {
        self.about
    }

    fn cells(&self, repetition: u32) -> Vec<Cell> {
        let mut cells = Vec::new();
        if repetition > self.plan.repetitions {
            return cells;
        }
        for (trace, references) in &self.plan.traces {
            for percent in &self.plan.percents {
                for setting in &self.plan.settings {
                    let need = self.estimate(&setting.policy, *references);
                    let mut cell = Cell::new(self.about.id, repetition, need)
                        .with("trace", *trace)
                        .with("percent", *percent)
                        .with("policy", setting.policy.as_str());
                    if !setting.value.is_empty() {
                        cell = cell.with("value", setting.value.as_str());
                    }
                    cells.push(cell);
                }
            }
        }
        cells
    }

    fn batch(&self) -> usize {
        // Enough cells to keep the cores busy, few enough to lose little by stopping.
        self.cores * 8
    }

    fn run(
        &mut self,
        cells: &[&Cell],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Vec<Fields>>, FigureError> {
        let mut traces: Vec<Arc<Recorded>> = Vec::new();
        for cell in cells {
            let name = cell.text("trace");
            traces.push(self.library.borrow_mut().trace(&name, cell.repetition, watch)?);
            if watch.stop() {
                return Err(FigureError::Stopped);
            }
        }
        let registry = &self.registry;
        let pairs: Vec<(&Cell, &Arc<Recorded>)> = cells.iter().copied().zip(&traces).collect();
        let one = |(cell, trace): (&Cell, &Arc<Recorded>)| simulated(registry, cell, trace);
        pairs.into_par_iter().with_max_len(1).map(one).collect()
    }

    fn section(&self, rows: &Table) -> Section {
        (self.draw)(rows)
    }
}
