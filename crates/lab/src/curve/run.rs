//! Curves of several policies over one trace, in one pass.

use millpond_base::SizeError;
use millpond_policies::config::Spec;
use millpond_workload::trace::{Batch, TraceError};
use rayon::prelude::*;

use super::exact::StackDistances;
use super::priority::PriorityStack;
use super::sampled::{SampledCell, frames_at, place, rate_for};
use crate::registry::{PolicyError, Registry};
use crate::sim::{Future, SimOptions, Stalled};
use crate::sweep::{NoRoom, Room};

/// Reason why a curve could not be drawn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CurveError {
    /// The trace could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The policy does not exist, or a parameter is wrong.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The policy found no victim.
    #[error(transparent)]
    Stalled(#[from] Stalled),
    /// The policy has no curve.
    #[error(
        "no curve of '{0}': it needs the future of the whole trace, and only 'opt' has a \
             one-pass curve among those; run it at single sizes"
    )]
    Offline(String),
    /// A cache of that size has no frame.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// There is too little memory for a cache.
    #[error(transparent)]
    Room(#[from] NoRoom),
}

/// Method that produced a point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// By the stack property: all sizes in one pass.
    Stack,
    /// From a sample of the pages.
    Sampled,
    /// By a simulation of exactly this size, because the sample is the whole trace.
    Simulated,
}

impl Method {
    /// Returns the printed name of the method.
    pub fn name(self) -> &'static str {
        match self {
            Method::Stack => "stack",
            Method::Sampled => "sampled",
            Method::Simulated => "simulated",
        }
    }
}

/// One point of a curve.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// Index of the policy among the policies of the curve.
    pub policy: usize,
    /// Number of frames.
    pub size: u64,
    /// Misses divided by references.
    pub miss_ratio: f64,
    /// The method that produced the point.
    pub method: Method,
    /// Share of the pages that were simulated.
    pub rate: f64,
}

enum Kind {
    Lru(StackDistances),
    Opt(PriorityStack),
    Mru(PriorityStack),
    Cells(Vec<SampledCell>),
}

/// The curves of some policies, built while a trace streams through.
pub struct Curve<'a> {
    kinds: Vec<Kind>,
    sizes: Vec<u64>,
    registry: &'a Registry,
    specs: &'a [Spec],
    position: u64,
    places: Vec<u32>,
}

/// Returns about `points` sizes, evenly spaced on a logarithmic scale from 1/1000 of the distinct
/// pages (at least 1) to all of them.
pub fn curve_sizes(pages: u64, points: u32) -> Vec<u64> {
    let (high, steps) = (pages.max(1) as f64, f64::from(points.max(2) - 1));
    let low = (high / 1000.0).max(1.0);
    let mut sizes: Vec<u64> = (0..points.max(2))
        .map(|i| (low * (high / low).powf(f64::from(i) / steps)).round() as u64)
        .collect();
    sizes.dedup();
    sizes
}

impl<'a> Curve<'a> {
    /// Creates the curves of `specs` at `sizes` (ascending) over a trace of `pages` dense pages.
    ///
    /// # Errors
    /// [`CurveError`] if a policy does not exist or has no curve.
    pub fn new(
        registry: &'a Registry,
        specs: &'a [Spec],
        sizes: Vec<u64>,
        pages: u64,
        seed: u64,
    ) -> Result<Curve<'a>, CurveError> {
        let (mut kinds, mut room) = (Vec::new(), Room::now());
        for spec in specs {
            let entry = registry.find(&spec.id)?;
            let info = &entry.info;
            let plain = spec.params.is_empty();
            kinds.push(match spec.id.as_str() {
                "lru" if plain => Kind::Lru(StackDistances::new()),
                "opt" if plain => Kind::Opt(PriorityStack::new()),
                "mru" if plain => Kind::Mru(PriorityStack::new()),
                _ if entry.needs_future => return Err(CurveError::Offline(spec.to_string())),
                _ => {
                    let mut cells = Vec::new();
                    for &size in &sizes {
                        let rate = rate_for(size, pages);
                        room.add_beside(info, frames_at(size, rate))?;
                        cells.push(SampledCell::new(entry, spec, size, rate, pages, seed)?);
                    }
                    Kind::Cells(cells)
                }
            });
        }
        Ok(Curve { kinds, sizes, registry, specs, position: 0, places: Vec::new() })
    }

    /// Returns `true` if any of the policies needs the future.
    pub fn needs_future(&self) -> bool {
        self.kinds.iter().any(|k| matches!(k, Kind::Opt(_)))
    }

    /// Processes the next references of the trace; pages are dense ids.
    ///
    /// # Errors
    /// [`CurveError::Stalled`].
    pub fn run(&mut self, batch: &Batch, future: Option<&Future>) -> Result<(), CurveError> {
        self.places.clear();
        self.places.extend(batch.pages.iter().map(|&p| place(p) as u32));
        let (position, places) = (self.position, &self.places);
        self.kinds.par_iter_mut().try_for_each(|kind| -> Result<(), Stalled> {
            match kind {
                Kind::Lru(stack) => batch.pages.iter().for_each(|&p| stack.reference(p as u32)),
                Kind::Mru(stack) => {
                    for (at, &page) in (position + 1..).zip(&batch.pages) {
                        stack.reference(page as u32, at);
                    }
                }
                Kind::Opt(stack) => {
                    let next = future.map_or(&[][..], |f| &f.next[position as usize..]);
                    for (&page, &next) in batch.pages.iter().zip(next) {
                        stack.reference(page as u32, next);
                    }
                }
                Kind::Cells(cells) => {
                    cells.par_iter_mut().try_for_each(|c| c.run(batch, places))?;
                }
            }
            Ok(())
        })?;
        self.position += batch.len() as u64;
        Ok(())
    }

    /// Returns the points, policy by policy, sizes ascending.
    pub fn points(&self) -> Vec<Point> {
        let references = self.position.max(1) as f64;
        let mut points = Vec::new();
        for (policy, kind) in self.kinds.iter().enumerate() {
            let mut stack = |hits: Vec<u64>| {
                points.extend(self.sizes.iter().zip(hits).map(|(&size, hits)| Point {
                    policy,
                    size,
                    miss_ratio: (references - hits as f64) / references,
                    method: Method::Stack,
                    rate: 1.0,
                }));
            };
            match kind {
                Kind::Lru(distances) => stack(distances.hits(&self.sizes)),
                Kind::Opt(s) | Kind::Mru(s) => stack(s.hits(&self.sizes)),
                Kind::Cells(cells) => points.extend(cells.iter().map(|c| Point {
                    policy,
                    size: c.size(),
                    miss_ratio: c.miss_ratio(),
                    method: if c.rate() == 1.0 { Method::Simulated } else { Method::Sampled },
                    rate: c.rate(),
                })),
            }
        }
        points
    }

    /// Returns the exact miss ratios of the same points, each from a separate simulation over a
    /// trace in memory.
    ///
    /// # Errors
    /// [`CurveError`].
    pub fn exact(
        &self,
        trace: &Batch,
        future: Option<&Future>,
        pages: u64,
        seed: u64,
    ) -> Result<Vec<f64>, CurveError> {
        let (points, mut room) = (self.points(), Room::now());
        for point in &points {
            room.add(&self.registry.find(&self.specs[point.policy].id)?.info, point.size)?;
        }
        let exact = |point: &Point| -> Result<f64, CurveError> {
            let spec = &self.specs[point.policy];
            let frames = u32::try_from(point.size).unwrap_or(u32::MAX / 2);
            let mut options = SimOptions::new(frames, Some(pages));
            options.seed = seed;
            let mut simulation = self.registry.find(&spec.id)?.simulation(spec, &options)?;
            simulation.run(trace, future)?;
            Ok(1.0 - simulation.counts().hit_ratio())
        };
        let mut ratios = Vec::new();
        for some in points.chunks(room.at_once(points.len())) {
            let some: Result<Vec<f64>, CurveError> = some.par_iter().map(exact).collect();
            ratios.extend(some?);
        }
        Ok(ratios)
    }
}
