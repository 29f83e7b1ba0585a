//! `millpond trace`: look at traces, convert them, make them.

mod bars;
mod command;
mod generate;
mod stat;
mod write_out;

pub(crate) use command::{Args, run};
