//! The commands that work on a store file.

mod backup;
mod check;
mod command;
pub(crate) mod compression;
mod destage;
mod dump;
mod entry;
mod literal;
mod load;
mod log;
mod notation;
mod open;
mod recover;
mod scan;
mod shrink;
mod stat;
mod top;
mod trees;
mod trial;

pub(crate) use check::{Look, look};
pub(crate) use command::{Command, run};
pub(crate) use open::{failed, size_of};
