//! `millpond-papers`: experiments of the papers, each beside what the paper prints, and ours on the
//! default policy. Flags and printing only.

mod app;
mod callgrind;
mod count_instructions;
mod count_steps;
mod count_worker;
mod default;
mod factors;
mod failure;
mod frame;
mod gilbert;
mod leanstore;
mod leanstore_hits;
mod li;
mod luan;
mod policies;
mod watt;

pub use app::{command, main_with};
pub use policies::Policies;
