//! The experiments there are.

use clap::Subcommand;
use millpond_lab::registry::Registry;

use super::{
    count_steps, count_worker, default, gilbert, leanstore, leanstore_hits, li, luan, watt,
};
use crate::error::Failure;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Which policy should be the default: live, by regret; a question of ours, not of a paper
    Default(default::Args),
    /// Every live policy over pool sizes with TPC-C, and variants of some (gilbert 1.2, 1.3, 2.4)
    Gilbert(gilbert::Args),
    /// What `gilbert --chapter 2 --instructions` has counted
    #[command(hide = true)]
    GilbertStep(count_steps::Args),
    /// LeanStore's evaluation: in memory, over threads, over skew and pool sizes
    Leanstore(leanstore::Args),
    /// Hit rates of nine policies on the engine's own page references (leanstore VI-B)
    LeanstoreHits(leanstore_hits::Args),
    /// Second-tier caches: write hints and read hits, deferred syncs, write-aware policies (li 3–5)
    Li(li::Args),
    /// Thirteen policies on access patterns and TPC-C: simulated, and TPC-C live (luan 5)
    Luan(luan::Args),
    /// WATT's figures and tables: simulated on traces of our own (watt 4), and live (watt 6)
    Watt(watt::Args),
    /// What `watt --instructions` has counted
    #[command(hide = true)]
    WattWorker(count_worker::Args),
}

pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    match &args.command {
        Command::Default(args) => default::run(args),
        Command::Gilbert(args) => gilbert::run(args),
        Command::GilbertStep(args) => count_steps::run(args),
        Command::Leanstore(args) => leanstore::run(args),
        Command::LeanstoreHits(args) => leanstore_hits::run(args, registry),
        Command::Li(args) => li::run(args),
        Command::Luan(args) => luan::run(args),
        Command::Watt(args) => watt::run(args),
        Command::WattWorker(args) => count_worker::run(args),
    }
}
