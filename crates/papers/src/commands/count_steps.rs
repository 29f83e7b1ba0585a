//! Instructions of the steps of `paper gilbert --chapter 2`, counted by callgrind.

use std::rc::Rc;

use crate::experiment::{FigureError, Scale};
use crate::looking_glass::counted::{Counter, StepList, StepRun};
use clap::builder::PossibleValuesParser;
use millpond_bench::error::BenchError;
use millpond_bench::run::on_this_thread::FUNCTION;
use millpond_bench::run::runner::Unwatched;
use serde_json::json;

use super::callgrind::per_event;
use millpond_cli::program::Failure;
use millpond_cli::program::print;

/// A hidden command: transactions of one step, all on this thread, within one function.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The list of steps
    #[arg(long, default_value = StepList::Harizopoulos.name(), value_name = "NAME")]
    #[arg(value_parser = PossibleValuesParser::new(StepList::ALL.map(StepList::name)))]
    list: String,
    /// The workload: new-order or payment after Harizopoulos' steps, else tpcc, ycsb-read or
    /// ycsb-update
    #[arg(long, value_name = "NAME")]
    load: String,
    /// Number of steps that are taken; 0 for the whole engine
    #[arg(long, value_name = "N")]
    steps: usize,
    /// Amount of data: quick, standard or paper
    #[arg(long, default_value_t = Scale::Standard, value_name = "SCALE")]
    scale: Scale,
    /// Measured transactions, after those of the warm-up
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    transactions: u64,
    /// Seed of data and transactions
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// Run the command under callgrind, and print instructions per transaction
    #[arg(long)]
    instructions: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let list = StepList::ALL.into_iter().find(|list| list.name() == args.list);
    let list = list.unwrap_or(StepList::Harizopoulos);
    let Some(load) = list.loads().into_iter().find(|name| *name == args.load) else {
        let (load, known) = (&args.load, list.loads().join(", "));
        let text = format!("'{load}' does not run after these steps: {known} do");
        return Err(BenchError::Usage(text).into());
    };
    let run = StepRun {
        list,
        load,
        steps: args.steps,
        scale: args.scale,
        transactions: args.transactions,
        seed: args.seed,
    };
    if args.instructions {
        let count = count(&run)?;
        return print(&format!("{}\n", json!({ "instructions_per_tx": count })));
    }
    let executed = run.run(&mut Unwatched)?;
    let (transactions, retries) = (executed.transactions, executed.retries);
    print(&format!("{}\n", json!({ "transactions": transactions, "retries": retries })))
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

fn count(run: &StepRun) -> Result<f64, Failure> {
    let what = format!("{} after {} steps, {}", run.load, run.steps, run.list.name());
    let mut arguments = ["gilbert-step"].map(String::from).to_vec();
    for (flag, value) in [
        ("--list", run.list.name().to_string()),
        ("--load", run.load.to_string()),
        ("--steps", run.steps.to_string()),
        ("--scale", run.scale.to_string()),
        ("--transactions", run.transactions.to_string()),
        ("--seed", run.seed.to_string()),
    ] {
        arguments.extend([flag.to_string(), value]);
    }
    per_event(&what, FUNCTION, "transactions", &arguments)
}
