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
    /// Remove an entry, or all whose keys begin with a prefix, from a store
    Del(entry::DelArgs),
    /// Print entries of a store, those of a tree in the order of their keys
    Scan(scan::Args),
    /// List the trees, hash indexes and heaps of a store
    Trees(trees::Args),
    /// Describe a store: of a running one its statistics, of a closed one its trees
    Stat(stat::Args),
    /// Show what a running store does, each second: rates, waits, log and pool
    Top(top::Args),
    /// Write a store as text, also one that is damaged
    Dump(dump::Args),
    /// Make a store from a dump
    Load(load::Args),
    /// Look for damage in a store, page by page
    Check(check::Args),
    /// Copy a store to a new file
    Backup(backup::Args),
    /// Give the free end of a store's files back
    Shrink(shrink::Args),
    /// Give a store what its second tier has of it
    Destage(destage::Args),
    /// Make a store whole after its process or machine stopped
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
