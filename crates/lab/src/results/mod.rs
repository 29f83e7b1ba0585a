//! Result directories: the run, its machine, its build, and its rows.

mod command_line;
mod directory;
mod error;
mod folder;
mod machine;

pub use command_line::shell_line;
pub use directory::{ResultDir, RunInfo};
pub use error::ResultError;
pub use folder::SweepFolder;
pub(crate) use folder::UNIT;
pub use machine::{build_id, machine, memory_available};
