//! `millpond shrink`: returns the free end of a store's files to the file system.

use std::ops::ControlFlow;

use super::open::{self, StoreArgs, failed};
use crate::error::Failure;
use crate::interrupt;
use crate::output::complain;
use crate::progress::Progress;

const EXAMPLES: &str = "Examples:
  millpond shrink shop.db

Pages in use move to where the front of the file is free, and the end that comes free is cut off. \
Interrupted, it leaves a store that is whole, and shorter by what was done.

A program that has the store open calls Db::shrink.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let file = &args.store.file;
    let db = open::open(file, false, None)?;
    let bar = Progress::new(args.quiet);
    let (mut was_asked, page_bytes) = (false, db.page_size() as u64);
    let shrunk = db.shrink_with(&mut |progress| {
        let all = progress.moved + progress.left;
        let share = progress.moved as f64 / all.max(1) as f64;
        bar.show("moving pages", Some(share), progress.moved * page_bytes, "bytes");
        was_asked = interrupt::asked();
        if was_asked { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    bar.finish();
    let closed = open::close(db);
    let shrunk = shrunk.map_err(failed)?;
    closed?;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    complain(&format!(
        "{}: shorter by {:.1} MiB, its log by {:.1} MiB; {} pages moved",
        file.display(),
        mib(shrunk.data_bytes),
        mib(shrunk.log_bytes),
        shrunk.pages_moved
    ));
    if was_asked { Err(Failure::Interrupted) } else { Ok(()) }
}
