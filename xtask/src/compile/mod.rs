//! `cargo xtask compile [tour] [embedder]`: CPU seconds of a build from nothing, by crate.

mod embedder;
mod measure;
mod run;

pub use measure::as_compiler;
pub use run::main;
