//! `millpond-papers leanstore`: the evaluation of LeanStore (ICDE 2018).

use crate::leanstore::experiment::experiment;

use super::frame::{FrameArgs, play};
use millpond_cli::program::Failure;

const EXAMPLES: &str = "Examples:
  millpond-papers leanstore --plan              figures, and what they need
  millpond-papers leanstore                     the evaluation in miniature
  millpond-papers leanstore --figure 7,table-1  the ladder, and affinity
  millpond-papers leanstore --figure 9
        data that outgrow memory, beside the system's paging
  millpond-papers leanstore --scale quick
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
