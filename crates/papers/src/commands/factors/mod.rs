//! `millpond-papers factors`: Gilbert's three factors of every live policy in one table.

mod command;
mod view;

pub(super) use command::{Args, run};
