//! `millpond paper default`: which policy should decide where nothing names one.

use millpond_bench::experiments::default_policy::experiment;

use super::frame::{FrameArgs, play};
use crate::error::Failure;

const EXAMPLES: &str = "Examples:
  millpond paper default --plan  figures, and what they need
  millpond paper default         24 policies live, half an hour
  millpond paper default --figure throughput
        the best ones, in memory and beyond
  millpond paper default --scale quick
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
