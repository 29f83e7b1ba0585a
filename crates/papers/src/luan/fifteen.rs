//! Figure 15 with tables 1, 3, 4 and 5: hit ratios of TPC-C, and rankings by them (luan 5.7).

use std::cell::RefCell;
use std::rc::Rc;

use rayon::prelude::*;

use super::fifteen_claims::{draw, draw_causes};
use super::policies::{LAMBDA, Named, thirteen};
use super::tpcc::{CHANGES, Change, Changed, Traces, references};
use super::work::parsed;
use crate::experiment::{About, Cell, Fields, Figure, FigureError, Need, Scale, Watch};
use millpond_lab::registry::{PolicyError, Registry};
use millpond_lab::report::Section;
use millpond_lab::sim::SimOptions;
use millpond_lab::table::Table;

const ABOUT: About = About {
    id: "15",
    title: "TPC-C hit ratios (figure 15, tables 1, 3, 4 and 5)",
    asks: "How do the policies rank by hit ratio over pools of 2.2 to 23.3 % of the data, by the \
           joint method?",
    says: "FBR is the best, then LRU and GCLOCK; LIRS is by far the worst, CLOCK-Pro next.",
};

const CAUSES: About = About {
    id: "causes",
    title: "TPC-C changed in one respect at a time",
    asks: "Does the ranking come closer to his if the trace is short or warm, has more clients, \
           fewer or more repeats, scans, loops, or no inner pages?",
    says: "Nothing: the experiments are ours.",
};

/// Pages of his data: 900 MB in pages of 8 KiB.
pub(super) const HIS_PAGES: f64 = 115_200.0;
/// His sizes: from 2,560 pages to 26,880 in steps of 1,280.
const SIZES: [u32; 20] = {
    let mut sizes = [0; 20];
    let mut at = 0;
    while at < 20 {
        sizes[at] = 2560 + at as u32 * 1280;
        at += 1;
    }
    sizes
};

/// Returns the sizes of a figure: all of his, every second one as in his tables, or two in
/// smoke tests.
fn sizes(scale: Scale, every: usize) -> Vec<u32> {
    match scale {
        Scale::Quick => vec![SIZES[0], SIZES[10], SIZES[18]],
        _ => SIZES.iter().step_by(every).copied().collect(),
    }
}

/// A figure over TPC-C.
pub(super) struct OverTpcc {
    about: About,
    scale: Scale,
    /// Changes of the trace, by name.
    changes: Vec<(&'static str, Change)>,
    sizes: Vec<u32>,
    policies: Vec<Named>,
    traces: Rc<RefCell<Traces>>,
    registry: Registry,
    draw: fn(&Table) -> Section,
    cores: usize,
}

/// Returns figure 15.
pub(super) fn figure(scale: Scale, traces: &Rc<RefCell<Traces>>) -> Result<OverTpcc, PolicyError> {
    made(ABOUT, scale, CHANGES[..1].to_vec(), sizes(scale, 1), traces, draw)
}

/// Returns the experiments on its cause.
pub(super) fn causes(scale: Scale, traces: &Rc<RefCell<Traces>>) -> Result<OverTpcc, PolicyError> {
    made(CAUSES, scale, CHANGES.to_vec(), sizes(scale, 2), traces, draw_causes)
}

fn made(
    about: About,
    scale: Scale,
    changes: Vec<(&'static str, Change)>,
    sizes: Vec<u32>,
    traces: &Rc<RefCell<Traces>>,
    draw: fn(&Table) -> Section,
) -> Result<OverTpcc, PolicyError> {
    let registry = Registry::builtin();
    let policies = thirteen(LAMBDA);
    for policy in &policies {
        let spec = parsed(&policy.by)?;
        registry.find(&spec.id)?.values(&spec)?;
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let traces = traces.clone();
    Ok(OverTpcc { about, scale, changes, sizes, policies, traces, registry, draw, cores })
}

/// Returns his size as the same share of our data, in frames.
fn frames(size: f64, data_pages: u64) -> u32 {
    (size / HIS_PAGES * data_pages as f64).ceil().clamp(2.0, f64::from(u32::MAX)) as u32
}

fn simulated(registry: &Registry, cell: &Cell, trace: &Changed) -> Result<Fields, FigureError> {
    let spec = parsed(&cell.text("by")).map_err(FigureError::of)?;
    let entry = registry.find(&spec.id).map_err(FigureError::of)?;
    let frames = frames(cell.number("size").unwrap_or(2560.0), trace.data_pages);
    let options = SimOptions {
        seed: u64::from(cell.repetition),
        warmup: trace.warmup,
        ..SimOptions::new(frames, Some(trace.distinct))
    };
    let mut simulation = entry.simulation(&spec, &options).map_err(FigureError::of)?;
    simulation.run(&trace.batch, None).map_err(FigureError::of)?;
    let counts = simulation.counts();
    let fields = [
        ("frames", frames.into()),
        ("data_pages", trace.data_pages.into()),
        ("pages", trace.distinct.into()),
        ("references", counts.references.into()),
        ("hits", counts.hits.into()),
        ("misses", counts.misses().into()),
        ("hit_ratio", (counts.hit_ratio() * 100.0).into()),
    ];
    Ok(fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
}

impl Figure for OverTpcc {
    fn about(&self) -> About {
        self.about
    }

    fn cells(&self, repetition: u32) -> Vec<Cell> {
        let references = references(self.scale) as f64;
        let need = Need {
            seconds: references * 70e-9 / self.cores as f64,
            memory: (512 << 20) + references as u64 * 40,
            disk: 1 << 20,
        };
        let mut cells = Vec::new();
        for (change, _) in &self.changes {
            for size in &self.sizes {
                for policy in &self.policies {
                    let cell = Cell::new(self.about.id, repetition, need)
                        .with("trace", *change)
                        .with("size", *size)
                        .with("policy", policy.name)
                        .with("by", policy.by.as_str());
                    cells.push(cell);
                }
            }
        }
        cells
    }

    fn batch(&self) -> usize {
        self.cores * 8
    }

    fn run(
        &mut self,
        cells: &[&Cell],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Vec<Fields>>, FigureError> {
        let mut traces = Vec::new();
        for cell in cells {
            let name = cell.text("trace");
            let change = CHANGES.iter().find(|(known, _)| *known == name);
            let change = change.map_or(Change::None, |(_, change)| *change);
            traces.push(self.traces.borrow_mut().get(change, cell.repetition, watch)?);
            if watch.stop() {
                return Err(FigureError::Stopped);
            }
        }
        let registry = &self.registry;
        let pairs: Vec<_> = cells.iter().zip(&traces).collect();
        let one = |(cell, trace): (&&Cell, &std::sync::Arc<Changed>)| {
            Ok(vec![simulated(registry, cell, trace)?])
        };
        pairs.into_par_iter().with_max_len(1).map(one).collect()
    }

    fn section(&self, rows: &Table) -> Section {
        (self.draw)(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_his_as_shares_of_the_data() {
        assert_eq!((SIZES[0], SIZES[1], SIZES[19]), (2560, 3840, 26_880));
        assert_eq!(sizes(Scale::Standard, 2)[9], 25_600, "his table 1 ends there");
        assert_eq!(frames(2560.0, 115_200), 2560);
        assert_eq!(frames(26_880.0, 11_520), 2688);
        assert_eq!(frames(2560.0, 1), 2, "never none");
    }
}
