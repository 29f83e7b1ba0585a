//! `millpond paper li`: second-tier caches with hints, deferred syncs, and write-aware policies
//! (Li's thesis of 2011).

use millpond_bench::experiments::recorded_storage::li;
use millpond_lab::papers::li::experiment;

use super::frame::{FrameArgs, play};
use crate::error::Failure;

const EXAMPLES: &str = "Examples:
  millpond paper li --plan             figures, and what they need
  millpond paper li                    chapters 3 to 5, 30 minutes at most
  millpond paper li --repetitions 5    narrower intervals
  millpond paper li --figure tables    the requests of the first tiers, and what follows them
  millpond paper li --figure 3.3,3.4   read hit ratios over sizes of the second tier and the pool
  millpond paper li --figure 4.5,4.6,tables-4,why-4
                                       deferred syncs above modelled disks
  millpond paper li --judge DIR        the rows of an earlier run, by today's claims
  millpond paper li --scale quick      seconds: everything runs, nothing is proved";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    frame: FrameArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut experiment = experiment(args.frame.scale(), Box::new(li))?;
    play(&mut experiment, &args.frame)
}
