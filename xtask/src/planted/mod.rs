//! Planted bugs: patches that each break one rule of the engine, and the campaigns that must catch
//! them.
//!
//! A campaign that finds nothing is worth as much as the bugs that it would have found. So each
//! rule of recovery, and each check of a read, has a patch in `tests/planted` that breaks it.
//! `cargo xtask crash --planted` copies the tree to `target/planted`, applies one patch at a time,
//! builds, and runs the campaign that the patch names until it fails. `cargo xtask tidy` reports a
//! patch that no longer applies.

mod copy;
mod hunt;
mod patch;
mod run;

pub use patch::{Fault, faults};
pub use run::main;
