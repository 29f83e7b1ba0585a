//! `millpond paper watt`: the evaluation of WATT (VLDB 2023).

use millpond_bench::recorded::recorded;
use millpond_lab::papers::watt::experiment;

use super::frame::{FrameArgs, play};
use crate::error::Failure;

const EXAMPLES: &str = "Examples:
  millpond paper watt --plan                  figures, and what they need
  millpond paper watt                         the whole grid in miniature, 40 minutes at most
  millpond paper watt --resume                go on where Ctrl-C ended it
  millpond paper watt --figure 1,aggregation  one figure and one table
  millpond paper watt --scale quick           seconds: everything runs, nothing is proved";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    frame: FrameArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut experiment = experiment(args.frame.scale(), Box::new(recorded))?;
    play(&mut experiment, &args.frame)
}
