//! Set-up of chapter 2 at a scale: engines, workloads, threads, length.

use crate::experiment::{Need, Scale};
use millpond::Durability;
use millpond::internals::store::{LatchingMode, TranslationMode};
use millpond_lab::table::Value;
use millpond_workload::tpcc::{self, Mix};
use millpond_workload::ycsb;

use crate::live::sizes::RANDOM;
use crate::live::{Job, cores, lengths};
use millpond_bench::instance::setup::Setup;
use millpond_bench::run::client::Workload;

/// The workloads of the chapter.
pub(super) const WORKLOADS: [&str; 3] = ["ycsb-read", "ycsb-update", "tpcc"];

/// An engine of gilbert's kind: page table, shared latches, RANDOM.
pub(super) const CONVENTIONAL: &str = "conventional";
/// The shipped engine: swips, optimistic latches, WATT.
pub(super) const MODERN: &str = "modern";
/// Both engines.
pub(super) const ARMS: [&str; 2] = [CONVENTIONAL, MODERN];

/// A step of a removal: its name, and its change of the setup.
pub(super) type Step = (&'static str, fn(&mut Setup));

/// Bytes of a page, as in his engine.
pub(super) const PAGE: u32 = 8192;

/// Set-up of runs at a scale.
#[derive(Clone, Copy)]
pub(super) struct Course {
    pub scale: Scale,
}

impl Course {
    /// Returns the threads of multi-threaded runs: one per core. His machine had 12
    /// cores, with two hardware threads each.
    pub fn threads(self) -> u32 {
        self.scale.pick(2, cores(), cores())
    }

    /// Returns one thread, and many.
    pub fn counts(self) -> Vec<u32> {
        let mut counts = vec![1, self.threads()];
        counts.dedup();
        counts
    }

    /// Returns TPC-C with a mix of transactions.
    pub fn tpcc(self, mix: Mix, threads: u32) -> Workload {
        let miniature = tpcc::Scale { warehouses: 4, items: 10_000, customers: 300 };
        let few = tpcc::Scale::tiny(2);
        let data = self.scale.pick(few, miniature, tpcc::Scale::full(100));
        Workload::Tpcc(tpcc::Config { mix, ..tpcc::Config::standard(data, threads) })
    }

    /// Returns one of [`WORKLOADS`].
    pub fn workload(self, name: &str, threads: u32) -> Workload {
        let rows = self.scale.pick(2_000, 200_000, 10_000_000);
        let ycsb = |updates| {
            Workload::Ycsb(ycsb::Config { threads, ..ycsb::Config::gilbert(rows, updates) })
        };
        match name {
            "ycsb-read" => ycsb(0),
            "ycsb-update" => ycsb(100),
            _ => self.tpcc(Mix::GILBERT, threads),
        }
    }

    /// Returns a job of `seconds` seconds after a third of that as warm-up, in memory.
    pub fn job(self, setup: Setup, workload: Workload, seconds: f64) -> Job {
        let (warm_up, measure) = lengths(self.scale, &workload, seconds, 1.0 / 3.0);
        let memory: u64 = self.scale.pick(256 << 20, 3 << 30, 60 << 30);
        let operations = self.scale.pick(1000, (seconds * 200_000.0) as u64, 1 << 32);
        let growth = workload.bytes_added(operations * u64::from(self.threads())) + (64 << 20);
        let load = self.scale.pick(0.3, 3.0, 900.0);
        Job {
            axes: Vec::new(),
            setup: Setup { growth, load_threads: cores(), ..setup },
            workload,
            warm_up,
            measure,
            need: Need { seconds: seconds * 1.4 + load, memory, disk: 0 },
        }
    }

    /// Returns the job of an arm, with log and locks, and with the axes arm, workload and
    /// threads.
    pub fn arm(self, arm: &str, workload: &str, threads: u32, seconds: f64) -> Job {
        let axes: Vec<(&'static str, Value)> =
            vec![("arm", arm.into()), ("workload", workload.into()), ("threads", threads.into())];
        Job { axes, ..self.job(engine(arm), self.workload(workload, threads), seconds) }
    }
}

/// Returns an engine with log and locks and with asynchronous commits, like his.
pub(super) fn engine(arm: &str) -> Setup {
    let setup = Setup::new();
    let options = setup.options.page_size(PAGE).durability(Durability::Async);
    let mut options = options.lab(|lab| (lab.log, lab.locks) = (true, true));
    if arm == CONVENTIONAL {
        options = options.policy(RANDOM);
        options.lab.translation = TranslationMode::Hashed;
        options.lab.latching = LatchingMode::Latched;
    }
    Setup { options, ..setup }
}
