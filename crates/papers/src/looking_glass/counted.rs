//! A step of a removal that runs alone on the calling thread, for counting instructions in a
//! separate process.
//!
//! The count covers the thread that runs the transactions, including the driver's part, and no
//! other threads: the log's writer, evictors, checkpoints. Threads that would disturb the count at
//! random times do not run. Some per cent of all instructions depend on the leaves merged before an
//! insert splits one, and on the clean pages.

use std::rc::Rc;

use crate::experiment::{FigureError, Scale};
use millpond_workload::tpcc::{self, Mix};
use millpond_workload::ycsb;

pub use super::step_list::StepList;
use super::step_list::TRANSACTIONS;
use millpond_bench::error::BenchError;
use millpond_bench::instance::prepare;
use millpond_bench::instance::setup::Setup;
use millpond_bench::run::client::Workload;
use millpond_bench::run::on_this_thread::{self, Executed};
use millpond_bench::run::runner::Observer;

/// A step, the load that runs after it, and the number of transactions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepRun {
    /// The steps.
    pub list: StepList,
    /// Number of removal steps; 0 for the whole engine.
    pub steps: usize,
    /// Load, one of [`StepList::loads`].
    pub load: &'static str,
    /// Scale of the data.
    pub scale: Scale,
    /// Number of measured transactions after the warm-up: 100 at the quick scale, else 1000.
    pub transactions: u64,
    /// Seed of data and transactions.
    pub seed: u64,
}

/// Counts instructions per transaction.
pub type Counter = Rc<dyn Fn(&StepRun) -> Result<f64, FigureError>>;

impl StepRun {
    /// Returns the run of the figures.
    pub(super) fn of(list: StepList, steps: usize, load: &'static str, scale: Scale) -> StepRun {
        let transactions = scale.pick(100, 2000, 2000);
        StepRun { list, steps, load, scale, transactions, seed: 1 }
    }

    /// Returns the seconds of counting at a scale.
    pub(super) fn seconds(scale: Scale) -> f64 {
        scale.pick(2.0, 8.0, 8.0)
    }

    fn workload(&self) -> Result<Workload, BenchError> {
        let small = tpcc::Scale { warehouses: 1, items: 10_000, customers: 300 };
        let data = self.scale.pick(tpcc::Scale::tiny(1), small, small);
        let tpcc =
            |mix| Ok(Workload::Tpcc(tpcc::Config { mix, ..tpcc::Config::standard(data, 1) }));
        let ycsb = |updates| {
            let rows = self.scale.pick(1000, 20_000, 20_000);
            let config = ycsb::Config::gilbert(rows, updates);
            Ok(Workload::Ycsb(ycsb::Config { threads: 1, ..config }))
        };
        if let Some((_, kind)) = TRANSACTIONS.iter().find(|(name, _)| *name == self.load) {
            return tpcc(Mix::only(*kind));
        }
        match self.load {
            "tpcc" => tpcc(Mix::GILBERT),
            "ycsb-read" => ycsb(0),
            "ycsb-update" => ycsb(100),
            other => {
                let known = StepList::ALL.map(|list| list.loads().join(", ")).join(", ");
                Err(BenchError::Usage(format!("'{other}' is nothing that runs: {known} are")))
            }
        }
    }

    fn setup(&self) -> Result<Setup, BenchError> {
        let Some((_, mut setup)) = self.list.engines().nth(self.steps) else {
            let (steps, max) = (self.steps, self.list.steps().len() - 1);
            let name = self.list.name();
            return Err(BenchError::Usage(format!("{steps} steps: {name} has {max} at most")));
        };
        let lab = &mut setup.options.lab;
        (lab.background_merge, lab.background_writer) = (false, false);
        lab.seed = self.seed;
        Ok(setup)
    }

    /// Loads the data, and runs the transactions on this thread, within the function
    /// [`on_this_thread::FUNCTION`].
    ///
    /// # Errors
    /// An unknown load or step, or an error of the run.
    pub fn run(&self, observer: &mut dyn Observer) -> Result<Executed, BenchError> {
        let (workload, mut setup) = (self.workload()?, self.setup()?);
        let (measure, warm_up) = (self.transactions, self.scale.pick(100, 1000, 1000));
        setup.growth = workload.bytes_added(measure + warm_up) + (16 << 20);
        let mut instance = prepare(&setup, &workload, observer)?;
        let steps = on_this_thread::Steps { warm_up, measure };
        instance.run_on_this_thread(steps, &mut || ())
    }
}
