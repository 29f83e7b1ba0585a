//! Steps that take the conventional engine apart, by Harizopoulos (gilbert fig. 2.1) and in two
//! orders of our own (2.1.4), and the loads that run after each step.

use millpond::internals::store::{LatchingMode, TranslationMode};
use millpond_workload::tpcc::Kind;

use super::course::{CONVENTIONAL, Step, WORKLOADS, engine};
use crate::live::sizes::RANDOM;
use millpond_bench::instance::setup::Setup;

/// The engine with everything.
pub(super) const FULL: &str = "everything";
pub(super) const LOG: &str = "− logging";
pub(super) const LOCKS: &str = "− locking, transactions";
pub(super) const LATCHES: &str = "− latching";
/// Last step of each order, after which only the tree remains.
pub(super) const POOL: &str = "− pool";

/// A list of steps, each of which removes something from the engine left by the step before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepList {
    /// The order in which Harizopoulos et al. took Shore apart.
    Harizopoulos,
    /// The log first, the pool last.
    LogFirst,
    /// The pool's parts first, then locks and log.
    PoolFirst,
}

/// Transactions that run after each of Harizopoulos' steps.
pub(super) const TRANSACTIONS: [(&str, Kind); 2] =
    [("new-order", Kind::NewOrder), ("payment", Kind::Payment)];

const HARIZOPOULOS: [Step; 7] = [
    (FULL, |_| {}),
    (LOG, |setup| setup.options.lab.log = false),
    (LOCKS, |setup| setup.options.lab.locks = false),
    (LATCHES, |setup| setup.options.lab.latching = LatchingMode::Optimistic),
    ("pages of 32 KiB", |setup| setup.options.page_size = Some(32 << 10)),
    ("− page table", |setup| setup.options.lab.translation = TranslationMode::Swizzled),
    (POOL, Setup::to_twin),
];

const LOG_FIRST: [Step; 7] = [
    (FULL, |_| {}),
    (LOG, |setup| setup.options.lab.log = false),
    (LOCKS, |setup| setup.options.lab.locks = false),
    ("− shared latches", |setup| setup.options.lab.latching = LatchingMode::Optimistic),
    ("− page table", |setup| setup.options.lab.translation = TranslationMode::Swizzled),
    ("− latches", |setup| setup.options.lab.latching = LatchingMode::None),
    (POOL, Setup::to_twin),
];

const POOL_FIRST: [Step; 6] = [
    (FULL, |_| {}),
    ("− page table, shared latches", |setup| {
        setup.options.lab.translation = TranslationMode::Swizzled;
        setup.options.lab.latching = LatchingMode::Optimistic;
    }),
    ("− replacement", |setup| setup.options.policy = RANDOM.to_string()),
    ("− locking", |setup| setup.options.lab.locks = false),
    ("− logging, transactions", |setup| setup.options.lab.log = false),
    (POOL, Setup::to_twin),
];

impl StepList {
    /// All lists of steps.
    pub const ALL: [StepList; 3] =
        [StepList::Harizopoulos, StepList::LogFirst, StepList::PoolFirst];

    /// Returns the name of the order.
    pub fn name(self) -> &'static str {
        match self {
            StepList::Harizopoulos => "harizopoulos",
            StepList::LogFirst => "log first",
            StepList::PoolFirst => "pool first",
        }
    }

    /// Returns the loads that run after each step: single transactions of TPC-C, or workloads.
    pub fn loads(self) -> Vec<&'static str> {
        match self {
            StepList::Harizopoulos => TRANSACTIONS.map(|(name, _)| name).to_vec(),
            StepList::LogFirst | StepList::PoolFirst => WORKLOADS.to_vec(),
        }
    }

    pub(super) fn steps(self) -> &'static [Step] {
        match self {
            StepList::Harizopoulos => &HARIZOPOULOS,
            StepList::LogFirst => &LOG_FIRST,
            StepList::PoolFirst => &POOL_FIRST,
        }
    }

    /// Returns the engine with everything. The policy is WATT until replacement is removed,
    /// since the pool without latches is compiled for WATT only.
    fn whole(self) -> Setup {
        let mut setup = engine(CONVENTIONAL);
        if self != StepList::Harizopoulos {
            setup.options.policy = "watt".to_string();
        }
        setup
    }

    /// Returns each step's name, and the engine that remains after it.
    pub(super) fn engines(self) -> impl Iterator<Item = (&'static str, Setup)> {
        let mut setup = self.whole();
        self.steps().iter().map(move |(name, take)| {
            take(&mut setup);
            (*name, setup.clone())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_bench::instance::setup::Engine;

    #[test]
    fn each_step_takes_something_away_and_all_lists_end_with_the_tree() {
        for list in StepList::ALL {
            let engines: Vec<_> = list.engines().collect();
            assert_eq!(engines[0].1, list.whole(), "{list:?} begins with everything");
            for pair in engines.windows(2) {
                assert!(pair[0].1 != pair[1].1, "{list:?}: {}", pair[1].0);
            }
            let (name, last) = engines.last().unwrap();
            assert!(!last.options.lab.log && !last.options.lab.locks);
            assert_eq!((*name, last.engine), (POOL, Engine::Twin));
        }
    }
}
