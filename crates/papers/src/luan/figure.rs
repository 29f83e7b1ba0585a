//! A figure of access patterns: each cell makes its own trace.

use rayon::prelude::*;

use super::policies::Named;
use super::work::parsed;
use crate::experiment::{About, Cell, Fields, Figure, FigureError, Need, Scale, Watch};
use millpond_lab::registry::{PolicyError, Registry};
use millpond_lab::report::Section;
use millpond_lab::table::{Table, Value};

/// Axes of one cell.
pub(super) type Axes = Vec<(&'static str, Value)>;

/// Simulates one cell.
pub(super) type Simulate = fn(&Registry, &Cell, Scale) -> Result<Vec<Fields>, FigureError>;

/// A figure of access patterns.
pub(super) struct Patterns {
    about: About,
    scale: Scale,
    cells: Vec<Axes>,
    /// Approximate references of a cell.
    references: u64,
    simulate: Simulate,
    draw: fn(&Table) -> Section,
    registry: Registry,
    cores: usize,
}

/// Returns a policy's axes: its name in the paper, and the policy that runs.
pub(super) fn axes(policy: &Named) -> Axes {
    vec![("policy", policy.name.into()), ("by", policy.by.as_str().into())]
}

/// Returns a number of frames, pages or references, reduced to a twentieth for smoke
/// tests.
pub(super) fn shrunk(n: u32, scale: Scale) -> u32 {
    scale.pick((n / 20).max(1), n, n)
}

impl Patterns {
    /// Creates a figure with these cells.
    ///
    /// # Errors
    /// A policy cannot be built.
    pub fn new(
        about: About,
        scale: Scale,
        cells: Vec<Axes>,
        references: u64,
        simulate: Simulate,
        draw: fn(&Table) -> Section,
    ) -> Result<Patterns, PolicyError> {
        let registry = Registry::builtin();
        for (_, by) in cells.iter().flatten().filter(|(axis, _)| *axis == "by") {
            let spec = parsed(&by.to_string())?;
            registry.find(&spec.id)?.values(&spec)?;
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Patterns { about, scale, cells, references, simulate, draw, registry, cores })
    }
}

impl Figure for Patterns {
    fn about(&self) -> About {
        self.about
    }

    fn cells(&self, repetition: u32) -> Vec<Cell> {
        let references = self.references as f64 * f64::from(shrunk(1000, self.scale)) / 1000.0;
        // A watched reference takes about 150 ns, and generating it takes some more.
        let seconds = references * 200e-9 / self.cores as f64;
        let need = Need { seconds: seconds + 1e-3, memory: 64 << 20, disk: 1 << 20 };
        let cell = |axes: &Axes| {
            let cell = Cell::new(self.about.id, repetition, need);
            axes.iter().fold(cell, |cell, (axis, value)| cell.with(axis, value.clone()))
        };
        self.cells.iter().map(cell).collect()
    }

    fn batch(&self) -> usize {
        self.cores * 4
    }

    fn run(&mut self, cells: &[&Cell], _: &mut dyn Watch) -> Result<Vec<Vec<Fields>>, FigureError> {
        let one = |cell: &&Cell| (self.simulate)(&self.registry, cell, self.scale);
        cells.par_iter().with_max_len(1).map(one).collect()
    }

    fn section(&self, rows: &Table) -> Section {
        (self.draw)(rows)
    }
}
