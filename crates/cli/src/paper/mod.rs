//! `millpond paper`: experiments of the papers, each beside what the paper prints.

mod command;
mod count_steps;
mod count_worker;
mod frame;
mod gilbert;
mod leanstore;
mod leanstore_hits;
mod luan;
mod watt;

pub(crate) use command::{Args, run};
