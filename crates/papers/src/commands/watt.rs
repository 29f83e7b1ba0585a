//! `millpond paper watt`: the evaluation of WATT (VLDB 2023).

use millpond_bench::experiments::papers::watt_live;
use millpond_bench::experiments::recorded::recorded;
use millpond_lab::papers::watt::experiment;

use super::count_worker::counter;
use super::frame::{FrameArgs, play_as};
use crate::callgrind::hindrance;
use crate::error::Failure;
use crate::output::complain;

const EXAMPLES: &str = "Examples:
  millpond paper watt --plan    figures, and what they need
  millpond paper watt           the whole grid in miniature, 40 minutes at most
  millpond paper watt --resume  go on where Ctrl-C ended it
  millpond paper watt --judge DIR
        the rows of an earlier run, by today's claims
  millpond paper watt --figure 1,aggregation  one figure and one table
  millpond paper watt --figure 9,11,13
        live runs: pages per transaction, cost, performance
  millpond paper watt --figure 11 --instructions
        what a worker executes, and misses in caches
  millpond paper watt --scale quick
        seconds: everything runs, nothing is proved";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Count instructions, cache misses and branch misses of figure 11, too, if valgrind is there
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
    experiment.figures.extend(watt_live::figures(scale, counter));
    let name = if args.instructions { "watt --instructions" } else { "watt" };
    play_as(name, &mut experiment, &args.frame)
}
