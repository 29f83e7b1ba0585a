//! Definitions of the commands, and their dispatch.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use millpond_base::Face;

use crate::error::Failure;
use crate::own::Policies;
use crate::{
    advise, bench, compare, describe, interrupt, output, policies as list, regret, report, serve,
    sim, store, tour, trace,
};

const ABOUT: &str = "A storage engine at memory speed, and the laboratory of page replacement";
const ELSEWHERE: &str = "The papers' experiments are a program of their own: millpond-papers";

#[derive(Parser, Debug)]
#[command(name = "millpond", version, about = ABOUT, after_help = ELSEWHERE, max_term_width = 100)]
struct App {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show Millpond at work: the engine, policies on real traces, and a report
    Tour(tour::Args),
    /// List the replacement policies, their parameters and defaults
    Policies(list::Args),
    /// Simulate policies on traces
    Sim(Box<sim::Args>),
    /// Advise a policy for a trace, and state how certain the advice is
    Advise(Box<advise::Args>),
    /// Measure how far policies are from the best one of each trace and size
    Regret(Box<regret::Args>),
    /// Inspect, convert and generate traces
    Trace(trace::Args),
    /// Compare policies or two builds: name the better one, and how certain that is
    Compare(Box<compare::Args>),
    /// Turn result directories into one page
    Report(Box<report::Args>),
    /// Measure the engine live: key-value, TPC-C, scans, ramp-up, ladders
    Bench(bench::Args),
    /// Break a workload's CPU time down by component
    Breakdown(Box<bench::breakdown::Args>),
    /// Serve a file as a block device with a cache, over NBD
    Serve(Box<serve::Args>),
    #[command(flatten)]
    Store(store::Command),
    /// Print the script with which a shell completes commands and options
    Completions(describe::completions::Args),
    /// Write manual pages, one for each command
    Man(describe::man::Args),
    /// Print a part of the documentation that is generated from the code
    #[command(hide = true)]
    Reference(describe::reference::Args),
}

/// Returns the command line: all commands and their options, with their help.
pub fn command() -> clap::Command {
    App::command()
}

/// Runs the command line with these policies.
pub fn main_with(policies: Policies) -> ExitCode {
    Face::CommandLine.show();
    let app = App::parse();
    policies.offer();
    let registry = &policies.registry;
    interrupt::listen();
    let result = match &app.command {
        Command::Tour(args) => tour::run(args, registry),
        Command::Policies(args) => list::run(args, registry),
        Command::Sim(args) => sim::run(args, registry),
        Command::Advise(args) => advise::run(args, registry),
        Command::Regret(args) => regret::run(args, registry),
        Command::Trace(args) => trace::run(args, registry),
        Command::Compare(args) => compare::run(args),
        Command::Report(args) => report::run(args),
        Command::Bench(args) => bench::run(args, registry),
        Command::Breakdown(args) => bench::breakdown::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Store(command) => store::run(command),
        Command::Completions(args) => describe::completions::run(args, command()),
        Command::Man(args) => describe::man::run(args, command()),
        Command::Reference(args) => describe::reference::run(args, command()),
    };
    conclude("millpond", result)
}

/// Prints a failure of `program` to standard error and returns the exit code.
pub fn conclude(program: &str, result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            output::complain(&format!("{program}: {failure}"));
            ExitCode::from(failure.exit_code())
        }
    }
}
