//! Licences, origins and known faults of the project's dependencies.
//!
//! `cargo deny` checks the same, with the newest list of faults and the texts of licences. It needs
//! 280 seconds of processor time to compile, and a clone of the list from GitHub; a machine without
//! them checks nothing. This chore takes a second in every test run, works offline, and covers the
//! lock files of all workspaces. Its result depends only on the commit.

mod advisories;
mod licences;
mod lock;
mod run;
mod update;

pub use run::main;
