//! `millpond-papers luan`: thirteen policies on access patterns and TPC-C (2008).

use crate::luan::experiment;
use crate::luan::live;
use crate::recording::pages::luan_tpcc;

use super::frame::{FrameArgs, play};
use millpond_cli::program::Failure;

const EXAMPLES: &str = "Examples:
  millpond-papers luan --plan         figures, and what they need
  millpond-papers luan                all of it, 40 minutes at most
  millpond-papers luan --figure 3,4   loops larger and smaller than the pool
  millpond-papers luan --figure 16,17,18
        live runs: logical reads, execution time, sharing
  millpond-papers luan --judge DIR    an earlier run's rows, by today's claims
  millpond-papers luan --scale quick  seconds: all runs, nothing is proved";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    frame: FrameArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let scale = args.frame.scale();
    let mut experiment = experiment(scale, Box::new(luan_tpcc))?;
    experiment.figures.extend(live::figures(scale));
    play(&mut experiment, &args.frame)
}
