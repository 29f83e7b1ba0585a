//! Licences, origins and known faults of the project's dependencies.
//!
//! `cargo deny` checks the same, with the newest list of faults and the texts of licences. It needs
//! 280 seconds of processor time to compile, and a clone of the list from GitHub: a machine that
//! has neither checks nothing. This chore takes a second in every test run, offline, for the
//! lock files of all workspaces, and the commit fixes its result.

mod advisories;
mod licences;
mod lock;
mod run;
mod update;

pub use run::main;
