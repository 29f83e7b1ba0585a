//! `millpond paper gilbert`: page replacement in a live engine, and where a transaction's time goes
//! (Gilbert's thesis of 2020).

use std::process::Command;

use millpond_bench::experiments::papers::gilbert::experiment;
use millpond_bench::experiments::papers::looking_glass;
use millpond_bench::experiments::papers::looking_glass::steps::Count;
use millpond_lab::experiment::Scale;

use super::frame::{FrameArgs, play, play_as};
use crate::error::Failure;

const EXAMPLES: &str = "Examples:
  millpond paper gilbert --plan               figures, and what they need
  millpond paper gilbert                      the whole grid in miniature, 40 minutes at most
  millpond paper gilbert --figure 1.29        every live policy over pool sizes
  millpond paper gilbert --figure 1.10,1.12   variants of CLOCK and ZCLOCK
  millpond paper gilbert --scale quick        seconds: everything runs, nothing is proved
  millpond paper gilbert --chapter 2          where CPU time goes: logging, locking, pool, B-tree
  millpond paper gilbert --chapter 2 --figure 2.1,removal

Chapter 2 samples the process itself (kernel.perf_event_paranoid must be 2 at most), and counts
instructions with valgrind, where it is installed.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Which chapter: page replacement and swizzling (1), or where CPU time goes (2)
    #[arg(long, default_value_t = 1, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=2))]
    chapter: u8,
    /// Run one step of figure 2.1 alone: what instructions are counted of
    #[arg(long, hide = true, requires = "transactions")]
    alone: Option<String>,
    /// Transactions that it runs
    #[arg(long, hide = true, requires = "alone")]
    transactions: Option<u64>,
    #[command(flatten)]
    frame: FrameArgs,
}

/// This program once more, under one that counts instructions.
fn count(step: &str, transactions: u64) -> Option<Command> {
    let path = std::env::var_os("PATH")?;
    let there = std::env::split_paths(&path).any(|folder| folder.join("valgrind").is_file());
    let program = std::env::current_exe().ok().filter(|_| there)?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(program).args(["paper", "gilbert", "--chapter", "2", "--alone", step]);
    command.args(["--transactions", &transactions.to_string()]);
    Some(command)
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if let (Some(step), Some(transactions)) = (&args.alone, args.transactions) {
        return Ok(looking_glass::steps::run_alone(step, transactions)?);
    }
    let scale = args.frame.scale();
    if args.chapter == 1 {
        return play(&mut experiment(scale), &args.frame);
    }
    // Counting takes minutes.
    let count = (scale != Scale::Quick).then_some(count as Count);
    let mut experiment = looking_glass::experiment::experiment(scale, count);
    play_as("gilbert --chapter 2", &mut experiment, &args.frame)
}
