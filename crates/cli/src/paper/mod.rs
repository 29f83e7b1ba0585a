//! `millpond paper`: experiments of the papers, each beside what the paper prints.

mod command;
mod leanstore_hits;

pub(crate) use command::{Args, run};
