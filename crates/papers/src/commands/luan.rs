//! `millpond paper luan`: thirteen policies on access patterns and TPC-C (2008).

use millpond_bench::experiments::papers::luan_live;
use millpond_bench::experiments::recorded::luan_tpcc;
use millpond_lab::papers::luan::experiment;

use super::frame::{FrameArgs, play};
use crate::error::Failure;

const EXAMPLES: &str = "Examples:
  millpond paper luan --plan         figures, and what they need
  millpond paper luan                all of it, 40 minutes at most
  millpond paper luan --figure 3,4   loops larger and smaller than the pool
  millpond paper luan --figure 16,17,18
        live runs: logical reads, execution time, sharing
  millpond paper luan --judge DIR    an earlier run's rows, by today's claims
  millpond paper luan --scale quick  seconds: all runs, nothing is proved";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    frame: FrameArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let scale = args.frame.scale();
    let mut experiment = experiment(scale, Box::new(luan_tpcc))?;
    experiment.figures.extend(luan_live::figures(scale));
    play(&mut experiment, &args.frame)
}
