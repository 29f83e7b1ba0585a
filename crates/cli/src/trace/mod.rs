//! `millpond trace`: look at traces, convert them, make them.

mod bars;
mod command;
mod generate;
mod stat;

pub(crate) use command::{Args, run};
