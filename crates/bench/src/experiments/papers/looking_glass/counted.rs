//! A step of fig. 2.1 that runs alone on the thread that asks for it: what instructions are counted
//! of, in a process of its own.
//!
//! What is counted is what the thread executes that runs the transactions, the driver's part
//! included. Other threads are not: a log's writer, evictors, checkpoints. Those that would change
//! what it finds, at times that no two runs share, do not run: which leaves have been merged when
//! an insert splits one, and which pages are clean, decides some per cent of all instructions.

use millpond_lab::experiment::{FigureError, Scale};
use millpond_workload::tpcc::{self, Kind, Mix};

use super::course::{CONVENTIONAL, engine};
use super::step_list::{STEPS, TRANSACTIONS};
use crate::error::BenchError;
use crate::instance::prepare;
use crate::instance::setup::Setup;
use crate::run::client::Workload;
use crate::run::on_this_thread::{self, Executed};
use crate::run::runner::Observer;

/// A step, one of its transactions, and how often that runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepRun {
    /// The transaction: `new-order` or `payment`.
    pub transaction: &'static str,
    /// Steps that are taken: 0 for the whole engine.
    pub steps: usize,
    /// How much is loaded.
    pub scale: Scale,
    /// Transactions that are measured, after those that warm up: 100 at the quick scale, else 1000.
    pub transactions: u64,
    /// Seed of data and transactions.
    pub seed: u64,
}

/// Counts instructions per transaction.
pub type Counter = Box<dyn FnMut(&StepRun) -> Result<f64, FigureError>>;

impl StepRun {
    /// The names of the transactions.
    pub const TRANSACTIONS: [&str; 2] = [TRANSACTIONS[0].0, TRANSACTIONS[1].0];
    /// The most steps that can be taken.
    pub const STEPS_MAX: usize = STEPS.len() - 1;

    /// A run as the figure has it.
    pub(super) fn of(transaction: &'static str, steps: usize, scale: Scale) -> StepRun {
        StepRun { transaction, steps, scale, transactions: scale.pick(100, 2000, 2000), seed: 1 }
    }

    /// What counting at a scale takes, in seconds.
    pub(super) fn seconds(scale: Scale) -> f64 {
        scale.pick(2.0, 15.0, 15.0)
    }

    fn kind(&self) -> Result<Kind, BenchError> {
        let kind = TRANSACTIONS.iter().find(|(name, _)| *name == self.transaction);
        let unknown = || {
            let known = StepRun::TRANSACTIONS.join(" and ");
            BenchError::Usage(format!("'{}' is no transaction: {known} are", self.transaction))
        };
        kind.map(|(_, kind)| *kind).ok_or_else(unknown)
    }

    fn setup(&self) -> Result<Setup, BenchError> {
        if self.steps > StepRun::STEPS_MAX {
            let (steps, max) = (self.steps, StepRun::STEPS_MAX);
            return Err(BenchError::Usage(format!("{steps} steps: there are {max} at most")));
        }
        let mut setup = engine(CONVENTIONAL);
        STEPS[..=self.steps].iter().for_each(|(_, take)| take(&mut setup));
        let lab = &mut setup.options.lab;
        (lab.background_merge, lab.background_writer) = (false, false);
        lab.seed = self.seed;
        Ok(setup)
    }

    /// Loads the data, and runs the transactions on this thread, within the function
    /// [`on_this_thread::FUNCTION`].
    ///
    /// # Errors
    /// A transaction or a step that there is not, or what the run reports.
    pub fn run(&self, observer: &mut dyn Observer) -> Result<Executed, BenchError> {
        let small = tpcc::Scale { warehouses: 1, items: 10_000, customers: 300 };
        let data = self.scale.pick(tpcc::Scale::tiny(1), small, small);
        let mix = Mix::only(self.kind()?);
        let workload = Workload::Tpcc(tpcc::Config { mix, ..tpcc::Config::standard(data, 1) });
        let (measure, warm_up) = (self.transactions, self.scale.pick(100, 1000, 1000));
        let growth = workload.bytes_added(measure + warm_up) + (16 << 20);
        let mut setup = self.setup()?;
        setup.growth = growth;
        let mut instance = prepare(&setup, &workload, observer)?;
        let steps = on_this_thread::Steps { warm_up, measure };
        instance.run_on_this_thread(steps, &mut || ())
    }
}
