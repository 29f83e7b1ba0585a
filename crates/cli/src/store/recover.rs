//! `millpond recover`: making a store whole after its process or machine stopped.

use millpond::db::log_view::trial_devices;
use millpond::db::{Db, Options};
use millpond_lab::table::Table;
use serde_json::json;

use super::open::{self, StoreArgs, failed, size_of};
use crate::error::Failure;
use crate::output::{Output, complain};

const EXAMPLES: &str = "Examples:
  millpond recover shop.db             recover, close, and say what was done
  millpond recover shop.db --dry-run   the same in memory: no file is changed

Every command that opens a store for writing recovers it, too. A store that was closed has nothing
to recover.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Change nothing: recover in memory, which must hold all pages that change
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Memory for the recovery
    #[arg(long, value_name = "SIZE", value_parser = size_of)]
    memory: Option<u64>,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.output.check()?;
    let file = &args.store.file;
    let db = if args.dry_run {
        let (data, log) = trial_devices(file).map_err(failed)?;
        let memory = args.memory.unwrap_or(256 << 20);
        let options = Options::new().create_if_missing(false).memory(memory);
        Db::open_on_devices(data, log, options).map_err(failed)?
    } else {
        open::open(file, false, args.memory.or(Some(256 << 20)))?
    };
    let done = db.recovery();
    open::close(db)?;
    let Some(done) = done else {
        complain(&format!("{} was closed cleanly: there is nothing to recover", file.display()));
        return Ok(());
    };
    let mut table = Table::new(["what", "count"]);
    let rows = [
        ("records of the log read", done.records),
        ("bytes of the log read", done.log_bytes),
        ("bytes cut off at its end, never acknowledged", done.cut_bytes),
        ("pages made anew", done.pages),
        ("transactions that had not ended", done.losers),
        ("changes of theirs taken back", done.undone),
        ("large values and structures freed", done.freed),
        ("milliseconds", u64::try_from(done.elapsed.as_millis()).unwrap_or(u64::MAX)),
    ];
    for (what, count) in rows {
        table.rows.push(vec![what.into(), count.into()]);
    }
    let params = json!({ "file": file.display().to_string(), "dry_run": args.dry_run });
    args.output.write("recover", &params, &table)?;
    if args.dry_run {
        complain("nothing was changed");
    }
    Ok(())
}
