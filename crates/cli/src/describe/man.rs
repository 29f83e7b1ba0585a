//! `millpond man`: manual pages.

use std::path::PathBuf;

use crate::error::Failure;

const EXAMPLES: &str = "Examples:
  millpond man ~/.local/share/man/man1        then: man millpond-sim
  millpond man /usr/local/share/man/man1";

/// The folder of the pages.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder; it is created if it is missing, and pages of the same names are replaced
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes the manual pages of a program.
pub fn run(args: &Args, command: clap::Command) -> Result<(), Failure> {
    let place = |error: std::io::Error| {
        let text = format!("{}: {error}", args.folder.display());
        Failure::Write(std::io::Error::new(error.kind(), text))
    };
    std::fs::create_dir_all(&args.folder).map_err(place)?;
    clap_mangen::generate_to(command, &args.folder).map_err(place)
}
