//! `millpond backup`: copying a store that no program has open.

use std::ops::ControlFlow;
use std::path::PathBuf;

use millpond::internals::io::OpenError;
use millpond::{Db, Error, Options, error::BackupError, report::BackupPhase};
use millpond_device::OpenFileError;

use super::open::{self, StoreArgs, failed, size_of};
use crate::error::Failure;
use crate::interrupt;
use crate::output::complain;
use crate::progress::Progress;

const EXAMPLES: &str = "Examples:
  millpond backup shop.db monday.db

The copy is one file, a store that was closed, with an id of its own. Each of its pages in use was \
proven by its checksum. A store that was not closed is recovered first.

A store that a program has open is backed up by that program, while it goes on: Db::backup_to.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// The new file; the name must be free
    #[arg(value_name = "TARGET")]
    target: PathBuf,
    /// Memory for pages
    #[arg(long, value_name = "SIZE", value_parser = size_of)]
    memory: Option<u64>,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let file = &args.store.file;
    let memory = args.memory.unwrap_or(256 << 20);
    let options = Options::new().create_if_missing(false).memory(memory);
    let db = match Db::open(file, options) {
        Err(Error::Open(OpenError::File(error @ OpenFileError::Locked { .. }))) => {
            return Err(Failure::Store(format!(
                "{error}, or let that program take the backup (Db::backup_to)"
            )));
        }
        Err(Error::NoStore { path }) => {
            return Err(Failure::Store(format!("there is no store at {}", path.display())));
        }
        opened => opened.map_err(failed)?,
    };
    let bar = Progress::new(args.quiet);
    let made = db.backup_with(&args.target, &mut |progress| {
        let what = match progress.phase {
            BackupPhase::Pages => "copying pages",
            BackupPhase::Log => "copying the log",
            _ => "recovering the copy",
        };
        let share = progress.done as f64 / progress.total.max(1) as f64;
        bar.show(what, Some(share), progress.done, "bytes");
        match interrupt::asked() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    bar.finish();
    let closed = open::close(db);
    let made = made.map_err(|error| match error {
        Error::Backup(BackupError::GivenUp) => Failure::Interrupted,
        other => failed(other),
    })?;
    closed?;
    complain(&format!(
        "{}: a copy of {}, {:.1} MiB in {:.1} s",
        args.target.display(),
        file.display(),
        made.page_bytes as f64 / f64::from(1 << 20),
        made.elapsed.as_secs_f64()
    ));
    Ok(())
}
