//! The plan of a sweep.

use std::fmt;
use std::str::FromStr;

use millpond_base::{Share, Size};
use millpond_policies::config::Spec;
use millpond_workload::trace::{Source, TraceError};
use xxhash_rust::xxh3::xxh3_64;

use crate::registry::{PolicyError, Registry};

/// Opens a trace from its beginning.
pub type Open = Box<dyn Fn() -> Result<Box<dyn Source>, TraceError> + Send + Sync>;

/// A trace as the input of a sweep.
pub struct TraceInput {
    /// The name in results: the path as the user gave it.
    pub name: String,
    /// Opens the trace.
    pub open: Open,
    /// `true` if the trace can be opened again; standard input cannot.
    pub repeatable: bool,
    /// Distinguishes this content from other contents under the same name.
    pub fingerprint: String,
}

/// References that are simulated but not counted.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Warmup {
    /// A number of frames.
    References(u64),
    /// A share of the trace.
    Share(f64),
}

impl FromStr for Warmup {
    type Err = String;

    fn from_str(text: &str) -> Result<Warmup, String> {
        let wrong = || format!("'{text}' is no warm-up: write references (10000) or a share (20%)");
        match text.strip_suffix('%') {
            Some(percent) => match percent.parse::<f64>() {
                Ok(p) if (0.0..100.0).contains(&p) => Ok(Warmup::Share(p / 100.0)),
                _ => Err(wrong()),
            },
            None => text.parse().map(Warmup::References).map_err(|_| wrong()),
        }
    }
}

/// Representation of page tables and ghosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tables {
    /// Dense. An exception is a single simulation of a source that can be read only once: its
    /// tables are hashed, because a stream has no known end.
    Auto,
    /// Pages are renumbered, and tables are arrays.
    Dense,
    /// Pages keep their ids, and tables are hashed: memory grows with the cache, not with the
    /// trace.
    Hashed,
}

/// The host that runs the policies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Model {
    /// A buffer pool (first tier).
    Pool,
    /// A second-tier cache that counts read hits only and may bypass pages (li 3).
    Read,
    /// A second-tier cache that places every page and counts reads and writes (li 5).
    Rw,
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Model::Pool => "pool",
            Model::Read => "read",
            Model::Rw => "rw",
        })
    }
}

/// One of several equal parts of a plan: part `index` of `count`, from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    /// Number of the part, 1 to `count`.
    pub index: u32,
    /// Number of parts.
    pub count: u32,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parts =
            text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match parts {
            Some((index, count)) if index >= 1 && index <= count => Ok(Shard { index, count }),
            _ => Err(format!("'{text}' is no shard: write i/n with 1 ≤ i ≤ n, for example 3/8")),
        }
    }
}

/// A whole sweep.
pub struct Plan {
    /// The traces.
    pub traces: Vec<TraceInput>,
    /// The policies.
    pub policies: Vec<Spec>,
    /// The cache sizes.
    pub sizes: Vec<Size>,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// Bytes per page, for sizes in bytes.
    pub page_size: u64,
    /// References at the beginning that are not counted.
    pub warmup: Warmup,
    /// Blocks of equal length into which the counted part of a trace is cut, with a row for each
    /// block; 0 for one row of the whole.
    pub blocks: u32,
    /// Frames evicted at a time.
    pub batch: u32,
    /// If `true`, frames that only marked scans have referenced are evicted first: see
    /// [`SimOptions`](crate::sim::SimOptions).
    pub scan_hints: bool,
    /// Representation of page tables and ghosts.
    pub tables: Tables,
    /// The host of the policies.
    pub model: Model,
    /// Bytes charged for each ghost of an out queue; 0 for none.
    pub charge_ghosts: u64,
    /// The part of the cells to run; `None` for all.
    pub shard: Option<Shard>,
    /// Number of threads; 0 for one per core.
    pub threads: usize,
}

/// One cell of a plan before sizes are resolved.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Slot {
    pub policy: usize,
    pub size: usize,
    pub seed: u64,
}

impl Plan {
    /// Returns a plan with one seed, the default page size, no warm-up and no traces yet.
    pub fn new(policies: Vec<Spec>, sizes: Vec<Size>) -> Plan {
        Plan {
            traces: Vec::new(),
            policies,
            sizes,
            seeds: vec![1],
            page_size: 4096,
            warmup: Warmup::References(0),
            blocks: 0,
            batch: 1,
            scan_hints: false,
            tables: Tables::Auto,
            model: Model::Pool,
            charge_ghosts: 0,
            shard: None,
            threads: 0,
        }
    }

    /// Checks that every policy exists and accepts its parameters.
    ///
    /// # Errors
    /// The error of the first policy that fails.
    pub fn check(&self, registry: &Registry) -> Result<(), PolicyError> {
        for spec in &self.policies {
            registry.find(&spec.id)?.values(spec)?;
        }
        Ok(())
    }

    /// Checks that the plan's numbers make sense: pages, caches and batches must not be empty.
    ///
    /// # Errors
    /// A description of the first wrong number.
    pub(crate) fn check_numbers(&self) -> Result<(), String> {
        if self.batch == 0 {
            return Err("a batch of 0 frames evicts nothing: 1 is on demand".to_string());
        }
        Size::check_all(&self.sizes, self.page_size).map_err(|error| error.to_string())
    }

    /// Returns the cells of trace number `trace` that belong to this shard, in the order of the
    /// output. A policy that draws nothing runs with the first seed only.
    pub(super) fn slots(&self, trace: usize, registry: &Registry) -> Vec<Slot> {
        let mut slots = Vec::new();
        for (policy, spec) in self.policies.iter().enumerate() {
            let is_random = registry.find(&spec.id).map_or(true, |entry| entry.is_random);
            let seeds = if is_random { self.seeds.len() } else { self.seeds.len().min(1) };
            for size in 0..self.sizes.len() {
                let seeds = self.seeds[..seeds].iter();
                slots.extend(seeds.map(|&seed| Slot { policy, size, seed }));
            }
        }
        if let Some(shard) = self.shard {
            let before = trace * slots.len();
            let (index, count) = (shard.index as usize - 1, shard.count as usize);
            let mut at = before;
            slots.retain(|_| {
                at += 1;
                (at - 1) % count == index
            });
        }
        slots
    }

    /// Returns the number of cells of all traces.
    pub fn cells(&self, registry: &Registry) -> usize {
        (0..self.traces.len()).map(|t| self.slots(t, registry).len()).sum()
    }

    /// Returns a line with the parameters that rows depend on beside their trace, policy, size and
    /// seed: the model, and every option that is not at its default. Rows with different options
    /// cannot be compared.
    pub fn options(&self) -> String {
        let mut options = self.model.to_string();
        match self.warmup {
            Warmup::References(0) => {}
            Warmup::References(n) => options += &format!(" warmup={n}"),
            Warmup::Share(share) => options += &format!(" warmup={}", Share(share)),
        }
        for (name, value, default) in [
            ("blocks", u64::from(self.blocks), 0),
            ("batch", u64::from(self.batch), 1),
            ("charge-ghosts", self.charge_ghosts, 0),
        ] {
            if value != default {
                options += &format!(" {name}={value}");
            }
        }
        if self.scan_hints {
            options += " scan-hints";
        }
        options
    }

    /// Returns a line with everything that the rows depend on; equal keys mean equal rows.
    pub fn key(&self) -> String {
        let list = |items: Vec<String>| items.join(";");
        format!(
            "traces[{}] policies[{}] sizes[{}] seeds{:?} page_size={} warmup={:?} blocks={} batch={} \
             tables={:?} model={} charge_ghosts={} scan_hints={} shard={:?} build={}",
            list(self.traces.iter().map(|t| format!("{}@{}", t.name, t.fingerprint)).collect()),
            list(self.policies.iter().map(Spec::to_string).collect()),
            list(self.sizes.iter().map(Size::to_string).collect()),
            self.seeds,
            self.page_size,
            self.warmup,
            self.blocks,
            self.batch,
            self.tables,
            self.model,
            self.charge_ghosts,
            self.scan_hints,
            self.shard,
            crate::results::build_id(),
        )
    }

    /// Returns a short name made from the key's hash.
    pub fn hash(&self) -> String {
        format!("{:016x}", xxh3_64(self.key().as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_split_the_cells_without_loss_or_overlap() {
        let registry = Registry::builtin();
        let specs = Spec::parse_list("watt,zclock,random").unwrap();
        let mut plan = Plan::new(specs, vec![Size::Frames(1), Size::Frames(2)]);
        plan.seeds = vec![1, 2, 3];
        for trace in 0..2 {
            let all = plan.slots(trace, &registry);
            assert_eq!(all.len(), 18);
            let mut seen = Vec::new();
            for index in 1..=4 {
                plan.shard = Some(Shard { index, count: 4 });
                seen.extend(plan.slots(trace, &registry));
            }
            plan.shard = None;
            assert_eq!(seen.len(), 18);
            assert!(all.iter().all(|s| seen.contains(s)));
        }
    }

    #[test]
    fn a_policy_that_draws_nothing_runs_once_whatever_the_seeds() {
        let registry = Registry::builtin();
        let specs = Spec::parse_list("lru,watt").unwrap();
        let mut plan = Plan::new(specs, vec![Size::Frames(1), Size::Frames(2)]);
        plan.seeds = vec![4, 5, 6];
        let seeds_of = |policy| {
            let slots = plan.slots(0, &registry).into_iter();
            slots.filter(|s| s.policy == policy && s.size == 1).map(|s| s.seed).collect::<Vec<_>>()
        };
        assert_eq!((seeds_of(0), seeds_of(1)), (vec![4], vec![4, 5, 6]));
    }

    #[test]
    fn shards_and_warmups_are_read_or_explained() {
        assert_eq!("3/8".parse(), Ok(Shard { index: 3, count: 8 }));
        assert!("0/8".parse::<Shard>().is_err());
        assert!("9/8".parse::<Shard>().is_err());
        assert_eq!("20%".parse(), Ok(Warmup::Share(0.2)));
        assert_eq!("500".parse(), Ok(Warmup::References(500)));
        assert!("-1".parse::<Warmup>().is_err());
    }
}
