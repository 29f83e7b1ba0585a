//! The experiments there are.

use clap::Subcommand;
use millpond_lab::registry::Registry;

use super::{leanstore_hits, watt};
use crate::error::Failure;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Hit rates of nine policies on the engine's own page references (leanstore VI-B)
    LeanstoreHits(leanstore_hits::Args),
    /// WATT's simulated figures and tables (watt 4), on traces of our own
    Watt(watt::Args),
}

pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    match &args.command {
        Command::LeanstoreHits(args) => leanstore_hits::run(args, registry),
        Command::Watt(args) => watt::run(args),
    }
}
