//! Everything that a change must pass: `cargo xtask test`.

mod process;
mod run;
mod steps;
mod tally;

pub use process::Line;
pub use run::main;
