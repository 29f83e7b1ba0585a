//! Set-up of LeanStore's TPC-C and lookups at a scale: data, threads, device, length.

use crate::experiment::{Need, Scale};
use millpond_base::Size;
use millpond_device::SlowProfile;
use millpond_workload::keys::Distribution;
use millpond_workload::{tpcc, ycsb};

use crate::live::{Job, cores, lengths};
use millpond_bench::instance::setup::{DeviceSpec, Setup};
use millpond_bench::run::client::Workload;

/// Lean eviction as the paper configures it.
pub(super) const LEAN: &str = "lean-evict(cooling=10%)";

/// Bytes of a page, as in the paper (leanstore V-A).
pub(super) const PAGE: u32 = 16 << 10;

/// Set-up of runs at a scale.
#[derive(Clone, Copy)]
pub(super) struct Course {
    pub scale: Scale,
}

impl Course {
    /// Returns TPC-C with a number of threads.
    pub fn tpcc(self, threads: u32) -> Workload {
        let miniature = tpcc::Scale { warehouses: threads.max(4), items: 10_000, customers: 300 };
        let few = tpcc::Scale::tiny(threads.max(2));
        let data = self.scale.pick(few, miniature, tpcc::Scale::full(100));
        Workload::Tpcc(tpcc::Config::standard(data, threads))
    }

    /// Returns lookups with a skew.
    pub fn lookups(self, theta: f64, threads: u32) -> Workload {
        let rows = self.scale.pick(4_000, 400_000, 41_000_000);
        let distribution = match theta {
            0.0 => Distribution::Uniform,
            theta => Distribution::Zipf { theta },
        };
        Workload::Ycsb(ycsb::Config { threads, distribution, ..ycsb::Config::leanstore(rows) })
    }

    /// Returns the number of threads of multi-threaded runs.
    pub fn threads(self) -> u32 {
        self.scale.pick(2, cores(), cores())
    }

    /// Returns NVMe flash, as in the paper, or memory at the quick scale.
    pub fn flash(self) -> DeviceSpec {
        let nvme = DeviceSpec::Slow(SlowProfile::NVME);
        self.scale.pick(DeviceSpec::Memory, nvme.clone(), nvme)
    }

    /// Returns the default engine, with the paper's page size.
    pub fn setup(self) -> Setup {
        let setup = Setup::new();
        Setup { options: setup.options.page_size(PAGE), ..setup }
    }

    /// Returns a job of `seconds` seconds after a third of that as warm-up, with lean eviction in
    /// memory.
    pub fn job(self, workload: Workload, pool: Option<Size>, seconds: f64) -> Job {
        let setup = self.setup();
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
