//! `millpond paper`: experiments of the papers, each beside what the paper prints, and ours on the
//! default policy.

mod command;
mod count_steps;
mod count_worker;
mod default;
mod frame;
mod gilbert;
mod leanstore;
mod leanstore_hits;
mod li;
mod luan;
mod watt;

pub(crate) use command::{Args, run};
