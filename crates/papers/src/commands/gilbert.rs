//! `millpond-papers gilbert`: page replacement in a live engine, and CPU time by component
//! (Gilbert's thesis of 2020).

use crate::gilbert::experiment::experiment;
use crate::looking_glass;

use super::callgrind::hindrance;
use super::count_steps::counter;
use super::frame::{FrameArgs, play, play_as};
use millpond_cli::program::Failure;
use millpond_cli::program::complain;

const EXAMPLES: &str = "Examples:
  millpond-papers gilbert --plan              figures, and what they need
  millpond-papers gilbert                     in miniature, 40 minutes at most
  millpond-papers gilbert --figure 1.29       every live policy over pool sizes
  millpond-papers gilbert --figure 1.10,1.12  variants of CLOCK and ZCLOCK
  millpond-papers gilbert --scale quick
        seconds: everything runs, nothing is proved
  millpond-papers gilbert --chapter 2
        where CPU time goes: logging, locking, pool, B-tree
  millpond-papers gilbert --chapter 2 --figure 2.1,removal
  millpond-papers gilbert --chapter 2 --figure 2.1 --instructions

Chapter 2 samples the process itself: kernel.perf_event_paranoid must be 2 at most.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Chapter: page replacement and swizzling (1), or the distribution of CPU time (2)
    #[arg(long, default_value_t = 1, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=2))]
    chapter: u8,
    /// Also count instructions of chapter 2's steps (2.1, removal), if valgrind is installed
    #[arg(long)]
    instructions: bool,
    #[command(flatten)]
    frame: FrameArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let scale = args.frame.scale();
    if args.chapter == 1 {
        if args.instructions {
            let text = "--instructions are those of chapter 2: it goes with --chapter 2";
            return Err(Failure::Usage(text.to_string()));
        }
        return play(&mut experiment(scale), &args.frame);
    }
    let why = args.instructions.then(hindrance).flatten();
    if let Some(why) = &why {
        complain(&format!("instructions are not counted: {why}"));
    }
    let counter = (args.instructions && why.is_none()).then(counter);
    let mut experiment = looking_glass::experiment::experiment(scale, counter);
    let name =
        format!("gilbert --chapter 2{}", if args.instructions { " --instructions" } else { "" });
    play_as(&name, &mut experiment, &args.frame)
}
