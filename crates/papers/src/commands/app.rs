//! Commands of the experiments.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use millpond_base::Face;
use millpond_cli::program::{Failure, completions, conclude, listen, man};

use super::policies::Policies;
use super::{
    count_instructions, count_steps, count_worker, default, factors, gilbert, leanstore,
    leanstore_hits, li, luan, watt,
};
use crate::cost::Meters;

const ABOUT: &str = "Experiments of the papers, beside what they print";

const COMPLETIONS: &str = "Example, once for a user:
  millpond-papers completions bash > \\
      ~/.local/share/bash-completion/completions/millpond-papers";

const MAN: &str = "Example:
  millpond-papers man ~/.local/share/man/man1";

#[derive(Parser, Debug)]
#[command(name = "millpond-papers", version, about = ABOUT, max_term_width = 100)]
struct App {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// The choice of a default policy: live, by regret; a question of ours, not of a paper
    Default(default::Args),
    /// Cost of policies' hits, victims and bytes beside their hit rates (gilbert 1.3, 1.4)
    Factors(Box<factors::Args>),
    /// The work that `factors --instructions` counts
    #[command(hide = true)]
    FactorsProbe(count_instructions::Args),
    /// Every live policy over pool sizes with TPC-C, and variants of some (gilbert 1.2, 1.3, 2.4)
    Gilbert(gilbert::Args),
    /// The work that `gilbert --chapter 2 --instructions` counts
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
    /// The work that `watt --instructions` counts
    #[command(hide = true)]
    WattWorker(count_worker::Args),
    /// Print the script with which a shell completes commands and options
    #[command(after_help = COMPLETIONS)]
    Completions(completions::Args),
    /// Write manual pages, one for each command
    #[command(after_help = MAN)]
    Man(man::Args),
}

/// Returns the command line: all experiments and their options, with their help.
pub fn command() -> clap::Command {
    App::command()
}

/// Runs the command line with these policies.
pub fn main_with(policies: Policies) -> ExitCode {
    Face::CommandLine.show();
    let app = App::parse();
    policies.live.offer();
    listen();
    conclude("millpond-papers", run(&app.command, &policies.meters))
}

fn run(chosen: &Command, meters: &Meters) -> Result<(), Failure> {
    match chosen {
        Command::Default(args) => default::run(args),
        Command::Factors(args) => factors::run(args, meters),
        Command::FactorsProbe(args) => count_instructions::run(args, meters),
        Command::Gilbert(args) => gilbert::run(args),
        Command::GilbertStep(args) => count_steps::run(args),
        Command::Leanstore(args) => leanstore::run(args),
        Command::LeanstoreHits(args) => leanstore_hits::run(args, meters.registry()),
        Command::Li(args) => li::run(args),
        Command::Luan(args) => luan::run(args),
        Command::Watt(args) => watt::run(args),
        Command::WattWorker(args) => count_worker::run(args),
        Command::Completions(args) => completions::run(args, command()),
        Command::Man(args) => man::run(args, command()),
    }
}
