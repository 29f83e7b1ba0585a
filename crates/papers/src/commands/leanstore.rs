//! `millpond paper leanstore`: the evaluation of LeanStore (ICDE 2018).

use millpond_bench::experiments::papers::leanstore::experiment;

use super::frame::{FrameArgs, play};
use crate::error::Failure;

const EXAMPLES: &str = "Examples:
  millpond paper leanstore --plan              figures, and what they need
  millpond paper leanstore                     the whole evaluation in miniature
  millpond paper leanstore --figure 7,table-1  the ladder, and affinity
  millpond paper leanstore --figure 9
        data that outgrow memory, beside the system's paging
  millpond paper leanstore --scale quick
        seconds: everything runs, nothing is proved";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    frame: FrameArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut experiment = experiment(args.frame.scale(), args.frame.out());
    play(&mut experiment, &args.frame)
}
