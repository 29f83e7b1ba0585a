//! Result directories: what ran, where, with which build, and the rows it gave.

mod directory;
mod error;
mod folder;
mod machine;

pub use directory::{ResultDir, RunInfo};
pub use error::ResultError;
pub use folder::SweepFolder;
pub use machine::{build_id, machine, memory_available};
