//! Ours against libCacheSim, side by side: `cargo xtask peers`.

mod cells;
mod csv;
mod measure;
mod options;
mod report;
mod run;
mod statistics;
mod tools;
mod traces;

pub use run::main;
