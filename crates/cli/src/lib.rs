//! The command line `millpond`: flags and printing; the work is done in the crates below.
//!
//! It is a library, too, so that a user's own program can offer the same commands with a policy
//! of the user's own among the others:
//!
//! ```no_run
//! use millpond_cli::Policies;
//! // let policies = Policies::builtin().with::<MyPolicy>()?;
//! let code = millpond_cli::main_with(Policies::builtin());
//! ```

mod advise;
mod app;
mod bench;
mod compare;
mod curve;
mod describe;
mod error;
mod interrupt;
mod output;
mod own;
mod policies;
pub mod program;
mod progress;
mod reading;
mod regret;
mod report;
mod serve;
mod sim;
mod store;
mod tour;
mod trace;
mod units;

pub use app::{command, main_with};
pub use own::Policies;
