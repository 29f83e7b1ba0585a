//! Commands for stores.

use clap::Subcommand;

use super::{
    backup, check, destage, dump, entry, load, log, recover, scan, shrink, stat, top, trees,
};
use crate::error::Failure;
use crate::interrupt;

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Print the value of a key in a store
    Get(entry::GetArgs),
    /// Write an entry into a store
    Put(entry::PutArgs),
    /// Remove an entry, or all entries with a key prefix, from a store
    Del(entry::DelArgs),
    /// Print entries of a store; those of a tree are in key order
    Scan(scan::Args),
    /// List the trees, hash indexes and heaps of a store
    Trees(trees::Args),
    /// Describe a store: statistics of a running store, trees of a closed one
    Stat(stat::Args),
    /// Show the activity of a running store, each second: rates, waits, log and pool
    Top(top::Args),
    /// Write a store as text, even if it is damaged
    Dump(dump::Args),
    /// Create a store from a dump
    Load(load::Args),
    /// Look for damage in a store, page by page
    Check(check::Args),
    /// Copy a store to a new file
    Backup(backup::Args),
    /// Release the free end of a store's files
    Shrink(shrink::Args),
    /// Write the pages that a second tier still holds into their store
    Destage(destage::Args),
    /// Restore a consistent store after its process or machine stopped
    Recover(recover::Args),
    /// Print the records of a store's log
    Log(log::Args),
}

pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    interrupt::end_long_calls();
    match command {
        Command::Get(args) => entry::get(args),
        Command::Put(args) => entry::put(args),
        Command::Del(args) => entry::del(args),
        Command::Scan(args) => scan::run(args),
        Command::Trees(args) => trees::run(args),
        Command::Stat(args) => stat::run(args),
        Command::Top(args) => top::run(args),
        Command::Dump(args) => dump::run(args),
        Command::Load(args) => load::run(args),
        Command::Check(args) => check::run(args),
        Command::Backup(args) => backup::run(args),
        Command::Shrink(args) => shrink::run(args),
        Command::Destage(args) => destage::run(args),
        Command::Recover(args) => recover::run(args),
        Command::Log(args) => log::run(args),
    }
}
