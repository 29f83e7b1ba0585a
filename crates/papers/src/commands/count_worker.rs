//! Instructions that the worker of WATT's figure 11 executes, counted by callgrind.

use std::rc::Rc;

use crate::experiment::{FigureError, Scale};
use crate::watt::counted::{Counter, PerTransaction, WorkerRun};
use clap::builder::PossibleValuesParser;
use millpond_bench::run::on_this_thread::FUNCTION;
use millpond_bench::run::runner::Unwatched;
use serde_json::json;

use super::callgrind::{Simulate, collect};
use millpond_cli::program::Failure;
use millpond_cli::program::print;

/// A hidden command: transactions of one worker, all on this thread, within one function.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The workload
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(WorkerRun::LOADS))]
    load: String,
    /// The policy
    #[arg(long, value_name = "POLICY")]
    policy: String,
    /// Amount of data: quick, standard or paper
    #[arg(long, default_value_t = Scale::Standard, value_name = "SCALE")]
    scale: Scale,
    /// Measured transactions, after as many of the warm-up
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    transactions: u64,
    /// Seed of data, transactions and policy
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// Run the command under callgrind, and print its counts per transaction
    #[arg(long)]
    instructions: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let run = WorkerRun {
        load: args.load.clone(),
        policy: args.policy.clone(),
        scale: args.scale,
        transactions: args.transactions,
        seed: args.seed,
    };
    if args.instructions {
        let counted = count(&run)?;
        let all = json!({
            "instructions": counted.instructions,
            "l1_data_misses": counted.l1_data_misses,
            "l1_instruction_misses": counted.l1_instruction_misses,
            "ll_misses": counted.ll_misses,
            "branch_misses": counted.branch_misses,
            "references": counted.references,
        });
        return print(&format!("{all}\n"));
    }
    let executed = run.run(&mut Unwatched)?;
    let (transactions, references) = (executed.transactions, executed.references);
    print(&format!("{}\n", json!({ "transactions": transactions, "references": references })))
}

/// Counts by running that command under callgrind.
pub(crate) fn counter() -> Counter {
    Rc::new(|run| {
        count(run).map_err(|failure| match failure.exit_code() {
            130 => FigureError::Stopped,
            _ => FigureError::of(failure),
        })
    })
}

fn count(run: &WorkerRun) -> Result<PerTransaction, Failure> {
    let what = format!("{} with {}", run.load, run.policy);
    let mut arguments = ["watt-worker"].map(String::from).to_vec();
    for (flag, value) in [
        ("--load", run.load.clone()),
        ("--policy", run.policy.clone()),
        ("--scale", run.scale.to_string()),
        ("--transactions", run.transactions.to_string()),
        ("--seed", run.seed.to_string()),
    ] {
        arguments.extend([flag.to_string(), value]);
    }
    let collected = collect(&what, FUNCTION, Simulate::CachesAndBranches, &arguments)?;
    let printed = collected.number("transactions").zip(collected.number("references"));
    let (transactions, references) = printed.ok_or_else(|| {
        Failure::Partly(format!("{what} could not be counted: it printed no transactions"))
    })?;
    let per = |names: &[&str]| collected.sum(names) as f64 / transactions;
    Ok(PerTransaction {
        instructions: per(&["Ir"]),
        l1_data_misses: per(&["D1mr", "D1mw"]),
        l1_instruction_misses: per(&["I1mr"]),
        ll_misses: per(&["ILmr", "DLmr", "DLmw"]),
        branch_misses: per(&["Bcm", "Bim"]),
        references: references / transactions,
    })
}
