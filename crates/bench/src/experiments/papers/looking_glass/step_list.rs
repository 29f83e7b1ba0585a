//! What each of Harizopoulos' steps takes away (gilbert fig. 2.1), and from which transactions.

use millpond::internals::store::{LatchingMode, TranslationMode};
use millpond_workload::tpcc::Kind;

use super::course::Step;
use crate::instance::setup::Setup;

/// The engine with everything.
pub(super) const FULL: &str = "everything";
pub(super) const LOG: &str = "− logging";
pub(super) const LOCKS: &str = "− locking, transactions";
pub(super) const LATCHES: &str = "− latching";
pub(super) const POOL: &str = "− pool";
/// Each takes something away from what the one before has left.
pub(super) const STEPS: [Step; 7] = [
    (FULL, |_| {}),
    (LOG, |setup| setup.options.lab.log = false),
    (LOCKS, |setup| setup.options.lab.locks = false),
    (LATCHES, |setup| setup.options.lab.latching = LatchingMode::Optimistic),
    ("pages of 32 KiB", |setup| setup.options.page_size = Some(32 << 10)),
    ("− page table", |setup| setup.options.lab.translation = TranslationMode::Swizzled),
    (POOL, Setup::to_twin),
];
/// The transactions of the figure.
pub(super) const TRANSACTIONS: [(&str, Kind); 2] =
    [("new-order", Kind::NewOrder), ("payment", Kind::Payment)];
