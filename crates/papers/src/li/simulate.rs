//! A figure whose cells are simulations of a second tier, by trace, size and policy.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use millpond_policies::config::Spec;
use rayon::prelude::*;

use super::first_tier::{PAGE_SIZE, first_tier, thousands};
use super::printed::PRINTED;
use super::traces::{Trace, Traces};
use crate::experiment::{About, Cell, Fields, Figure, FigureError, Need, Scale, Watch};
use millpond_lab::registry::{PolicyError, Registry};
use millpond_lab::report::Section;
use millpond_lab::sweep::charged_frames;
use millpond_lab::table::{Table, Value};
use millpond_lab::tier2::{Model, Tier2Counts, Tier2Options};

/// Bytes of an out queue per page.
const GHOST_BYTES: u64 = 96;

/// Extent of a figure's simulations.
pub(super) struct Plan {
    pub about: About,
    /// Model of chapter 3, with out queues taken from the cache's space (3.4.1), or of
    /// chapter 5.
    pub model: Model,
    /// Traces, each with the sizes of its second tier, in thousands of his pages.
    pub traces: Vec<(&'static str, Vec<f64>)>,
    pub policies: &'static [&'static str],
    pub draw: fn(&Table) -> Section,
}

/// A figure of simulations.
pub(super) struct Simulated {
    plan: Plan,
    scale: Scale,
    traces: Rc<RefCell<Traces>>,
    registry: Registry,
    cores: usize,
}

/// Returns the frames of a second tier of `size` thousand of his pages.
fn frames(trace: &str, size: f64, data_pages: u64) -> u32 {
    let share = first_tier(trace).map_or(0.0, |tier| size / thousands(tier.family));
    (data_pages as f64 * share).ceil().clamp(1.0, f64::from(u32::MAX)) as u32
}

impl Simulated {
    /// Creates a figure of these simulations.
    ///
    /// # Errors
    /// A policy cannot be built.
    pub fn new(
        plan: Plan,
        scale: Scale,
        traces: &Rc<RefCell<Traces>>,
    ) -> Result<Simulated, PolicyError> {
        let registry = Registry::builtin();
        for policy in plan.policies {
            registry.find(policy)?;
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Simulated { plan, scale, traces: traces.clone(), registry, cores })
    }
}

/// Runs one simulation from a cold start.
fn simulated(
    plan: &Plan,
    registry: &Registry,
    cell: &Cell,
    trace: &Trace,
) -> Result<Vec<Fields>, FigureError> {
    let (policy, size) = (cell.text("policy"), cell.number("size").unwrap_or(0.0));
    let entry = registry.find(&policy).map_err(FigureError::of)?;
    let spec = Spec::parse(&policy).map_err(FigureError::of)?;
    let whole = frames(&trace.name, size, trace.data_pages);
    let frames = match plan.model {
        Model::Read => charged_frames(entry, &spec, whole, GHOST_BYTES, PAGE_SIZE.into())
            .map_err(FigureError::of)?,
        Model::Rw => whole,
    };
    let seed = u64::from(cell.repetition);
    let options =
        Tier2Options { seed, ..Tier2Options::new(frames, Some(trace.distinct), plan.model) };
    let mut simulation = entry.tier2(&spec, &options).map_err(FigureError::of)?;
    simulation.run(&trace.batch, Some(trace.future())).map_err(FigureError::of)?;
    let mut fields = vec![
        ("tier_frames".to_string(), whole.into()),
        ("frames".to_string(), frames.into()),
        ("data_pages".to_string(), trace.data_pages.into()),
        ("pages".to_string(), trace.distinct.into()),
    ];
    let all = trace.requests();
    let mix: [(&str, f64); 4] = [
        ("read_share", all.share(all.reads)),
        ("replace_share", all.share(all.replace)),
        ("recov_share", all.share(all.recov)),
        ("dsyncs_per_write", all.dsyncs_per_write()),
    ];
    fields.extend(mix.map(|(name, value)| (name.to_string(), value.into())));
    fields.extend(counted(&simulation.counts(), plan.model));
    Ok(vec![fields])
}

fn counted(counts: &Tier2Counts, model: Model) -> Fields {
    let mut fields: Vec<(&str, Value)> = vec![
        ("requests", counts.references.into()),
        ("dsyncs", counts.dsyncs.into()),
        ("evictions", counts.evictions.into()),
    ];
    match model {
        Model::Read => fields.extend([
            ("reads", Value::from(counts.reads)),
            ("read_hits", counts.read_hits.into()),
            ("read_hit_ratio", counts.read_hit_ratio().into()),
            ("full_at", counts.full_at.into()),
        ]),
        Model::Rw => fields.extend([
            ("total", Value::from(counts.total())),
            ("storage_reads", counts.storage_reads.into()),
            ("storage_writes", counts.storage_writes().into()),
            ("eviction_writes", counts.evict_writes.into()),
            ("unavoidable", counts.unavoidable().into()),
            ("dirty_at_end", counts.dirty_at_end.into()),
        ]),
    }
    fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

impl Figure for Simulated {
    fn about(&self) -> About {
        self.plan.about
    }

    fn cells(&self, repetition: u32) -> Vec<Cell> {
        // A trace has a few million requests.
        let each = self.scale.pick(2e4, 1.5e6, 8e6);
        let seconds = each * 150e-9 / self.cores as f64;
        let need = Need { seconds, memory: (each * 500.0) as u64, disk: 1 << 20 };
        // Traces of the tables are recorded for them.
        let own = |trace: &str| !PRINTED.iter().any(|(name, _)| *name == trace);
        let mut cells = Vec::new();
        for (trace, sizes) in &self.plan.traces {
            let mut recording = match first_tier(trace).filter(|_| own(trace)) {
                Some(first_tier) => first_tier.seconds(self.scale),
                None => 0.0,
            };
            for size in sizes {
                for policy in self.plan.policies {
                    let recording = Need::of_seconds(std::mem::take(&mut recording));
                    let cell = Cell::new(self.plan.about.id, repetition, need.then(recording));
                    let cell = cell.with("trace", *trace).with("size", *size);
                    cells.push(cell.with("policy", *policy));
                }
            }
        }
        cells
    }

    fn batch(&self) -> usize {
        self.cores * 4
    }

    fn run(
        &mut self,
        cells: &[&Cell],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Vec<Fields>>, FigureError> {
        let mut traces: Vec<Arc<Trace>> = Vec::new();
        for cell in cells {
            let name = cell.text("trace");
            traces.push(self.traces.borrow_mut().get(&name, cell.repetition, watch)?);
            if watch.stop() {
                return Err(FigureError::Stopped);
            }
        }
        // A figure cannot be shared between threads, but its parts can.
        let (plan, registry) = (&self.plan, &self.registry);
        let one = |(cell, trace): (&Cell, &Arc<Trace>)| simulated(plan, registry, cell, trace);
        let pairs: Vec<(&Cell, &Arc<Trace>)> = cells.iter().copied().zip(&traces).collect();
        pairs.into_par_iter().with_max_len(1).map(one).collect()
    }

    fn section(&self, rows: &Table) -> Section {
        (self.plan.draw)(rows)
    }
}
