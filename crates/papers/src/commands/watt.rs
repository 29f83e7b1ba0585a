//! `millpond-papers watt`: the evaluation of WATT (VLDB 2023).

use crate::recording::pages::recorded;
use crate::watt::experiment;
use crate::watt::live;

use super::callgrind::hindrance;
use super::count_worker::counter;
use super::frame::{FrameArgs, play_as};
use millpond_cli::program::Failure;
use millpond_cli::program::complain;

const EXAMPLES: &str = "Examples:
  millpond-papers watt --plan    figures, and what they need
  millpond-papers watt           the whole grid in miniature, 40 minutes at most
  millpond-papers watt --resume  go on where Ctrl-C ended it
  millpond-papers watt --judge DIR
        the rows of an earlier run, by today's claims
  millpond-papers watt --figure 1,aggregation  one figure and one table
  millpond-papers watt --figure 9,11,13
        live runs: pages per transaction, cost, performance
  millpond-papers watt --figure 11 --instructions
        what a worker executes, and misses in caches
  millpond-papers watt --scale quick
        seconds: everything runs, nothing is proved";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Also count instructions, cache misses and branch misses of figure 11, if valgrind is
    /// installed
    #[arg(long)]
    instructions: bool,
    #[command(flatten)]
    frame: FrameArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let scale = args.frame.scale();
    let mut experiment = experiment(scale, Box::new(recorded))?;
    let why = args.instructions.then(hindrance).flatten();
    if let Some(why) = &why {
        complain(&format!("instructions are not counted: {why}"));
    }
    let counter = (args.instructions && why.is_none()).then(counter);
    experiment.figures.extend(live::figures(scale, counter));
    let name = if args.instructions { "watt --instructions" } else { "watt" };
    play_as(name, &mut experiment, &args.frame)
}
