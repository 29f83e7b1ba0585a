//! `millpond paper gilbert`: page replacement in a live engine (Gilbert's thesis of 2020).

use millpond_bench::experiments::papers::gilbert::experiment;

use super::frame::{FrameArgs, play};
use crate::error::Failure;

const EXAMPLES: &str = "Examples:
  millpond paper gilbert --plan               figures, and what they need
  millpond paper gilbert                      the whole grid in miniature, 40 minutes at most
  millpond paper gilbert --figure 1.29        every live policy over pool sizes
  millpond paper gilbert --figure 1.10,1.12   variants of CLOCK and ZCLOCK
  millpond paper gilbert --scale quick        seconds: everything runs, nothing is proved";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    frame: FrameArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    play(&mut experiment(args.frame.scale()), &args.frame)
}
