//! `millpond bench`: live runs of the engine.

pub(crate) mod breakdown;
mod breakdown_compare;
mod command;
mod commits;
mod contest;
mod engine;
mod evictors;
mod many;
mod opening;
mod outgrow;
mod overheads;
mod pace;
mod phases;
mod progress_line;
mod ramp_up;
mod results;
mod scan;
mod two_worlds;
mod workload;

pub(crate) use command::{Args, run};
pub(crate) use engine::cores;
pub use progress_line::ProgressLine;
pub use results::ResultArgs;
