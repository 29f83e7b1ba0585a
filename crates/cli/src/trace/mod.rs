//! `millpond trace`: describes, converts and generates traces.

mod bars;
mod command;
mod generate;
mod stat;
mod write_out;

pub(crate) use command::{Args, run};
