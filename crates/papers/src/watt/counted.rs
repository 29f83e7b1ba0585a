//! A worker alone on the calling thread, with everything in memory, for counting the instructions
//! and misses of WATT's figure 11 in a separate process.
//!
//! Threads whose work depends on time do not run: merging of leaves, and writing of pages.

use std::rc::Rc;

use crate::experiment::{FigureError, Scale};
use millpond_workload::{tpcc, ycsb};

use super::runs::{MIXED, READ_ONLY, TPCC};
use millpond_bench::error::BenchError;
use millpond_bench::instance::prepare;
use millpond_bench::instance::setup::Setup;
use millpond_bench::run::client::Workload;
use millpond_bench::run::on_this_thread::{Executed, Steps};
use millpond_bench::run::runner::Observer;

/// Run of a worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerRun {
    /// The workload: one of [`WorkerRun::LOADS`].
    pub load: String,
    /// The policy with its parameters.
    pub policy: String,
    /// Scale of the data.
    pub scale: Scale,
    /// Number of measured transactions, after the same number as warm-up.
    pub transactions: u64,
    /// Seed of data, transactions and policy.
    pub seed: u64,
}

/// Work of a worker per transaction; misses are those of simulated caches and branches.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PerTransaction {
    /// Instructions.
    pub instructions: f64,
    /// Data reads and writes that miss the first-level cache.
    pub l1_data_misses: f64,
    /// Instruction fetches that miss the first-level cache.
    pub l1_instruction_misses: f64,
    /// Accesses of both kinds that also miss the last-level cache.
    pub ll_misses: f64,
    /// Mispredicted branches, conditional and indirect.
    pub branch_misses: f64,
    /// Page references.
    pub references: f64,
}

impl PerTransaction {
    /// Returns the cycles by KCachegrind's estimate: one per instruction, 10 per mispredicted
    /// branch or first-level miss, 100 per last-level miss. None of it is measured.
    pub fn estimated_cycles(&self) -> f64 {
        let first_level = self.l1_data_misses + self.l1_instruction_misses;
        let tens = first_level + self.branch_misses;
        self.instructions + 10.0 * tens + 100.0 * self.ll_misses
    }
}

/// Counts the work of a worker.
pub type Counter = Rc<dyn Fn(&WorkerRun) -> Result<PerTransaction, FigureError>>;

impl WorkerRun {
    /// The workloads.
    pub const LOADS: [&str; 3] = [READ_ONLY, MIXED, TPCC];

    /// Returns the figure's run.
    pub(super) fn of(load: &str, policy: &str, scale: Scale, seed: u64) -> WorkerRun {
        let transactions = match load {
            TPCC => scale.pick(100, 2000, 2000),
            _ => scale.pick(500, 20_000, 20_000),
        };
        WorkerRun { load: load.to_string(), policy: policy.to_string(), scale, transactions, seed }
    }

    fn workload(&self) -> Result<Workload, BenchError> {
        let updates = match self.load.as_str() {
            TPCC => {
                let small = tpcc::Scale { warehouses: 2, items: 10_000, customers: 300 };
                let data = self.scale.pick(tpcc::Scale::tiny(1), small, small);
                return Ok(Workload::Tpcc(tpcc::Config::standard(data, 1)));
            }
            MIXED => 10,
            READ_ONLY => 0,
            other => {
                let known = WorkerRun::LOADS.join(", ");
                return Err(BenchError::Usage(format!("no workload '{other}': there are {known}")));
            }
        };
        let rows = self.scale.pick(2000, 100_000, 100_000);
        Ok(Workload::Ycsb(ycsb::Config { threads: 1, ..ycsb::Config::watt(rows, updates) }))
    }

    /// Loads the data, and runs the transactions on this thread, within the function
    /// [`FUNCTION`](millpond_bench::run::on_this_thread::FUNCTION).
    ///
    /// # Errors
    /// An unknown workload or policy, or an error of the run.
    pub fn run(&self, observer: &mut dyn Observer) -> Result<Executed, BenchError> {
        let workload = self.workload()?;
        let setup = Setup::new();
        let options = setup.options.policy(&self.policy).lab(|lab| {
            (lab.background_merge, lab.background_writer) = (false, false);
            lab.seed = self.seed;
        });
        let growth = workload.bytes_added(2 * self.transactions) + (16 << 20);
        let mut instance = prepare(&Setup { options, growth, ..setup }, &workload, observer)?;
        let steps = Steps { warm_up: self.transactions, measure: self.transactions };
        instance.run_on_this_thread(steps, &mut || ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_bench::run::runner::Unwatched;

    #[test]
    fn every_load_runs_on_one_thread_and_counts_its_page_references() {
        for load in WorkerRun::LOADS {
            let run = WorkerRun::of(load, "watt", Scale::Quick, 1);
            let executed = run.run(&mut Unwatched).unwrap();
            assert_eq!(executed.transactions, run.transactions);
            assert!(executed.references.unwrap() >= executed.transactions, "{load}");
        }
        let other = WorkerRun::of("scan", "watt", Scale::Quick, 1).run(&mut Unwatched);
        assert!(other.unwrap_err().to_string().contains("tpcc"));
    }

    #[test]
    fn cycles_are_estimated_from_all_that_is_counted() {
        let counted = PerTransaction {
            instructions: 1000.0,
            l1_data_misses: 7.0,
            l1_instruction_misses: 3.0,
            ll_misses: 2.0,
            branch_misses: 5.0,
            references: 9.0,
        };
        assert_eq!(counted.estimated_cycles(), 1000.0 + 150.0 + 200.0);
    }
}
