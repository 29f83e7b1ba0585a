//! One store through its life, phase by phase: loaded in one transaction, written in small ones,
//! read, halved, shrunk, opened again. It is the pattern of redb's published benchmark.
//!
//! Everything goes through the public API, [`millpond::Db`], on a file: what is measured is what a
//! program gets. Values follow from their keys ([`inserts`](millpond_workload::inserts)), and each
//! one that is read is checked, as is the number of rows. So a run that ends well has lost and
//! damaged nothing, and its times include the checks.
//!
//! - `plan`: which phases there are, and how much each does.
//! - `error`: what a phase can fail with.
//! - `measure`: what a phase came to.
//! - `store`: the store under test, the rows that it holds, and who watches.
//! - `writes`, `reads`, `upkeep`, `sorted`: the phases.
//! - `run`: all of them, one after the other.

mod error;
mod measure;
mod plan;
mod reads;
mod run;
mod sorted;
mod store;
mod upkeep;
mod writes;

pub use error::PhaseError;
pub use measure::Measured;
pub use plan::{NoPhase, Phase, Plan};
pub use run::phases;
