//! Everything that a change must pass: `cargo xtask test`.

mod outcome;
mod process;
mod run;
mod steps;
mod table;
mod tally;

pub use process::Line;
pub use run::main;
