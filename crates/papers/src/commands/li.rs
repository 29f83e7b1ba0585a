//! `millpond-papers li`: second-tier caches with hints, deferred syncs, and write-aware policies
//! (Li's thesis of 2011).

use std::path::PathBuf;

use crate::li::{RecordLi, experiment, kept, only};
use crate::recording::storage::li;

use super::frame::{FrameArgs, play};
use millpond_cli::program::Failure;

const EXAMPLES: &str = "Examples:
  millpond-papers li --plan         figures, and what they need
  millpond-papers li                chapters 3 to 5, 30 minutes at most
  millpond-papers li --repetitions 5  narrower intervals
  millpond-papers li --figure tables
        the requests of the first tiers, and what follows them
  millpond-papers li --figure 3.3,3.4
        read hit ratios over sizes of the second tier and the pool
  millpond-papers li --figure 4.5,4.6,tables-4,why-4
        deferred syncs above modelled disks
  millpond-papers li --scale paper --figure 3.4 --repetitions 3 --traces DIR
        full size: recordings are kept in DIR, for other figures
  millpond-papers li --scale paper --trace 300k_400,540k_400 --traces DIR \\
      --minutes 0
        the cells of two first tiers alone
  millpond-papers li --judge DIR    an earlier run's rows, by today's claims
  millpond-papers li --scale quick  seconds: everything runs, nothing is proved";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    frame: FrameArgs,
    /// Keep recordings of first tiers in this folder, and reuse existing ones: parquet files with
    /// their storage requests
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// Only the cells of these traces, separated by commas: 300k_400,540k_400
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    trace: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let record: RecordLi = match &args.traces {
        Some(folder) => kept(folder.clone(), Box::new(li))
            .map_err(|error| Failure::Usage(format!("--traces {}: {error}", folder.display())))?,
        None => Box::new(li),
    };
    let mut experiment = experiment(args.frame.scale(), record)?;
    let mut frame = args.frame.clone();
    if !args.trace.is_empty() {
        frame = frame.with("--trace", &args.trace.join(","));
        experiment = only(experiment, &args.trace)
            .map_err(|error| Failure::Usage(format!("--trace: {error}")))?;
    }
    play(&mut experiment, &frame)
}
