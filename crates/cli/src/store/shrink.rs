//! `millpond shrink`: giving the free end of a store's files back.

use super::open::{self, StoreArgs, failed};
use crate::error::Failure;
use crate::output::complain;

const EXAMPLES: &str = "Examples:
  millpond shrink shop.db

Pages in use stay where they are: what is free before the last of them stays free, and is used
again. For a file without any, dump the store and load the dump into a new one.

A program that has the store open calls Db::shrink.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let file = &args.store.file;
    let db = open::open(file, false, None)?;
    let shrunk = db.shrink().map_err(failed);
    open::close(db)?;
    let shrunk = shrunk?;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    complain(&format!(
        "{}: shorter by {:.1} MiB, its log by {:.1} MiB",
        file.display(),
        mib(shrunk.data_bytes),
        mib(shrunk.log_bytes)
    ));
    Ok(())
}
