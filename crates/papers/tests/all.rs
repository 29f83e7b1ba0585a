//! All tests of the papers, in one program.

mod commands;
mod experiment;
mod faces;
mod factors;
mod reports;
mod stalls;
