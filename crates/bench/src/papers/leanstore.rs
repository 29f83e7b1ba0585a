//! LeanStore's evaluation (ICDE 2018): in memory, over threads, out of memory.
//!
//! The paper has 100 warehouses (10 GB) in memory, 41 M rows (5 GB) with a pool of a fifth of them
//! for lookups, pages of 16 KiB, and 10 or 60 cores. Here data are smaller at the same ratios, and
//! there are as many threads as cores. Out of memory, pages come from memory that is slowed down to
//! the paper's drives.

use std::path::Path;

use millpond::internals::io::SlowProfile;
use millpond_base::Size;
use millpond_lab::experiment::{Experiment, Figure, Need, Scale};
use millpond_workload::keys::Distribution;
use millpond_workload::tpcc;
use millpond_workload::ycsb;

use super::live::{Job, Loaded, cores, lengths};
use super::{leanstore_hits, leanstore_memory, leanstore_outgrow, leanstore_outside};
use crate::client::Workload;
use crate::setup::{DeviceSpec, Setup};

/// Lean eviction as the paper configures it.
pub(super) const LEAN: &str = "lean-evict(cooling=10%)";

/// How runs are done at a scale.
#[derive(Clone, Copy)]
pub(super) struct Course {
    pub scale: Scale,
}

impl Course {
    /// TPC-C with a number of threads.
    pub fn tpcc(self, threads: u32) -> Workload {
        let miniature = tpcc::Scale { warehouses: threads.max(4), items: 10_000, customers: 300 };
        let few = tpcc::Scale::tiny(threads.max(2));
        let data = self.scale.pick(few, miniature, tpcc::Scale::full(100));
        Workload::Tpcc(tpcc::Config::standard(data, threads))
    }

    /// Lookups with a skew.
    pub fn lookups(self, theta: f64, threads: u32) -> Workload {
        let rows = self.scale.pick(4_000, 400_000, 41_000_000);
        let distribution = match theta {
            0.0 => Distribution::Uniform,
            theta => Distribution::Zipf { theta },
        };
        Workload::Ycsb(ycsb::Config { threads, distribution, ..ycsb::Config::leanstore(rows) })
    }

    /// Threads of runs with many.
    pub fn threads(self) -> u32 {
        self.scale.pick(2, cores(), cores())
    }

    /// NVMe flash, as in the paper; memory at the quick scale.
    pub fn flash(self) -> DeviceSpec {
        let nvme = DeviceSpec::Slow(SlowProfile::NVME);
        self.scale.pick(DeviceSpec::Memory, nvme.clone(), nvme)
    }

    /// A run of `seconds` seconds after a third of that to warm up, with lean eviction in memory.
    pub fn job(self, workload: Workload, pool: Option<Size>, seconds: f64) -> Job {
        let setup = Setup::new();
        let growth = self.scale.pick(16 << 20, 128 << 20, 30 << 30);
        let memory: u64 = self.scale.pick(128 << 20, 1 << 30, 90 << 30);
        let (warm_up, measure) = lengths(self.scale, &workload, seconds, 1.0 / 3.0);
        Job {
            axes: Vec::new(),
            setup: Setup { options: setup.options.policy(LEAN), pool, growth, ..setup },
            workload,
            warm_up,
            measure,
            need: Need { seconds: seconds * 1.4 + 0.4, memory, disk: 0 },
        }
    }
}

/// The experiment for one scale; what needs a file makes it in `folder`.
pub fn experiment(scale: Scale, folder: &Path) -> Experiment {
    let (course, loaded) = (Course { scale }, Loaded::default());
    let mut figures: Vec<Box<dyn Figure>> = leanstore_memory::figures(course, &loaded);
    figures.push(Box::new(leanstore_outgrow::Outgrown::new(course, folder)));
    figures.extend(leanstore_outside::figures(course, &loaded));
    figures.push(Box::new(leanstore_hits::Hits::new(scale)));
    Experiment {
        paper: "leanstore",
        title: "LeanStore (Leis et al., ICDE 2018), repeated".to_string(),
        note: format!(
            "TPC-C and lookups on the pool and its trees, without log and locks, as in the paper; \
             runs with many threads have {}. BerkeleyDB and WiredTiger are not run here.",
            course.threads()
        ),
        scale,
        figures,
    }
}
