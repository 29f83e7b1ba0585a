//! `millpond-papers default`: finds the best default policy.

use crate::default_policy::experiment;

use super::frame::{FrameArgs, play};
use millpond_cli::program::Failure;

const EXAMPLES: &str = "Examples:
  millpond-papers default --plan  figures, and what they need
  millpond-papers default         24 policies live, half an hour
  millpond-papers default --figure throughput
        the best ones, in memory and beyond
  millpond-papers default --scale quick
        seconds: everything runs, nothing is proved
  millpond compare results/paper-default-* --where figure=pages \\
      --to watt --metric reads_per_tx+2*writes_per_tx
        each policy beside another one

Simulated, millpond regret asks the same of traces.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    frame: FrameArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    play(&mut experiment(args.frame.scale()), &args.frame)
}
