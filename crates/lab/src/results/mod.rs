//! Result directories: what ran, where, with which build, and the rows it gave.

mod directory;
mod machine;

pub use directory::{ResultDir, ResultError, RunInfo};
pub use machine::{build_id, machine, memory_available};
