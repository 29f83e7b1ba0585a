//! One store through its life, phase by phase: loaded in one transaction, written in small ones,
//! read, halved, shrunk, opened again. It is the pattern of redb's published benchmark.
//!
//! Everything goes through the public API, [`millpond::Db`], on a file, so the results are those
//! of a user's program. Values follow from their keys ([`inserts`](millpond_workload::inserts)).
//! Each value that is read is checked, as is the number of rows. So a successful run has lost and
//! damaged nothing, and its times include the checks.
//!
//! - `plan`: the phases, and the amount of work in each.
//! - `error`: errors of a phase.
//! - `measure`: measurements of a phase.
//! - `store`: the store under test, its rows, and the observer.
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
