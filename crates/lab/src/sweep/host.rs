//! The host of one cell: a buffer pool, or a second-tier cache.

use millpond_policies::config::Spec;
use millpond_workload::trace::Batch;

use super::plan::Model;
use crate::registry::{Entry, PolicyError};
use crate::sim::{Counts, Future, SimOptions, Simulation, Stalled};
use crate::table::Value;
use crate::tier2::{self, Tier2Counts, Tier2Future, Tier2Options, Tier2Simulation};

/// The future of a whole trace, for either host.
pub(super) enum Outlook {
    Pool(Future),
    Tier2(Tier2Future),
}

impl Outlook {
    pub fn of(model: Model, trace: &Batch, pages: u64) -> Outlook {
        match model {
            Model::Pool => Outlook::Pool(Future::of(trace, pages)),
            Model::Read | Model::Rw => Outlook::Tier2(Tier2Future::of(trace, pages)),
        }
    }
}

/// A first-tier or second-tier simulation.
pub(super) enum Host {
    Pool(Box<dyn Simulation>),
    Tier2(Box<dyn Tier2Simulation>, Model),
}

/// Counts of a cell, in the columns of a sweep.
pub(super) struct Measured {
    pub counts: Counts,
    pub misses: u64,
    pub writes: u64,
    pub extra: Vec<(&'static str, Value)>,
}

impl Host {
    pub fn new(
        entry: &Entry,
        spec: &Spec,
        options: &SimOptions,
        model: Model,
    ) -> Result<Host, PolicyError> {
        let tier2 = match model {
            Model::Pool => return Ok(Host::Pool(entry.simulation(spec, options)?)),
            Model::Read => tier2::Model::Read,
            Model::Rw => tier2::Model::Rw,
        };
        let options = Tier2Options {
            frames: options.frames,
            pages_dense: options.pages_dense,
            seed: options.seed,
            model: tier2,
        };
        Ok(Host::Tier2(entry.tier2(spec, &options)?, model))
    }

    pub fn run(&mut self, batch: &Batch, outlook: Option<&Outlook>) -> Result<(), Stalled> {
        match self {
            Host::Pool(simulation) => {
                let future = outlook.and_then(|o| match o {
                    Outlook::Pool(future) => Some(future),
                    Outlook::Tier2(_) => None,
                });
                simulation.run(batch, future)
            }
            Host::Tier2(simulation, _) => {
                let future = outlook.and_then(|o| match o {
                    Outlook::Tier2(future) => Some(future),
                    Outlook::Pool(_) => None,
                });
                simulation.run(batch, future)
            }
        }
    }

    pub fn measured(&self) -> Measured {
        match self {
            Host::Pool(simulation) => {
                let counts = simulation.counts();
                let (misses, writes) = (counts.misses(), counts.writes());
                Measured { counts, misses, writes, extra: Vec::new() }
            }
            Host::Tier2(simulation, Model::Rw) => rw(&simulation.counts()),
            Host::Tier2(simulation, _) => read(&simulation.counts()),
        }
    }
}

fn common(c: &Tier2Counts) -> Counts {
    Counts {
        evictions: c.evictions,
        offers: c.offers,
        bypasses: c.bypasses,
        policy_bytes: c.policy_bytes,
        ..Counts::default()
    }
}

/// Returns the counters of li chapter 3: reads since the cache was first full.
fn read(c: &Tier2Counts) -> Measured {
    let counts = Counts { references: c.reads, hits: c.read_hits, ..common(c) };
    let extra = vec![
        ("requests", c.references.into()),
        ("reads_cold", c.reads_cold.into()),
        ("read_hits_cold", c.read_hits_cold.into()),
        ("full_at", c.full_at.into()),
        ("dsyncs_skipped", c.dsyncs.into()),
    ];
    Measured { misses: counts.misses(), writes: 0, counts, extra }
}

/// Returns the counters of li chapter 5: every request is placed, and reads and writes of storage
/// count.
fn rw(c: &Tier2Counts) -> Measured {
    let counts = Counts {
        references: c.references,
        hits: c.hits,
        dirty_evictions: c.evict_writes,
        dirty_at_end: c.dirty_at_end,
        ..common(c)
    };
    let extra = vec![
        ("total_io", c.total().into()),
        ("unavoidable_io", c.unavoidable().into()),
        ("avoidable_io", c.avoidable().into()),
        ("replacement_cost", c.replacement_cost.into()),
        ("dsyncs", c.dsyncs.into()),
        ("dsync_writes", c.dsync_writes.into()),
        ("preclean_writes", c.preclean_writes.into()),
    ];
    Measured { counts, misses: c.storage_reads, writes: c.storage_writes(), extra }
}
